"""Which hyperparameters the fastest trials have: one method's beside another's, and how they move
with the batch size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib.analysis import scaling
from lib.analysis.scaling import SEARCH

FAST = 10  # trials of a search that count as fast
SEVERAL = 3  # searches from which on a batch size has an interval
KEYS = ["workload", *SEARCH, "batch_size"]


def fastest(trials: pd.DataFrame, count: int = 1) -> pd.DataFrame:
    """The so many fastest trials of every search, the first of equals; searches in which fewer met
    the goal are left out.
    """
    met = trials.dropna(subset="steps").sort_values([*KEYS, "steps"], kind="stable")
    searches = met.groupby(KEYS)
    return met[(searches.cumcount() < count) & (searches.steps.transform("size") >= count)]


def at_known_goals(trials: pd.DataFrame, count: int = FAST) -> pd.DataFrame:
    """The table at each workload's hardest goal that so many trials met in most searches of every
    batch size.

    A search that ended early knows its fastest trials alone, and more of them at an easier goal.
    Workloads without such a goal are left out.
    """
    known = {}
    for name, own in trials.groupby("workload", sort=False):
        for goal in reversed(scaling.goals(own)):
            met = own.groupby(KEYS)[f"steps@{goal:g}"].count() >= count
            if (met.groupby("batch_size").mean() > 0.5).all():
                known[name] = goal
    return scaling.at_goals(trials[trials.workload.isin(known)], known) if known else trials[:0]


# --- search by search: rows by workload, replicate and split, a column for every batch size -------


def middles(fast: pd.DataFrame, name: str) -> pd.DataFrame:
    """The mean logarithm of a hyperparameter over the trials of `fastest`."""
    return np.log(fast.set_index(KEYS)[name].astype(float)).groupby(KEYS).mean().unstack()


def beside(
    trials: pd.DataFrame, above: str, below: str, name: str = "learning_rate"
) -> pd.DataFrame:
    """The logarithm of the winners' hyperparameter with one method over that with another, in
    searches of both.
    """
    top, bottom = (
        middles(fastest(trials[trials.algorithm == one]), name) for one in (above, below)
    )
    rows, sizes = top.index.intersection(bottom.index), top.columns.intersection(bottom.columns)
    return (top.loc[rows, sizes] - bottom.loc[rows, sizes]).dropna(how="all")


def correlations(fast: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """Fisher's z of the correlation between the logarithms of two hyperparameters among the trials
    of `fastest`.
    """
    logs = np.log(fast.set_index(KEYS)[[one, other]].astype(float))
    off = logs - logs.groupby(KEYS).transform("mean")
    products = pd.DataFrame(
        {"both": off[one] * off[other], "one": off[one] ** 2, "other": off[other] ** 2}
    )
    sums = products.groupby(KEYS).sum()
    return np.arctanh(sums.both / np.sqrt(sums.one * sums.other)).unstack()


# --- over searches --------------------------------------------------------------------------------


def by_size(logs: pd.DataFrame, of: Callable = np.exp) -> pd.DataFrame:
    """Such a table's means over searches, a row per workload and batch size of SEVERAL: middle,
    low, high (Student's t), searches.

    of: what undoes the logarithm, or Fisher's z (`np.tanh`); low, high: 5 and 95 %.
    """
    long = logs.rename_axis(columns="batch_size").stack() if len(logs) else pd.Series(dtype=float)
    return _means(long.dropna(), ["workload", "batch_size"], of)


def per_doubling(logs: pd.DataFrame, least: int = 1) -> pd.DataFrame:
    """The factor per doubling of the batch size, from size `least` on: a row per workload with
    columns as of `by_size`.

    Least squares on the logarithms of every search that has three such sizes.
    """
    wide = logs[[b for b in logs.columns if b >= least]].dropna(thresh=3)
    slopes = {
        key: np.polyfit(np.log2(own.index), own, 1)[0]
        for key, row in wide.iterrows()
        if len(own := row.dropna())
    }
    found = pd.Series(slopes, dtype=float)
    return _means(
        found.rename_axis(["workload", *SEARCH]) if len(found) else found, ["workload"], np.exp
    )


def _means(values: pd.Series, keys: list[str], of: Callable) -> pd.DataFrame:
    if not len(values):
        return pd.DataFrame(columns=[*keys, "middle", "low", "high", "searches"])
    found = values.groupby(keys).agg(["mean", "sem", "size"])
    found = found[found["size"] >= SEVERAL].reset_index()
    reach = stdtrit(np.maximum(found["size"] - 1, 1), 0.95) * found["sem"]
    ends = {
        name: of(found["mean"] + off)
        for name, off in (("middle", 0), ("low", -reach), ("high", reach))
    }
    return found.assign(**ends, searches=found["size"]).drop(columns=["mean", "sem", "size"])
