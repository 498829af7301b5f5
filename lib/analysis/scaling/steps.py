"""From trials to steps to result: K* of every search, and what smaller searches would have had."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from scipy.special import comb

from lib import require
from lib.records.searches import FIELDS
from lib.wording import named
from lib.workloads.catalogue import WORKLOADS, workload

SEARCH = ("replicate", "split")  # distinguish the searches of one point
# The number of hits and a limit beyond K* do not change K*; a race hardly ever does
SAME = (*SEARCH, "hits", "max_steps", "race", "rungs")
CURVE = ["workload", "algorithm", "pruning", "sparsity"]
POINT = [*CURVE, "batch_size", *SEARCH]  # a search at one batch size
CELL = [*CURVE, *(name for name in FIELDS if name not in CURVE)]
# The same for all searches of a curve
PROTOCOL = [name for name in CELL if name not in (*POINT, *SAME)]
WITHIN_BUDGETS = ("best@", "test@", "loss@")  # prefixes of columns that are not used for curves
LEVELS = (0.05, 0.5, 0.95)
# Standard deviation of ln K* between independent searches of one point, by data set and kind of
# network; a test measures it.
SCATTER = {
    ("digits", "fully connected"): 0.45,
    ("digits", "convolutional"): 0.52,
    ("cifar-10", "convolutional"): 0.45,
    **{
        (data, kind): 0.2
        for data in ("mnist", "fashion-mnist")
        for kind in ("fully connected", "convolutional")
    },
}
# The same for searches on one split of the digits, used for readers' workloads
ONE_SPLIT = 0.24


# --- the goal error at which curves are read ------------------------------------------------------

# Chosen by hand, with a history, not by a rule applied to the records; all other workloads are read
# at their hardest goal, as planned
GOALS = {
    # Since 2026-11-25: the hardest error that every dense and 90 % sparse search met at every batch
    # size; before, 0.04
    **dict.fromkeys(("digits-mlp", "digits-cnn", "mnist-fc-128x3-easier"), 0.05),
    # Since 2026-11-29: the hardest at which the steps on an eighth of the data do not rise with the
    # batch; 0.06 from 2026-11-26 on, 0.08 before, and 0.06 until 2026-11-25: each change was made
    # with the records in view
    **{f"mnist-fc-128x3-{n}": 0.07 for n in (6750, 13500, 27000, 54000)},
}


def goal(name: str) -> float:
    """The error at which a workload's curves are read; a search that missed it is a bound there."""
    return GOALS[name] if name in GOALS else workload(name).goal


def goals(trials: pd.DataFrame) -> list[float]:
    """The ladder of goal errors in the table, the hardest first."""
    steps = trials.filter(regex="^steps@").dropna(axis=1, how="all")
    return sorted(float(column.removeprefix("steps@")) for column in steps)


def at_goal(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """The table with `steps` and `goal` set to another goal.  Raises ValueError if it is not on the
    ladder.
    """
    return trials.assign(steps=_steps_to(trials, goal), goal=goal)


def _steps_to(trials: pd.DataFrame, goal: float) -> pd.Series:
    column = f"steps@{goal:g}"
    require(column in trials, "goal", goal, [f"{error:g}" for error in goals(trials)])
    return trials[column]


def at_goals(trials: pd.DataFrame, wanted: dict[str, float] | None = None) -> pd.DataFrame:
    """`at_goal` for several workloads: those `wanted`, or all the book's at their `goal`; others
    stay as they are.
    """
    if trials.empty:
        return trials
    wanted = {name: goal(name) for name in WORKLOADS} if wanted is None else wanted
    errors = trials.workload.map(wanted).fillna(trials.goal)
    moved = errors != trials.goal
    steps = trials.steps.astype(float)
    for error in errors[moved].unique():
        steps = steps.where(~moved | (errors != error), _steps_to(trials, error))
    return trials.assign(steps=steps, goal=errors)


def fitting(trials: pd.DataFrame) -> float | None:
    """The hardest goal that is met at three batch sizes of the densest curve, or else at as many as
    any goal; None if no trial met any.
    """
    dense = trials[trials.sparsity == trials.sparsity.min()]
    met = {}
    for error in goals(trials):
        met[error] = dense.dropna(subset=f"steps@{error:g}").batch_size.nunique()
    enough = min(3, max(met.values(), default=0))
    return next((error for error, sizes in met.items() if sizes >= enough > 0), None)


# --- K* of every search ---------------------------------------------------------------------------


def best_of_k_pmf(n: int, k: int) -> np.ndarray:
    """P(best of k drawn without replacement from n is the j-th best) [n], j = 1 ... n:
    C(n - j, k - 1) / C(n, k).

    Raises ValueError unless 1 <= k <= n.
    """
    require(1 <= k <= n, "k", k, f"a whole number from 1 to {n}")
    return comb(n - np.arange(1, n + 1), k - 1) / comb(n, k)


def best_of_k(steps: np.ndarray, k: int) -> np.ndarray:
    """Quantiles LEVELS of the best of k of these trials; NaN (not reached) counts as infinite.

    A search stops after its m-th hit, so only the first m order statistics are known.  A quantile
    beyond them is returned as inf: it is only known to exceed the search's last step.
    """
    ordered = np.sort(np.where(np.isnan(steps), np.inf, steps))
    total = np.cumsum(best_of_k_pmf(len(ordered), k))
    return ordered[
        np.minimum(np.searchsorted(total, np.array(LEVELS) - 1e-9), len(ordered) - 1)
    ]


def steps_to_result(trials: pd.DataFrame, goal: float | None = None) -> pd.DataFrame:
    """One row per search: its CELL columns, last_step, goal, steps (K*, NaN if no trial met the
    goal).
    """
    rows = trials if goal is None else at_goal(trials, goal)
    by = rows.groupby([name for name in CELL if name in rows], dropna=False)
    columns = {"last_step": "max", "goal": "min", "steps": "min"}
    return by[[*columns]].agg(columns).astype({"steps": float}).reset_index()


def at_every_goal(trials: pd.DataFrame) -> dict[float, pd.DataFrame]:
    """`steps_to_result` at every goal that a trial of the table met, the hardest first."""
    return {goal: steps_to_result(trials, goal) for goal in goals(trials)}


def scatter_of(name: str) -> float:
    """SCATTER for a workload's data set and kind of network, or else ONE_SPLIT."""
    work = WORKLOADS.get(name)
    return SCATTER.get((work.dataset, kind_of(work.model)), ONE_SPLIT) if work else ONE_SPLIT


def kind_of(model: str) -> str:
    """The kind of a network, by its name."""
    return "convolutional" if re.search("cnn|resnet|lenet", model) else "fully connected"


def curve_names(frame: pd.DataFrame) -> list[str]:
    """The workload's title and the algorithm of every row."""
    return [f"{workload(w).title}, {named(a)}" for w, a in zip(frame.workload, frame.algorithm)]


def of_curve(rows: pd.DataFrame) -> list[str]:
    """The columns that all points of a curve share, searches or not."""
    return [name for name in (*CURVE, *PROTOCOL, "goal") if name in rows]


def apart(
    replicates: np.ndarray, splits: np.ndarray, cells: np.ndarray | int = 1
) -> np.ndarray:
    """Which searches of a curve [n] are independent of each other: the first of every split, or all
    on split 0 if these have more cells.

    cells: number of cells of each search [n], or one number for all.
    """
    first = replicates == [replicates[splits == split].min() for split in splits]
    shared = splits == 0
    counts = np.broadcast_to(cells, first.shape)
    return first if counts[first].sum() >= counts[shared].sum() else shared
