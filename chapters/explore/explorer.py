"""Every curve at every goal, as tables from which the page draws what its reader chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.analysis import hardware, ranges, scaling
from lib.analysis.scaling import CURVE
from lib.claims import front, judging
from lib.probes import timings
from lib.records import selection
from lib.studies.study import Study
from lib.workloads import models
from lib.workloads.catalogue import workload

KEYS = [*CURVE, "goal"]
OVER = {"ratio": "over", "ratio_low": "over_low", "ratio_high": "over_high"}
POINTS = [*KEYS, "batch_size", "steps", "low", "high", "searches", "missed", *OVER.values()]
LINES = [*KEYS, "range", "c1", "c2", "critical", "critical_low", "critical_high", "identified"]
EXPORTED = [*LINES[:6], "compared", *POINTS[5:11], *LINES[6:]]
TIMES = ["workload", "hardware", "batch_size", "seconds"]
UPDATES = ["workload", "algorithm", "batch_size", "seconds"]
MACHINES = {
    "one-core": ("one core of ours", hardware.Hardware()),
    "64-cores": ("up to 64 such cores, messages at 1 GB/s", front.DEVICES),
}
TIMED = "momentum"  # the method with which steps were timed


def tables(trials: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points and the lines of every curve at every goal that one of its searches met.

    POINTS, a row per curve, goal and batch size: steps, low, high, missed (from
    `scaling.across_replicates`), searches (their number), and over, over_low, over_high: steps over
    the dense network's on shared searches, with its 90 % interval; NaN for dense networks, and if
    either curve has fewer than three batch sizes.  LINES, a row per curve and goal: the range of
    momentum ("whole" or "published"), the fit and the critical batch size with its 90 % interval
    (from `scaling.summaries`); NaN below three batch sizes.  Raises ValueError as that does.
    """
    points, lines, whole_curves = [], [], ranges.whole_curves(trials)
    for _, of_workload in trials.groupby("workload"):
        if not (searches := scaling.at_every_goal(of_workload)):
            continue
        met = scaling.across_replicates(pd.concat(searches.values()))
        for goal, of_goal in met.groupby("goal"):
            curve, line = _of_goal(searches[goal], of_goal)
            points.append(curve.assign(goal=goal)[POINTS])
            keys = line[CURVE].itertuples(index=False, name=None)
            range_of = ["whole" if key in whole_curves else "published" for key in keys]
            lines.append(line.assign(goal=goal, range=range_of)[LINES])
    return pd.concat(points, ignore_index=True), pd.concat(lines, ignore_index=True)


def exported() -> pd.DataFrame:
    """Every curve at every goal, over the published range of momentum and over the whole range.

    A row per curve, goal, range and batch size: EXPORTED, with `steps` K*, `low` and `high` its 90 %
    interval, c1/B + c2 the line, `critical` C = c1/c2, and `compared`: whether pages compare this
    curve at this goal and range.  Dense networks have pruning "dense" and sparsity 0.
    """
    drawn = (*front.gathered().searches, *selection.compared().searches)
    published = judging.to_goals(Study("exported", "All that pages draw or compare", drawn))
    long = ranges.whole(published, judging.low())
    parts = [published, long[long.space == ranges.WHOLE]]
    rows = pd.concat([points.merge(lines, on=KEYS) for points, lines in map(tables, parts)])
    read = judging.summary()[KEYS].merge(front.critical()[[*CURVE, "range"]], on=CURVE)
    rows = rows.merge(read.assign(compared=True), "left", [*KEYS, "range"])
    rows["compared"] = rows.compared.notna()
    rows["pruning"] = rows.pruning.where(rows.sparsity > 0, "dense")
    return rows.sort_values([*KEYS, "range", "batch_size"])[EXPORTED]


def _of_goal(searches: pd.DataFrame, points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`tables` at one goal, from all searches and from the points that some search met."""
    summary, curves = scaling.of_searches(searches)
    dense = {key[:2]: curve for key, curve in curves.items() if key[3] == 0}
    for key in list(curves):
        if key[:2] in dense:  # repeat the dense curve for every way of pruning
            curves[scaling.dense_key(key)] = dense[key[:2]]
    ratios = scaling.steps_over_dense(curves).rename(columns=OVER)
    ratios = ratios[[*CURVE, "batch_size", *OVER.values()]]
    points = points.rename(columns={"replicates": "searches"})
    points = points.merge(ratios, "left", [*CURVE, "batch_size"])
    return points, points[CURVE].drop_duplicates().merge(summary, "left", CURVE)


def cores(points: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Step times on one of our cores, by workload, where measured."""
    seconds = {name: timings.one_core(name) for name in points.workload.unique()}
    return {name: times for name, times in seconds.items() if times is not None}


def times(points: pd.DataFrame, timed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Seconds of a training step on each of MACHINES with the fastest number of devices, at the
    measured batch sizes and the powers of two between them: TIMES.

    timed: from `cores`.
    """
    parts = []
    for name, seconds in timed.items():
        batches = _filled(points.batch_size[points.workload == name].unique())
        weights = models.parameter_count(workload(name).network())
        for machine, (_, devices) in MACHINES.items():
            step = hardware.best_step(devices, batches, weights, seconds)
            step = step.rename_axis("batch_size").reset_index()
            parts.append(step.assign(workload=name, hardware=machine)[TIMES])
    return pd.concat(parts, ignore_index=True)


def updates(timed: Mapping[str, pd.DataFrame], ratios: pd.DataFrame) -> pd.DataFrame:
    """Seconds by which a step of each method takes longer than one of TIMED, where both were timed:
    UPDATES.

    timed: from `cores`.  ratios: workload, algorithm, batch_size, ratio (seconds of a step over
    SGD's, on one core).  Every device updates all weights, so these seconds do not depend on their
    number.
    """
    parts = []
    for name, of_workload in ratios.groupby("workload", sort=False):
        wide = of_workload.pivot(index="batch_size", columns="algorithm", values="ratio")
        if TIMED in wide and name in timed:
            step = hardware.interpolated(timed[name], wide.index)
            excess = wide.div(wide[TIMED], axis=0) - 1
            longer = excess.clip(lower=0).mul(step, axis=0)
            long = longer.melt(value_name="seconds", ignore_index=False)
            parts.append(long.reset_index().assign(workload=name))
    return pd.concat(parts, ignore_index=True)[UPDATES].dropna()


def _filled(sizes: Sequence[int]) -> np.ndarray:
    """Batch sizes and the powers of two between them."""
    powers = 2 ** np.arange(40)
    return np.union1d(sizes, powers[(min(sizes) <= powers) & (powers <= max(sizes))]).astype(
        int
    )
