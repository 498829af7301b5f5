"""How local the receptive fields of hidden units are, on inputs with edges and Gaussian inputs."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from scipy import stats

from chapters.other_networks.fields import BATCH_SIZES, EDGED, GOALS
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import charts, estimates, tips

WINDOW = 18  # sites: about the extent of a field with edges, judging by its participation
KEYS = ["gain", "sparsity", "batch_size", "replicate", "goal"]
# Expected participation of initial weights, a normal distribution cut at two standard deviations
DRAWN = float(3 + stats.truncnorm(-2, 2).stats("k"))
INPUTS = {EDGED: "with edges", 0.0: "Gaussian"}
RANGES = {  # as predicted before measuring
    "fields_edged": ("participation with edges, over Gaussian", 1.3, 1.8),
    "edged_drawn": ("with edges, over untrained weights", 1, np.inf),
    "gaussian_drawn": ("Gaussian, over untrained weights", 0, 1),
    "fields_sizes": ("with edges, largest over smallest batch", 0.8, 1.25),
}


def participation(fields: np.ndarray) -> np.ndarray:
    """The number of sites times Σ w⁴ / (Σ w²)², for fields [..., sites].

    It equals the number of sites if one has all the weight, 1 if all have equal weight, 1.5 for a
    wave, and on average 3 for normal noise; NaN for a zero field.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return fields.shape[-1] * (fields**4).sum(-1) / (fields**2).sum(-1) ** 2


def together(fields: np.ndarray) -> np.ndarray:
    """The largest share of Σ w² in WINDOW neighbouring sites, for fields [..., sites]."""
    squares = fields**2
    windows = sum(np.roll(squares, shift, -1) for shift in range(WINDOW))
    with np.errstate(invalid="ignore"):
        return windows.max(-1) / squares.sum(-1)


def neighbours(fields: np.ndarray) -> float:
    """How often the site next to a kept weight is also kept, over the expected frequency if each
    unit kept as many weights at random.

    fields: [units, sites], with removed weights zero.  NaN if no unit has two weights left.
    """
    kept = fields != 0
    counts = kept.sum(-1)
    pairs = (kept & np.roll(kept, 1, axis=-1)).sum()
    expected = (counts * (counts - 1)).sum() / (fields.shape[-1] - 1)
    return float(pairs / expected) if expected else np.nan


def by_search(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: KEYS, steps, medians over units of participation and together (NaN
    if the search missed the goal), and neighbours.
    """
    searches = []
    for key, units in rows.groupby(KEYS):
        fields, steps = units.filter(regex="^site_").to_numpy(), units.steps.iloc[0]
        measures = np.median([participation(fields), together(fields)], axis=1)
        medians = measures if steps > 0 else [np.nan, np.nan]
        searches.append((*key, steps, *medians, neighbours(fields)))
    columns = [*KEYS, "steps", "participation", "together", "neighbours"]
    return pd.DataFrame(searches, columns=columns)


def at_goal(searches: pd.DataFrame) -> pd.DataFrame:
    """Rows from `by_search`: dense searches that met the harder goal of their inputs."""
    goals = searches.gain.map({gain: harder for gain, (harder, _) in GOALS.items()})
    dense = searches[(searches.goal == goals) & (searches.sparsity == 0)]
    return dense.dropna(subset="steps")


def effects(met: pd.DataFrame) -> dict[str, Effect | None]:
    """ln of the ratios of participation in RANGES; met: from `at_goal`."""

    def logs(gain, *sizes):
        return replicates.means(met[met.gain == gain], "participation", sizes)

    edged, gaussian, drawn = logs(EDGED, *BATCH_SIZES), logs(0.0, *BATCH_SIZES), np.log(DRAWN)
    smallest, *_, largest = BATCH_SIZES
    pairs = {
        "fields_edged": (edged, gaussian),
        "edged_drawn": (edged, drawn),
        "gaussian_drawn": (gaussian, drawn),
        "fields_sizes": (logs(EDGED, largest), logs(EDGED, smallest)),
    }
    return {name: replicates.compared(*pair) for name, pair in pairs.items()}


def values(met: pd.DataFrame) -> dict[str, object]:
    """Values in the section's sentences; met: from `at_goal`."""
    return {"fields_together": float(met[met.gain == EDGED].together.mean())}


def table(searches: pd.DataFrame) -> pd.DataFrame:
    """Predictions beside their outcomes; searches: from `by_search`."""
    ratios = effects(at_goal(searches))
    rows = [(*row, estimates.interval(ratios[name])) for name, row in RANGES.items()]
    pruned = searches[(searches.sparsity > 0) & (searches.gain == EDGED)]
    what = "neighbours kept by pruning, over chance, with edges"
    return estimates.predictions([*rows, (what, 1, np.inf, float(pruned.neighbours.mean()))])


def chart(met: pd.DataFrame) -> alt.LayerChart:
    """Participation against batch size for both kinds of inputs; faint points: single searches."""
    means = replicates.by_size(met, "participation", by=("gain",))
    points = pd.concat([means, met])
    points["inputs"] = points.gain.map(INPUTS)
    colour = charts.by_name(
        "inputs", dict(zip(INPUTS.values(), (charts.ORANGE, charts.BLUE))), 2
    )
    scale = alt.Scale(domain=[1.8, 5])
    title = "participation of a field (1: even, 64: one site)"
    y = alt.Y("participation:Q", title=title, scale=scale)
    base = alt.Chart(points).encode(x=charts.batch_axis(met.batch_size), color=colour)
    mean = base.transform_filter("isValid(datum.searches)")
    single = base.transform_filter("!isValid(datum.searches)")
    faint = single.mark_point(size=40, opacity=0.45).encode(y=y)
    tooltip = {
        "inputs:N": "inputs",
        "batch_size:Q|,": "batch size",
        "participation:Q|.2f": "participation",
        "searches:Q": "searches",
    }
    curve = charts.curve(mean, y, scale, tips.listed(tooltip))
    return charts.sized(alt.layer(charts.across(DRAWN, y=scale), *curve, faint), 340)
