"""Ratios of critical batch sizes from all that searches record, and scatter pooled over networks.

The fewest steps are the noisiest result of a search.  Curves of the next trials bend at nearly the
same batch size, and those of easier goals sooner, but two alike: the mean of ln C over them
scatters less between searches, and the ratio of two curves has nearly the same expectation
(`python -m chapters.claims.estimator`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from lib import forms
from lib.analysis.scaling.curve import (
    ENOUGH,
    Curve,
    Effect,
    alike,
    critical_ratio,
    curves_of,
    estimate,
)
from lib.analysis.scaling.steps import POINT, goal
from lib.workloads.catalogue import WORKLOADS

# How many trials count at a workload's goal and at the easier ones after it, the hardest first
RUNGS = (2, 5, 10, 10)
LEAST = 0.05  # p-value with which variances count as equal


def ladders(searches: pd.DataFrame, orders: pd.DataFrame) -> dict[tuple, list[Curve]]:
    """The curves of every network and method, one per rung, by their CURVE keys.

    Args:
        searches: rows as from `lib.records.results.of_searches`, or two per search if momentum's
            range was searched in halves.
        orders: of the records, in columns record, goal and k1 ... k10 (steps in which the first
            trials met the goal).

    A search ends after some hits of its hardest goal; later trials are unknown.  A race abandons
    slow trials, so its curve uses only the first trial to its goal: easier goals without later
    trials add nothing (`chapters.claims.estimator`).
    """
    columns = [name for name in orders if name.startswith("k") and name[1:].isdigit()]
    fields = searches.drop_duplicates("record").drop(columns=["goal", "steps"])
    every_goal = fields.merge(orders[["record", "goal", *columns]], on="record")
    ladder = {}
    for (workload, _), rows in every_goal.groupby(["workload", "algorithm"]):
        hardest = rows.goal.min()
        for error, trials in _rungs(workload, raced=rows.race.notna().any()):
            if error == hardest:
                trials = min(trials, int(rows.hits.median()))
            steps = _steps(rows[rows.goal == error], columns, trials)
            for key, curve in curves_of(steps).items() if len(steps) else ():
                ladder.setdefault(key, []).append(curve)
    return ladder


def _rungs(workload: str, raced: bool) -> list[tuple[float, int]]:
    """A workload's goals from the one at which it is read, the hardest first, and how many trials
    count at each; for races, only the first trial at that goal.
    """
    if raced or workload not in WORKLOADS:
        return [(goal(workload), 1)]
    goals = sorted(g for g in WORKLOADS[workload].goals if g >= goal(workload))
    return list(zip(goals, RUNGS))


def _steps(rows: pd.DataFrame, columns: list[str], trials: int) -> pd.DataFrame:
    """A row per search with the geometric mean of the steps of its first `trials` trials that met
    the goal, from both halves if there are two.
    """
    melted = rows.melt([*POINT, "goal", "last_step"], columns, value_name="step")
    by = melted.sort_values("step", kind="stable").groupby(POINT, dropna=False)
    ends = by.agg(last_step=("last_step", "max"), goal=("goal", "min"))
    first = by.head(trials).assign(log=lambda trials: np.log(trials.step))
    return ends.assign(
        steps=np.exp(first.groupby(POINT, dropna=False).log.mean())
    ).reset_index()


def shared_ratio(above: Sequence[Curve], below: Sequence[Curve]) -> Effect | None:
    """ln of one critical batch size over another, averaged over rungs, unbounded if a rung's is;
    None if no rung has three batch sizes of both.
    """
    pairs = [alike(*pair) for pair in zip(above, below)]
    pairs = [pair for pair in pairs if min(curve.met.sum() for curve in pair) >= 3]
    if not pairs:
        return None

    def mean(*rows: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        logs = [forms.log_critical(*row) for row in rows]
        return np.mean([a - b for a, b in zip(logs[::2], logs[1::2])], axis=0)

    ratio = estimate(mean, *(curve for pair in pairs for curve in pair))
    rungs = [critical_ratio(*pair) for pair in pairs]
    below = any(rung.below for rung in rungs)
    return replace(ratio, below=below, above=any(rung.above for rung in rungs))


# --- scatter --------------------------------------------------------------------------------------


def pooled(
    effects: Mapping[tuple, Effect], alike: Callable[[tuple], bool]
) -> dict[tuple, Effect]:
    """The estimates by key, with the scatter pooled over those that are alike and have ENOUGH
    searches, if Bartlett's test of equal variances allows (p >= LEAST; approximate, since errors
    are from the jackknife); a single search gets the pooled scatter, too.
    """
    group = [effect for key, effect in effects.items() if alike(key)]
    group = [effect for effect in group if effect.n >= ENOUGH and 0 < effect.error < np.inf]
    if len(group) < 2:
        return dict(effects)
    freedoms = np.array([effect.n - 1.0 for effect in group])
    variances = np.array([effect.error**2 * effect.n for effect in group])
    freedom = freedoms.sum()
    variance = (freedoms @ variances) / freedom
    excess = freedom * np.log(variance) - freedoms @ np.log(variances)
    parts = (1 / freedoms).sum() - 1 / freedom
    if chdtrc(len(group) - 1, excess / (1 + parts / (3 * (len(group) - 1)))) < LEAST:
        return dict(effects)
    sd, freedom = float(variance**0.5), float(freedom)
    return {
        key: replace(e, error=sd / e.n**0.5, freedom=freedom) if alike(key) else e
        for key, e in effects.items()
    }
