"""Compares values of single searches, a row each, within replicates: searches with the same draws,
order and split.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect


def means(rows: pd.DataFrame, value: str, sizes: Sequence[int]) -> pd.Series:
    """The mean of a column's logarithm over batch sizes, by replicate, for replicates that have all
    of these.

    Args:
        rows: at most one per replicate and batch_size.
        value: the column.
        sizes: the batch sizes.
    """
    logs = np.log(rows.pivot(index="replicate", columns="batch_size", values=value))
    return logs.reindex(columns=list(sizes)).dropna().mean(axis=1)


def compared(above: pd.Series, below: pd.Series | float) -> Effect | None:
    """The mean difference over replicates that both have; None if there are none."""
    values = (above - below).dropna()
    return scaling.mean_of(values) if len(values) else None


def over(above: pd.DataFrame, below: pd.DataFrame, value: str) -> Effect | None:
    """ln of the geometric mean of the ratio of a column to that of other searches of the same
    replicates; None unless all have one.
    """
    pair = [np.log(rows.set_index("replicate")[value]) for rows in (above, below)]
    above, below = pd.concat(pair, axis=1, join="inner").to_numpy().T
    logs = above - below
    return scaling.mean_of(logs) if len(logs) and not np.isnan(logs).any() else None


def by_size(rows: pd.DataFrame, value: str, by: tuple) -> pd.DataFrame:
    """batch_size, searches, and a column's geometric mean with low and high; a row per batch size
    and values of the columns `by`, which come first.
    """
    names, table = [value, "low", "high"], []
    for key, part in rows.groupby([*by, "batch_size"]):
        row = {**dict(zip((*by, "batch_size"), key)), "searches": len(part)}
        means = scaling.mean_of(np.log(part[value])).row().values()
        table.append(row | dict(zip(names, means)))
    return pd.DataFrame(table, columns=[*by, "batch_size", "searches", *names])
