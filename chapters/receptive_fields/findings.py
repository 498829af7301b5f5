"""How local the fields of hidden units are, and whether removed weights leave neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from chapters.receptive_fields import experiments
from chapters.receptive_fields.experiments import BATCH_SIZES, EDGED, GOALS, SITE, SITES
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import charts, told
from lib.wording import percent

# Expected of weights as they are drawn, from a normal distribution cut at two standard deviations
DRAWN = float(3 + stats.truncnorm(-2, 2).stats("k"))
WINDOW = 18  # sites: about those that a field with edges lies on, by its participation
KEYS = ["gain", "sparsity", "batch_size", "replicate", "goal"]
INPUTS = {EDGED: "with edges", 0.0: "Gaussian"}
COLOURS = dict(zip(INPUTS.values(), (charts.ORANGE, charts.BLUE)))
RANKS = {"harder": 0, "easier": 1}
SMALL, *_, LARGE = BATCH_SIZES
RANGES = {  # as predicted before the records
    "over": ("participation with edges, over Gaussian", 1.3, 1.8),
    "edged_drawn": ("with edges, over weights as drawn", 1, np.inf),
    "gaussian_drawn": ("Gaussian, over weights as drawn", 0, 1),
    "edged_sizes": ("with edges, largest over smallest batch", 0.8, 1.25),
    "edged_neighbours": ("neighbours kept, over chance, with edges", 1, np.inf),
}


def participation(fields: np.ndarray) -> np.ndarray:
    """SITES times the inverse participation ratio Σ w⁴ / (Σ w²)² of fields [..., SITES].

    SITES if one site has all the weight, 1 if all have as much, 1.5 of a wave, 3 in the mean of
    normal noise; NaN of a field that is zero.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return SITES * (fields**4).sum(-1) / (fields**2).sum(-1) ** 2


def together(fields: np.ndarray) -> np.ndarray:
    """The largest share of Σ w² that WINDOW neighbouring sites have, of fields [..., SITES]."""
    squares = fields**2
    summed = sum(np.roll(squares, place, -1) for place in range(WINDOW))
    with np.errstate(invalid="ignore"):
        return summed.max(-1) / squares.sum(-1)


def neighbours(fields: np.ndarray) -> float:
    """How often the next site of a kept weight is kept, over how often it would be if each unit
    scattered as many weights at random.

    fields: [units, SITES], whose removed weights are zero.  NaN if no unit has two weights left.
    """
    kept = fields != 0
    counts = kept.sum(-1)
    pairs = (kept & np.roll(kept, 1, axis=-1)).sum()
    expected = (counts * (counts - 1)).sum() / (SITES - 1)
    return float(pairs / expected) if expected else np.nan


def by_search(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: KEYS, steps, the units' medians of participation, together and, if
    sites are shuffled, together; and neighbours.
    """
    found = []
    random = np.random.default_rng(0)
    groups = rows.groupby(KEYS) if len(rows) else ()
    for key, own in groups:
        fields = own[SITE].to_numpy()
        steps = own.steps.iloc[0]
        shuffled = random.permuted(fields, axis=1)
        every = participation(fields), together(fields), together(shuffled)
        medians = np.nanmedian(every, axis=1) if steps > 0 else [np.nan] * len(every)
        found.append((*key, steps, *medians, neighbours(fields)))
    measures = ["participation", "together", "shuffled", "neighbours"]
    return pd.DataFrame(found, columns=[*KEYS, "steps", *measures])


def at_goal(found: pd.DataFrame, rank: int = 0) -> pd.DataFrame:
    """Of `by_search`: dense searches that met their inputs' goal; rank: 0 the harder, 1 the easier."""
    goals = found.gain.map(lambda gain: GOALS[EDGED if gain else 0.0][rank])
    return found[(found.goal == goals) & (found.sparsity == 0) & found.steps.notna()]


def logs(own: pd.DataFrame, gain: float, sizes: Sequence[int] = BATCH_SIZES) -> pd.Series:
    """ln of participation by replicate, the mean over these batch sizes; own: of `at_goal`."""
    return replicates.means(own[own.gain == gain], "participation", sizes, log=True)


def effects(own: pd.DataFrame) -> dict[str, Effect | None]:
    """ln of the participation with edges over that on Gaussian inputs, and of either over that of
    weights as they are drawn, and at the largest batch size over that at the smallest.
    """
    edged, gaussian, drawn = logs(own, EDGED), logs(own, 0.0), float(np.log(DRAWN))
    sizes = {gain: [logs(own, gain, [size]) for size in (LARGE, SMALL)] for gain in INPUTS}
    return {
        "over": replicates.compared(edged, gaussian),
        "edged_drawn": replicates.compared(edged, drawn),
        "gaussian_drawn": replicates.compared(gaussian, drawn),
        "edged_sizes": replicates.compared(*sizes[EDGED]),
        "gaussian_sizes": replicates.compared(*sizes[0.0]),
    }


def findings(found: pd.DataFrame, goal: str) -> dict[str, object]:
    """All values of the page's sentences; found: of `by_search`, goal: in RANKS."""
    rank = RANKS[goal]
    own = at_goal(found, rank)
    measured = effects(own)
    shares = own.groupby("gain")[["together", "shuffled"]].mean().to_dict()
    values = told.ratios(measured, ("over", "edged_sizes"))
    edged, gaussian = (values[f"{name}_drawn"] for name in ("edged", "gaussian"))
    pruned = found[found.sparsity > 0]
    kept = pruned.groupby("gain").neighbours.mean().to_dict()
    return {
        **values,
        "edged": edged and edged * DRAWN,
        "gaussian": gaussian and gaussian * DRAWN,
        "sites": edged and SITES / (edged * DRAWN),
        "drawn_sites": SITES / DRAWN,
        "window": WINDOW,
        "edged_together": shares["together"].get(EDGED),
        "edged_shuffled": shares["shuffled"].get(EDGED),
        "gaussian_together": shares["together"].get(0.0),
        "drawn": DRAWN,
        "searches": measured["over"].n if measured["over"] else None,
        "planned": len(experiments.REPLICATES),
        "trials": experiments.Search(0.0, SMALL).trials,
        "small": SMALL,
        "large": LARGE,
        "edged_goal": percent(GOALS[EDGED][rank]),
        "gaussian_goal": percent(GOALS[0.0][rank]),
        "pruned_searches": pruned.replicate.nunique(),
        "edged_neighbours": kept.get(EDGED),
        "gaussian_neighbours": kept.get(0.0),
    }


def predictions(values: dict[str, object], own: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came; own: of `at_goal`."""
    came = values | {name: told.interval(effect) for name, effect in effects(own).items()}
    return told.predictions((*RANGES[name], came[name]) for name in RANGES)


def points(own: pd.DataFrame) -> pd.DataFrame:
    """`replicates.by_size` of participation and steps, for either inputs; own: of `at_goal`."""
    found = replicates.by_size(own, "participation", "steps", by=("gain",))
    ends = {"participation_low": "low", "participation_high": "high"}
    return found.assign(inputs=found.gain.map(INPUTS)).rename(columns=ends)
