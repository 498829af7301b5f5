"""From trials to steps to result: K* of every search, and what its trials tell of a smaller one."""

from __future__ import annotations

import functools
from numbers import Real

import numpy as np
import pandas as pd
from scipy.special import gammaln

from lib.wording import named
from lib.workloads.catalogue import workload

CELL = ["workload", "algorithm", "pruning", "sparsity", "batch_size", "trials", "replicate", "stop", "checks",
        "hits", "precision", "max_steps", "space", "label_smoothing", "workers", "compressor", "density", "feedback",
        "by_layer", "aggregation", "warm_up"]  # fmt: skip
SAME = ("replicate", "hits")  # searches of one cell: how many hits it waits for does not change its K*
PROTOCOL = ["trials", "stop", "checks", "precision", "space", "label_smoothing"]  # one each on a curve
CURVE = ["workload", "algorithm", "pruning", "sparsity"]
LEVELS = (0.05, 0.5, 0.95)
WHOLE = (100, 5)  # trials and hits of a search of which redrawing shows nearly all


def goals(trials: pd.DataFrame) -> list[float]:
    """The ladder of goal errors that the table knows, the hardest first."""
    columns = [c for c in trials if c.startswith("steps@") and trials[c].notna().any()]
    return sorted(float(c.removeprefix("steps@")) for c in columns)


def at_goal(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """The table with `steps` and `goal` set to another goal of the ladder.  Raises ValueError if it is not on it."""
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


def half(n: int) -> int:
    """The default k: a search half as large as the cell's."""
    return max(1, n // 2)


@functools.lru_cache(maxsize=1024)
def best_of_k_pmf(n: int, k: int) -> np.ndarray:
    """P(best of k drawn without replacement from n is the j-th best), j = 1 ... n: C(n - j, k - 1) / C(n, k).

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

    A cell stops after its m-th hit, so only the first m order statistics are known.  A quantile beyond them is
    returned as inf: all that is known is that it exceeds the cell's last step.
    """
    ordered = np.sort(np.where(np.isnan(steps), np.inf, steps))
    total = np.cumsum(best_of_k_pmf(len(ordered), k))
    return ordered[np.minimum(np.searchsorted(total, np.array(LEVELS) - 1e-12), len(ordered) - 1)]


def steps_to_result(trials: pd.DataFrame, goal: float | None = None, k: int | None = None) -> pd.DataFrame:
    """One row per cell: steps (K*, NaN if no trial met the goal), low, median, high (5, 50, 95 % of the best of k) ...

    k defaults to half of the cell's trials: with k = n the best of k is K* itself, so the interval answers how much a
    search half as large would have varied.  Further columns: upper (high, or the cell's last step where high is not
    known and censored is True), hits_seen and infeasible (trials), k.
    """
    trials = trials if goal is None else at_goal(trials, goal)
    keys = [c for c in CELL if c in trials]
    rows = []
    first, cells = grouped(trials, keys, "steps", "last_step", "status")
    for steps, last, status in cells:
        size = half(len(steps)) if k is None else k
        low, median, high = best_of_k(steps, size)
        rows.append({
            "steps": float(np.fmin.reduce(steps)), "low": low, "median": median, "high": high, "upper": min(high, last.max()),
            "censored": np.isinf(high), "k": size, "hits_seen": int((~np.isnan(steps)).sum()),
            "infeasible": int((status == "infeasible").sum()),
        })  # fmt: skip
    return pd.concat([first[[*keys, "goal"]].reset_index(drop=True), pd.DataFrame(rows)], axis=1)


def grouped(trials: pd.DataFrame, keys: list[str], *columns: str) -> tuple[pd.DataFrame, list[tuple[np.ndarray, ...]]]:
    """The first row of every group of trials, in the order of their keys, and these columns of each group.

    In numpy: to take the rows of a table group by group takes ten times as long.
    """
    number = trials.groupby(keys, dropna=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    split = (np.split(trials[column].to_numpy()[order], starts)[1:] for column in columns)
    return slimmed(trials).iloc[order[starts]], list(zip(*split, strict=True))


def all_goals(trials: pd.DataFrame, missed: bool = False) -> pd.DataFrame:
    """`steps_to_result` at every goal of the ladder, one below the other; cells that missed a goal are left out.

    missed: these instead, without steps and range: where a line that is drawn has a gap.  Raises ValueError if none of the
    trials met any.
    """
    slim = slimmed(trials)
    met = {g: slim.workload.isin(slim.workload[slim[f"steps@{g:g}"].notna()].unique()) for g in goals(slim)}
    if not met:
        ladder = ", ".join(c.removeprefix("steps@") for c in trials if c.startswith("steps@"))
        raise ValueError(f"goal: none of {len(trials)} trials met any of {ladder}; their lowest validation error was "
                         f"{trials.best_error.min():.3g}, so that easier goals or more steps are needed")  # fmt: skip
    curves = pd.concat([steps_to_result(slim[where], goal) for goal, where in met.items()], ignore_index=True)
    nothing = {"low": np.nan, "upper": np.nan} if missed else {}
    return curves[curves.steps.isna() if missed else curves.steps.notna()].reset_index(drop=True).assign(**nothing)


def well_met(trials: pd.DataFrame, hits: int = WHOLE[1]) -> float | None:
    """The hardest goal of the ladder that so many trials of a search met at every batch size, on average over its searches.

    trials: of one curve.  None if there is no such goal.
    """
    cells = trials.groupby(["batch_size", "replicate"])
    met = (g for g in goals(trials) if cells[f"steps@{g:g}"].count().groupby("batch_size").mean().min() >= hits)
    return next(met, None)


def mixed(trials: pd.DataFrame) -> dict[str, list]:
    """What these trials do not share of the protocol that a comparison needs to be of: field -> its values."""
    several = (c for c in PROTOCOL if c in trials and trials[c].nunique(dropna=False) > 1)
    return {c: trials[c].unique().tolist() for c in several}


def of_sizes(trials: pd.DataFrame, least: int) -> pd.DataFrame:
    """The trials of curves that are measured at so many batch sizes."""
    return trials[trials.groupby(CURVE).batch_size.transform("nunique") >= least] if len(trials) else trials


def ladders(curves: pd.DataFrame) -> dict[str, list[float]]:
    """The goals of every curve of a table with `curve` (its name) and workload, the hardest first."""
    return {name: list(workload(w).goals) for name, w in zip(curves.curve, curves.workload)}


def curve_names(frame: pd.DataFrame) -> list[str]:
    """The workload's title and the algorithm of every row."""
    titles = {name: workload(name).title for name in frame.workload.unique()}
    return [f"{titles[name]}, {named(algorithm)}" for name, algorithm in zip(frame.workload, frame.algorithm)]


def on_ladder(curves: pd.DataFrame) -> pd.DataFrame:
    """The curves of `all_goals` with `place`, that of the goal on its workload's ladder: 0 for the hardest."""
    return curves.assign(place=[workload(name).goals.index(g) for name, g in zip(curves.workload, curves.goal)])


def across_replicates(curve: pd.DataFrame) -> pd.DataFrame:
    """Replicates of a cell joined: steps (median), low, high (range), replicates (count of those that met the goal)."""
    keys = [c for c in CELL if c in curve and c not in SAME] + ["goal"]
    grouped = curve[curve.steps.notna()].groupby(keys, dropna=False).steps
    joined = grouped.agg(["median", "min", "max", "count"]).reset_index()
    return joined.rename(columns={"median": "steps", "min": "low", "max": "high", "count": "replicates"})


def reached(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials without the cells of which none met the goal."""
    return trials[trials.groupby([*CURVE, "batch_size", "replicate"]).steps.transform("count") > 0]


def unmet(trials: pd.DataFrame) -> int:
    """How many points of sparse curves have no search of which a trial met the goal."""
    sparse = trials[trials.sparsity > 0] if len(trials) else trials
    return int((sparse.groupby([*CURVE, "batch_size"]).steps.count() == 0).sum()) if len(sparse) else 0


def cut_short(trials: pd.DataFrame, n: int, hits: int) -> pd.DataFrame:
    """The table as searches of the first n trials would have left it that end once so many have met the goal."""
    cut = trials[trials.trial < n]
    ranks = cut.groupby([*CURVE, "batch_size", "replicate"]).steps
    end = cut.steps.where(ranks.rank(method="first") == hits).groupby([cut[k] for k in ranks.keys]).transform("max")
    last = end.fillna(cut.last_step)
    met = {c: cut[c].where(cut[c] <= last) for c in cut if c == "steps" or c.startswith("steps@")}
    return cut.assign(**met, last_step=last, trials=n)


def sparsest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows at the highest sparsity of their workload and algorithm."""
    return rows[rows.sparsity == rows.groupby(["workload", "algorithm"]).sparsity.transform("max")]
