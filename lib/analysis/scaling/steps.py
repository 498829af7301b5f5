"""From trials to steps to result: K* of every search, and what its trials tell of a smaller one."""

from __future__ import annotations

import functools
from numbers import Real

import numpy as np
import pandas as pd

from lib import own, require
from lib.wording import named
from lib.workloads.catalogue import WORKLOADS, workload

CELL = """
workload algorithm pruning sparsity batch_size trials replicate split stop checks hits precision
max_steps space label_smoothing workers compressor density feedback by_layer aggregation warm_up
race rungs staleness delays
""".split()
SEARCH = ("replicate", "split")  # what tells the searches of one point apart
# How many hits a search waits for does not change its K*, nor hardly ever a race
SAME = (*SEARCH, "hits", "race", "rungs")
# One each on a curve
PROTOCOL = "trials stop checks precision space label_smoothing staleness delays".split()
CURVE = ["workload", "algorithm", "pruning", "sparsity"]
WITHIN_BUDGETS = ("best@", "test@", "loss@")  # how columns begin of which no curve is made
LEVELS = (0.05, 0.5, 0.95)
# Standard deviation of ln K* between independent searches of one point, by data set and kind of
# network; a test measures it.
SCATTER = {
    ("digits", "fully connected"): 0.45,
    ("digits", "convolutional"): 0.52,
    ("cifar-10", "convolutional"): 0.45,
}
# the same of searches on one split of the digits: elsewhere a split has far more images, and says
# less
ONE_SPLIT = 0.24


def goals(trials: pd.DataFrame) -> list[float]:
    """The ladder of goal errors that the table knows, the hardest first."""
    known = trials[[c for c in trials if c.startswith("steps@")]].notna().any()
    return sorted(float(c.removeprefix("steps@")) for c in known.index[known])


def at_goal(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """The table with `steps` and `goal` set to another goal of the ladder.  Raises ValueError if it
    is not on it.
    """
    column = f"steps@{goal:g}" if isinstance(goal, Real) else None
    require(column in trials, "goal", goal, [f"{known:g}" for known in goals(trials)])
    return trials.assign(steps=trials[column], goal=goal)


def slimmed(trials: pd.DataFrame) -> pd.DataFrame:
    """Only what curves are made of: taking the rows of all the columns, cell by cell, is slow."""
    wanted = {*CELL, "goal", "steps", "last_step", "status"}
    return trials[[c for c in trials if c in wanted or c.startswith("steps@")]]


@functools.lru_cache(maxsize=1024)
def best_of_k_pmf(n: int, k: int) -> np.ndarray:
    """P(best of k drawn without replacement from n is the j-th best) [n], j = 1 ... n: C(n - j,
    k - 1) / C(n, k).

    Raises ValueError unless 1 <= k <= n.
    """
    require(1 <= k <= n, "k", k, f"a whole number from 1 to {n}")
    j = np.arange(1, n)
    # From one place to the next
    factors = np.maximum(n - j - k + 1, 0) / (n - j)
    chances = k / n * np.cumprod([1.0, *factors])
    chances.setflags(write=False)  # they are the cache's
    return chances


def best_of_k(steps: np.ndarray, k: int) -> np.ndarray:
    """Quantiles LEVELS of the best of k of these trials; NaN (not reached) counts as infinite.

    A cell stops after its m-th hit, so only the first m order statistics are known.  A quantile
    beyond them is returned as inf: all that is known is that it exceeds the cell's last step.
    """
    ordered = np.sort(np.where(np.isnan(steps), np.inf, steps))
    total = np.cumsum(best_of_k_pmf(len(ordered), k))
    return ordered[np.minimum(np.searchsorted(total, np.array(LEVELS) - 1e-12), len(ordered) - 1)]


def steps_to_result(trials: pd.DataFrame, goal: float | None = None) -> pd.DataFrame:
    """One row per search: its CELL columns, goal, steps (K*, NaN if no trial met the goal),
    last_step, hits_seen and infeasible (counts of trials).
    """
    trials = trials if goal is None else at_goal(trials, goal)
    searches, fewest, met = _by_search(trials, ["steps", "goal"])
    return searches.assign(goal=fewest.goal, steps=fewest.steps.astype(float), hits_seen=met.steps)


def at_every_goal(trials: pd.DataFrame) -> dict[float, pd.DataFrame]:
    """`steps_to_result` at every goal that a trial of the table met, the hardest first: grouped
    once, which takes the time.
    """
    ladder = {goal: f"steps@{goal:g}" for goal in goals(trials)}
    searches, fewest, met = _by_search(trials, list(ladder.values()))
    return {
        goal: searches.assign(goal=goal, steps=fewest[at].astype(float), hits_seen=met[at])
        for goal, at in ladder.items()
    }


def _by_search(trials: pd.DataFrame, columns: list[str]) -> tuple[pd.DataFrame, ...]:
    """The searches of the table with last_step and infeasible, and their least values and counts
    in these columns: three tables of a row per search.
    """
    trials = slimmed(trials)
    lost = trials.status == "infeasible" if "status" in trials else False
    trials = trials.assign(infeasible=lost)
    if "split" not in trials:
        trials = trials.assign(split=0)
    keys = [name for name in CELL if name in trials]
    # To group by what all rows share takes most of the time
    shared = [name for name in keys[1:] if _is_constant(trials[name])]
    varied = [name for name in keys if name not in shared]
    by = trials.groupby(varied, dropna=False)
    ends = by.agg(last_step=("last_step", "max"), infeasible=("infeasible", "sum"))
    same = trials.head(1)[shared]
    searches = ends.reset_index().merge(same, how="cross")
    searches = searches[[*keys, "last_step", "infeasible"]]
    fewest = by[columns].min()
    counts = by[columns].count()
    return searches, fewest.reset_index(drop=True), counts.reset_index(drop=True)


def _is_constant(values: pd.Series) -> bool:
    """Whether all values are equal; the ends are compared first: most columns differ there."""
    if values.empty or values.iloc[0] != values.iloc[-1]:
        return values.empty
    return bool((values == values.iloc[0]).all())


def scatter_of(name: str) -> float:
    """SCATTER of a workload's data set and kind of network, or else ONE_SPLIT."""
    work = None if own.is_own(name) else WORKLOADS.get(name)
    return SCATTER.get((work.dataset, kind_of(work.model)), ONE_SPLIT) if work else ONE_SPLIT


def kind_of(model: str) -> str:
    """The kind of a network, by its name."""
    convolves = any(word in model for word in ("cnn", "resnet", "lenet"))
    return "convolutional" if convolves else "fully connected"


def at_goals(trials: pd.DataFrame, wanted: dict[str, float]) -> pd.DataFrame:
    """The table with `steps` and `goal` set to that of each workload: `at_goal` of several; others
    stay as they are.
    """
    steps = trials.steps.to_numpy(float, copy=True)
    goal = trials.goal.to_numpy(float, copy=True)
    workloads = trials.workload.astype("category")  # whose names are compared once, not by row
    for name, error in wanted.items():
        rows = (workloads == name).to_numpy()
        others = goal[rows] != error
        if others.any():
            column = f"steps@{error:g}"
            steps[rows] = trials.loc[rows, column]
            goal[rows] = error
    return trials.assign(steps=steps, goal=goal)


def of_sizes(trials: pd.DataFrame, least: int) -> pd.DataFrame:
    """The trials of curves that are measured at this number of batch sizes or more."""
    if trials.empty:
        return trials
    return trials[trials.groupby(CURVE).batch_size.transform("nunique") >= least]


def curve_names(frame: pd.DataFrame) -> list[str]:
    """The workload's title and the algorithm of every row."""
    pairs = zip(frame.workload, frame.algorithm)
    return [f"{workload(name).title}, {named(algorithm)}" for name, algorithm in pairs]


def point_of(searches: pd.DataFrame) -> list[str]:
    """The columns that the searches of one point share."""
    return [c for c in CELL if c in searches and c not in SAME]


def apart(replicates: np.ndarray, splits: np.ndarray, cells: np.ndarray | int = 1) -> np.ndarray:
    """Which searches of a curve [n] are independent of each other: the first of every split, or, if
    these are fewer cells, all on split 0.

    cells: of each search [n], or one number for all.
    """
    names, places = np.unique(splits, return_inverse=True)
    least = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(least, places, replicates)
    first, shared = replicates == least[places], splits == 0
    cells = np.broadcast_to(cells, first.shape)
    return first if cells[first].sum() >= cells[shared].sum() else shared


def sparsest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows at the highest sparsity of their workload and algorithm."""
    return rows[rows.sparsity == rows.groupby(["workload", "algorithm"]).sparsity.transform("max")]
