"""Every curve at every goal as tables from which a page draws what its reader chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.analysis import hardware, scaling
from lib.analysis.scaling import CURVE
from lib.analysis.scaling.steps import slimmed
from lib.records import on_record
from lib.studies import plans
from lib.studies.study import Study

# Fields of the cells that are drawn: the usual ones, but pruned in any way and up to any number of
# steps.
FIELDS = {
    name: value for name, value in plans.USUAL.items() if name not in ("pruning", "max_steps")
}
KEYS = [*CURVE, "goal"]
POINTS = [
    *KEYS,
    "batch_size",
    "steps",
    "low",
    "high",
    "searches",
    "missed",
    "over",
    "over_low",
    "over_high",
]
LINES = [*KEYS, "c1", "c2", "critical", "critical_low", "critical_high", "identified"]
TIMES = ["workload", "hardware", "batch_size", "seconds"]
UPDATES = ["workload", "algorithm", "batch_size", "seconds"]
# Studies of many methods, which other pages leave to a chapter of their own.
METHODS = ("digits-which", "digits-which-more", "digits-which-sparse")
TIMED = "momentum"  # the method with which steps were timed


def gathered(*more: Study) -> Study:
    """The cells on record that are drawn: those of all studies, of METHODS and of `more`; as
    `on_record.gathered`.
    """
    return on_record.gathered(*more, *map(plans.study, METHODS), **FIELDS)


def tables(trials: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points and the lines of every curve at every goal that one of its searches met.

    POINTS, a row per curve, goal and batch size: steps, low, high, missed (as
    `scaling.across_replicates`), searches (count), over, over_low, over_high: steps over the dense
    network's on shared searches with its 90 % interval, NaN where one of the two has fewer than
    three batch sizes, and for dense networks. LINES, a row per curve and goal: the fit and the
    critical batch size with its 90 % interval (as `scaling.summaries`), NaN for fewer than three
    batch sizes.  Raises ValueError as `scaling.summaries`.
    """
    points, lines = [pd.DataFrame(columns=POINTS)], [pd.DataFrame(columns=LINES)]
    for _, own in slimmed(trials).groupby("workload") if len(trials) else ():
        searches = scaling.at_every_goal(own)
        met = scaling.across_replicates(pd.concat(searches.values())) if searches else points[0]
        for goal, found in met.groupby("goal"):
            curve, line = _at(searches[goal], found)
            points.append(curve.assign(goal=goal)[POINTS])
            lines.append(line.assign(goal=goal)[LINES])
    return tuple(
        pd.concat([p for p in parts if len(p)] or parts, ignore_index=True)
        for parts in (points, lines)
    )


def _at(searches: pd.DataFrame, points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`tables` at one goal, of all searches and of the points that one of them met."""
    summary, curves = scaling.of_searches(searches)
    over = scaling.steps_over_dense(_beside_dense(curves)).drop(columns=["n", "effect"])
    over = over.rename(
        columns={"ratio": "over", "ratio_low": "over_low", "ratio_high": "over_high"}
    )
    points = points.rename(columns={"replicates": "searches"}).merge(
        over, "left", [*CURVE, "batch_size"]
    )
    return points, points[CURVE].drop_duplicates().merge(summary, "left", CURVE)


def _beside_dense(curves: dict) -> dict:
    """Curves by key, the dense ones once for every way of pruning: they are pruned in none."""
    dense = {key[:2]: curve for key, curve in curves.items() if key[3] == 0}
    return curves | {scaling.dense_key(key): dense[key[:2]] for key in curves if key[:2] in dense}


def times(
    measured: Mapping[str, pd.DataFrame | None],
    weights: Mapping[str, int],
    machines: Mapping[str, hardware.Hardware],
    sizes: Mapping[str, Sequence[int]],
) -> pd.DataFrame:
    """Seconds of a training step where a device was timed, on as many devices as is fastest: TIMES.

    measured: workload -> the times of one device (`hardware.step_time`), or None.  weights:
    workload -> parameters.  sizes: workload -> batch sizes; the powers of two between them are
    added.  Raises ValueError as `hardware.best_step`.
    """
    parts = [pd.DataFrame(columns=TIMES)]
    for name, known in measured.items():
        for machine, devices in machines.items() if known is not None else ():
            batches = _filled(sizes[name])
            seconds = hardware.best_step(devices, batches, weights[name], known).seconds.to_numpy()
            parts.append(
                pd.DataFrame(
                    {
                        "workload": name,
                        "hardware": machine,
                        "batch_size": batches,
                        "seconds": seconds,
                    }
                )
            )
    return pd.concat(parts[1:] or parts, ignore_index=True)


def updates(measured: Mapping[str, pd.DataFrame | None], ratios: pd.DataFrame) -> pd.DataFrame:
    """Seconds by which a step with a method takes longer than the step timed, wherever both were
    timed: UPDATES.

    measured: as of `times`.  ratios: workload, algorithm, batch_size, ratio (a step's seconds over
    SGD's, on one core).  Every device updates all weights, so that these seconds are the same on
    any number.
    """
    parts = [pd.DataFrame(columns=UPDATES)]
    for name, own in ratios.groupby("workload", sort=False):
        wide = own.pivot(index="batch_size", columns="algorithm", values="ratio")
        if TIMED not in wide or (known := measured.get(name)) is None:
            continue
        seconds = np.exp(
            np.interp(np.log(wide.index), np.log(known.batch_size), np.log(known.seconds))
        )
        more = wide.div(wide[TIMED], axis=0).sub(1).clip(lower=0).mul(seconds, axis=0)
        parts.append(
            more.melt(value_name="seconds", ignore_index=False)
            .reset_index()
            .assign(workload=name)[UPDATES]
        )
    return pd.concat(parts[1:] or parts, ignore_index=True).dropna()


def _filled(sizes: Sequence[int]) -> np.ndarray:
    """Batch sizes and the powers of two between them."""
    powers = {2**n for n in range(40)}
    return np.array(
        sorted({*map(int, sizes), *(b for b in powers if min(sizes) <= b <= max(sizes))})
    )
