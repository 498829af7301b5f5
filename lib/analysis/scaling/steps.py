"""From trials to steps to result: K* of every search, and what its trials tell of a smaller one."""

from __future__ import annotations

import functools
from numbers import Real

import numpy as np
import pandas as pd
from scipy.special import gammaln

from lib import own
from lib.wording import named
from lib.workloads.catalogue import WORKLOADS, workload

CELL = [
    "workload",
    "algorithm",
    "pruning",
    "sparsity",
    "batch_size",
    "trials",
    "replicate",
    "split",
    "stop",
    "checks",
    "hits",
    "precision",
    "max_steps",
    "space",
    "label_smoothing",
    "workers",
    "compressor",
    "density",
    "feedback",
    "by_layer",
    "aggregation",
    "warm_up",
    "race",
    "rungs",
    "staleness",
    "delays",
]
SEARCH = ("replicate", "split")  # what tells the searches of one point apart
# How many hits a search waits for does not change its K*, nor hardly ever a race
SAME = (
    *SEARCH,
    "hits",
    "race",
    "rungs",
)
# One each on a curve
PROTOCOL = [
    "trials",
    "stop",
    "checks",
    "precision",
    "space",
    "label_smoothing",
    "staleness",
    "delays",
]
CURVE = ["workload", "algorithm", "pruning", "sparsity"]
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
    if column not in trials:
        raise ValueError(
            f"goal: {goal!r} is not allowed; it must be one of {', '.join(f'{g:g}' for g in goals(trials))}"
        )
    return trials.assign(steps=trials[column], goal=goal)


def slimmed(trials: pd.DataFrame) -> pd.DataFrame:
    """Only what curves are made of: taking the rows of all the columns, cell by cell, is slow."""
    wanted = {*CELL, "goal", "steps", "last_step", "status"}
    return trials[[c for c in trials if c in wanted or c.startswith("steps@")]]


@functools.lru_cache(maxsize=1024)
def best_of_k_pmf(n: int, k: int) -> np.ndarray:
    """P(best of k drawn without replacement from n is the j-th best), j = 1 ... n: C(n - j, k - 1)
    / C(n, k).

    Raises ValueError unless 1 <= k <= n.
    """
    if not 1 <= k <= n:
        raise ValueError(f"k: {k!r} is not allowed; it must be a whole number from 1 to {n}")
    j = np.arange(1, n + 1)
    possible = n - j >= k - 1
    left = np.where(possible, n - j, k - 1)
    log = _log_choose(left, k - 1) - _log_choose(n, k)
    chances = np.where(possible, np.exp(log), 0.0)
    chances.setflags(write=False)  # they are the cache's
    return chances


def _log_choose(n: np.ndarray | int, k: int) -> np.ndarray:
    return gammaln(np.add(n, 1)) - gammaln(k + 1) - gammaln(np.subtract(n, k) + 1)


def best_of_k(steps: np.ndarray, k: int) -> np.ndarray:
    """Quantiles LEVELS of the best of k of these trials; NaN (not reached) counts as infinite.

    A cell stops after its m-th hit, so only the first m order statistics are known.  A quantile
    beyond them is returned as inf: all that is known is that it exceeds the cell's last step.
    """
    ordered = np.sort(np.where(np.isnan(steps), np.inf, steps))
    total = np.cumsum(best_of_k_pmf(len(ordered), k))
    return ordered[np.minimum(np.searchsorted(total, np.array(LEVELS) - 1e-12), len(ordered) - 1)]


def steps_to_result(trials: pd.DataFrame, goal: float | None = None) -> pd.DataFrame:
    """One row per search: steps (K*, NaN if no trial met the goal), last_step, hits_seen and
    infeasible (trials).
    """
    trials, keys = _told_apart(trials if goal is None else at_goal(trials, goal))
    by = trials.groupby([*keys, "goal"], dropna=False)
    found = by.agg(
        steps=("steps", "min"),
        last_step=("last_step", "max"),
        hits_seen=("steps", "count"),
        infeasible=("infeasible", "sum"),
    )
    return found.reset_index().astype({"steps": float})


def at_every_goal(trials: pd.DataFrame) -> dict[float, pd.DataFrame]:
    """`steps_to_result` at every goal that a trial of the table met, the hardest first: grouped
    once, which takes the time.
    """
    trials, keys = _told_apart(trials)
    by = trials.groupby(keys, dropna=False)
    ladder = {goal: f"steps@{goal:g}" for goal in goals(trials)}
    ends = by.agg(last_step=("last_step", "max"), infeasible=("infeasible", "sum")).reset_index()
    fewest, met = (
        by[list(ladder.values())].agg(of).reset_index(drop=True) for of in ("min", "count")
    )
    wanted = [*keys, "goal", "steps", "last_step", "hits_seen", "infeasible"]
    return {
        goal: ends.assign(goal=goal, steps=fewest[column].astype(float), hits_seen=met[column])[
            wanted
        ]
        for goal, column in ladder.items()
    }


def _told_apart(trials: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The slimmed trials with infeasible (whether they were), and the columns that tell their
    searches apart.
    """
    trials = slimmed(trials)
    lost = trials.status == "infeasible" if "status" in trials else False
    trials = trials.assign(infeasible=lost, **({} if "split" in trials else {"split": 0}))
    return trials, [c for c in CELL if c in trials]


def scatter_of(name: str) -> float:
    """SCATTER of a workload's data set and kind of network, or else ONE_SPLIT."""
    work = None if own.is_own(name) else WORKLOADS.get(name)
    return SCATTER.get((work.dataset, kind_of(work.model)), ONE_SPLIT) if work else ONE_SPLIT


def kind_of(model: str) -> str:
    """The kind of a network, by its name."""
    return (
        "convolutional"
        if any(word in model for word in ("cnn", "resnet", "lenet"))
        else "fully connected"
    )


def at_goals(trials: pd.DataFrame, wanted: dict[str, float]) -> pd.DataFrame:
    """The table with `steps` and `goal` set to that of each workload: `at_goal` of several; others
    stay as they are.
    """
    steps, goal = trials.steps.to_numpy(float, copy=True), trials.goal.to_numpy(float, copy=True)
    for name, error in wanted.items():
        rows = (trials.workload == name).to_numpy()
        if rows.any() and (goal[rows] != error).any():
            steps[rows], goal[rows] = at_goal(trials[rows], error).steps, error
    return trials.assign(steps=steps, goal=goal)


def mixed(trials: pd.DataFrame) -> dict[str, list]:
    """What these trials do not share of the protocol that a comparison needs to be of: field -> its
    values.
    """
    found = {c: trials[c].unique() for c in PROTOCOL if c in trials}
    return {c: values.tolist() for c, values in found.items() if len(values) > 1}


def of_sizes(trials: pd.DataFrame, least: int) -> pd.DataFrame:
    """The trials of curves that are measured at so many batch sizes."""
    return (
        trials[trials.groupby(CURVE).batch_size.transform("nunique") >= least]
        if len(trials)
        else trials
    )


def ladders(curves: pd.DataFrame) -> dict[str, list[float]]:
    """The goals of every curve of a table with `curve` (its name) and workload, the hardest first."""
    return {name: list(workload(w).goals) for name, w in zip(curves.curve, curves.workload)}


def curve_names(frame: pd.DataFrame) -> list[str]:
    """The workload's title and the algorithm of every row."""
    titles = {name: workload(name).title for name in frame.workload.unique()}
    return [
        f"{titles[name]}, {named(algorithm)}"
        for name, algorithm in zip(frame.workload, frame.algorithm)
    ]


def on_ladder(curves: pd.DataFrame) -> pd.DataFrame:
    """The curves of `all_goals` with `place`, that of the goal on its workload's ladder: 0 for the
    hardest.
    """
    return curves.assign(
        place=[workload(name).goals.index(g) for name, g in zip(curves.workload, curves.goal)]
    )


def point_of(searches: pd.DataFrame) -> list[str]:
    """The columns that the searches of one point share."""
    return [c for c in CELL if c in searches and c not in SAME]


def apart(replicates: np.ndarray, splits: np.ndarray, cells: np.ndarray | int = 1) -> np.ndarray:
    """Which searches of a curve [searches, each of so many cells] are independent of each other.

    The first of every split, or, if these are fewer cells, all on split 0.
    """
    cells = np.broadcast_to(cells, len(splits))
    _, split = np.unique(splits, return_inverse=True)
    least = np.full(len(splits), np.inf)  # the least replicate of every split
    np.minimum.at(least, split, replicates)
    first, shared = np.equal(replicates, least[split]), np.equal(splits, 0)
    return first if cells[first].sum() >= cells[shared].sum() else shared


def unmet(trials: pd.DataFrame) -> int:
    """How many points of sparse curves have no search of which a trial met the goal."""
    sparse = trials[trials.sparsity > 0] if len(trials) else trials
    return (
        int((sparse.groupby([*CURVE, "batch_size"]).steps.count() == 0).sum()) if len(sparse) else 0
    )


def sparsest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows at the highest sparsity of their workload and algorithm."""
    return rows[rows.sparsity == rows.groupby(["workload", "algorithm"]).sparsity.transform("max")]
