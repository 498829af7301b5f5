"""How local the fields of hidden units are: their participation, and whether removed weights leave
neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from chapters.receptive_fields import searches
from chapters.receptive_fields.searches import EDGED, SITE, SITES
from lib.analysis import replicates
from lib.analysis.scaling import Effect

# Expected of weights as they are drawn, from a normal distribution cut at two standard deviations
DRAWN = float(3 + stats.truncnorm(-2, 2).stats("k"))
KEYS = ["gain", "sparsity", "batch_size", "replicate", "goal"]


def participation(fields: np.ndarray) -> np.ndarray:
    """SITES times the inverse participation ratio Σ w⁴ / (Σ w²)² of fields [..., SITES].

    SITES if one site has all the weight, 1 if all have as much, 1.5 of a wave, 3 in the mean of
    normal noise; NaN of a field that is zero.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return SITES * (fields**4).sum(-1) / (fields**2).sum(-1) ** 2


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
    """A row per search and goal: KEYS, steps, participation (the units' median) and neighbours."""
    found = []
    for key, own in rows.groupby(KEYS) if len(rows) else ():
        fields = own[SITE].to_numpy()
        steps = own.steps.iloc[0]
        told = {
            "steps": steps,
            "participation": np.nan if np.isnan(steps) else np.nanmedian(participation(fields)),
            "neighbours": neighbours(fields),
        }
        found.append(dict(zip(KEYS, key, strict=True)) | told)
    return pd.DataFrame(found, columns=[*KEYS, "steps", "participation", "neighbours"])


def at_goal(found: pd.DataFrame, rank: int = 0, sparsity: float = 0.0) -> pd.DataFrame:
    """Of `by_search`: the searches that met the harder goal of their inputs, or with rank 1 the
    easier one.
    """
    goals = found.gain.map(lambda gain: searches.GOALS[EDGED if gain else 0.0][rank])
    return found[(found.goal == goals) & (found.sparsity == sparsity) & found.steps.notna()]


def logs(own: pd.DataFrame, gain: float, sizes: Sequence[int] = searches.BATCH_SIZES) -> pd.Series:
    """ln of participation by replicate, the mean over these batch sizes; own: of `at_goal`."""
    return replicates.means(own[own.gain == gain], "participation", sizes, log=True)


def beside_gaussian(own: pd.DataFrame) -> Effect | None:
    """ln of the participation on inputs with edges over that on Gaussian ones."""
    return replicates.compared(logs(own, EDGED), logs(own, 0.0))


def beside_drawn(own: pd.DataFrame, gain: float) -> Effect | None:
    """ln of the participation over that of weights as they are drawn."""
    return replicates.compared(logs(own, gain), float(np.log(DRAWN)))


def across_sizes(own: pd.DataFrame, gain: float) -> Effect | None:
    """ln of the participation at the largest batch size over that at the smallest."""
    first, *_, last = searches.BATCH_SIZES
    return replicates.compared(logs(own, gain, [last]), logs(own, gain, [first]))
