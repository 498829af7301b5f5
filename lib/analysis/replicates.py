"""Values of single searches, a row each, compared within replicates: searches with the same draws,
order and split.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect


def means(own: pd.DataFrame, value: str, sizes: Sequence[int], log: bool = False) -> pd.Series:
    """A column by replicate, the mean over batch sizes; without replicates that lack one of these.

    Args:
        own: at most a row per replicate and batch_size.
        value: the column.
        sizes: the batch sizes.
        log: whether its logarithm is averaged.
    """
    table = own.pivot(index="replicate", columns="batch_size", values=value)
    table = np.log(table) if log else table
    return table.reindex(columns=list(sizes)).dropna().mean(axis=1)


def compared(above: pd.Series, below: pd.Series | float) -> Effect | None:
    """The mean of their differences over the replicates of both; None if there is none."""
    values = (above - below).dropna()
    return scaling.mean_of(values) if len(values) else None


def over(one: pd.DataFrame, other: pd.DataFrame, value: str) -> Effect | None:
    """ln of the geometric mean of a column over that of other searches of the same replicates; None
    unless all have one.
    """
    above, below = (np.log(own.set_index("replicate")[value]) for own in (one, other))
    logs = (above - below)[above.index.intersection(below.index)]
    return scaling.mean_of(logs) if len(logs) and logs.notna().all() else None


def by_size(own: pd.DataFrame, *values: str, by: tuple = ()) -> pd.DataFrame:
    """batch_size, searches, and of each column its geometric mean with value_low and value_high; a
    row per batch size and value of the columns `by`, which come first.
    """
    names = [f"{value}{end}" for value in values for end in ("", "_low", "_high")]
    rows = []
    for key, part in own.groupby([*by, "batch_size"]):
        ends = [scaling.mean_of(np.log(part[value])).row().values() for value in values]
        rows.append([*key, len(part), *itertools.chain(*ends)])
    return pd.DataFrame(rows, columns=[*by, "batch_size", "searches", *names])
