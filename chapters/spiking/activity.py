"""What spiking costs in steps and how sparse it is, beside rectifiers, by searches of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from chapters.spiking import searches
from chapters.spiking.searches import BATCH_SIZES, GOALS, TIME
from lib.analysis import scaling
from lib.analysis.scaling import Effect

COLUMNS = [
    "time",
    "sparsity",
    "batch_size",
    "replicate",
    "goal",
    "steps",
    "rate",
    "silent",
    "first",
]


def at_goal(rows: pd.DataFrame, time: int, sparsity: float = 0.0) -> pd.DataFrame:
    """The searches of these networks that met the harder goal."""
    chosen = (rows.time == time) & (rows.sparsity == sparsity) & (rows.goal == GOALS[0])
    return rows[chosen].dropna(subset="steps")


def by_search(own: pd.DataFrame, value: str, sizes: Sequence[int] = BATCH_SIZES) -> pd.Series:
    """A column by replicate, the mean over these batch sizes of searches that have all.

    own: of `at_goal`.
    """
    table = own.pivot(index="replicate", columns="batch_size", values=value)
    return table.reindex(columns=list(sizes)).dropna().mean(axis=1)


def compared(above: pd.Series, below: pd.Series) -> Effect | None:
    """The mean of their differences over the searches of both; None if there is none."""
    values = (above - below).dropna()
    return scaling.mean_of(values) if len(values) else None


def over(
    rows: pd.DataFrame,
    value: str,
    above: tuple[int, float] = (TIME, 0.0),
    below: tuple[int, float] = (0, 0.0),
    sizes: Sequence[int] = BATCH_SIZES,
) -> Effect | None:
    """ln of a column's ratio, the mean over these batch sizes.

    Args:
        rows: of the records.
        value: "steps" or "rate".
        above, below: time steps and sparsity of the two networks.
    """
    pair = (at_goal(rows, *network) for network in (above, below))
    logs = (own.assign(**{value: np.log(own[value])}) for own in pair)
    return compared(*(by_search(own, value, sizes) for own in logs))


def curve(own: pd.DataFrame, value: str = "steps") -> pd.DataFrame:
    """batch_size, the geometric mean of a column with low and high (90 %), and searches.

    own: of `at_goal`.
    """
    found = []
    for size, part in own.groupby("batch_size"):
        effect = scaling.mean_of(np.log(part[value]))
        ends = effect.row(value)
        low, high = ends[f"{value}_low"], ends[f"{value}_high"]
        found.append((size, ends[value], low, high, effect.n))
    return pd.DataFrame(found, columns=["batch_size", value, "low", "high", "searches"])


def results() -> pd.DataFrame:
    """All that is on record: a row per search and goal, as of `searches.Search.measure`."""
    found = searches.SPIKES.results()
    return found if len(found) else found.reindex(columns=COLUMNS)
