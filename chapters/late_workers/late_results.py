"""What late gradients cost: curves of every staleness beside the one without delay, and workers
that do not wait beside a batch.

A curve is named by LATE: workload, algorithm, delays ("fixed" or "uniform") and staleness; without
delay, delays is "fixed".
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from chapters.late_workers import late_quadratic
from chapters.late_workers.studies import STUDIES
from lib.analysis import goals, scaling
from lib.analysis.scaling import Curve, Effect
from lib.records import results
from lib.studies.study import Study

WORK = "digits-mlp"
LATE = ["workload", "algorithm", "delays", "staleness"]
SIZES = (4, 16, 64, 256)  # batch sizes that curves of every delay have
PLACES = 40  # along a line
JUDGED = 7  # the staleness at which methods and depths are compared


def measured() -> pd.DataFrame:
    """All trials with late gradients, and without, of the studies of these, each workload at its
    goal.
    """
    cells = tuple(cell for study in STUDIES for cell in study.cells)
    return goals.at_goals(results.read(Study("late", "Late gradients", cells)))


def curves(trials: pd.DataFrame) -> dict[tuple, Curve]:
    """Every curve of the table at its goal, by LATE."""
    if not len(trials):
        return {}
    searches = scaling.steps_to_result(trials)
    return {key: scaling.curve_of(own) for key, own in searches.groupby(LATE)}


def points(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.across_replicates` of every curve, one below the other."""
    searches = scaling.steps_to_result(trials).groupby(LATE)
    return pd.concat([scaling.across_replicates(own) for _, own in searches], ignore_index=True)


def known(found: dict[tuple, Curve], algorithm: str) -> list[int]:
    """The fixed delays, 0 first, of which a method has curves on the MLP; none without the curve on
    time.
    """
    late = sorted(key[3] for key in found if key[:3] == (WORK, algorithm, "fixed"))
    return late if late[:1] == [0] else []


def timely(key: tuple) -> tuple:
    """The curve without delay of the same workload and method."""
    return (*key[:2], "fixed", 0)


def slower(
    found: dict[tuple, Curve], *keys: tuple, sizes: tuple[int, ...] = SIZES
) -> Effect | None:
    """ln of steps of a late curve over those without delay, the mean over these batch sizes of
    searches of both.

    Of two keys, that of the first over that of the second.  None if a curve is not measured.
    """
    own = [found.get(one) for key in keys for one in (key, timely(key))]
    if any(curve is None for curve in own):
        return None
    signs = (1, -1, -1, 1)
    return scaling.estimate(
        lambda *each: sum(sign * logs.mean(1) for sign, (_, logs) in zip(signs, each)),
        *(curve.at([b for b in sizes if b in curve.logs]) for curve in own),
    )


def growth(found: dict[tuple, Curve]) -> pd.DataFrame:
    """A row per late curve: LATE, and with their ends (name_low, name_high, 90 %) what late steps
    over timely ones are.

    small, large: at the smallest and largest of SIZES; mean: the geometric mean over SIZES.  floor:
    what `late_quadratic` says of an endless batch for fixed delays, else NaN.
    """
    rows = []
    ends = {"small": SIZES[:1], "large": SIZES[-1:], "mean": SIZES}
    for key in found:
        if key != timely(key) and timely(key) in found:
            row = dict(zip(LATE, key), floor=floor(key[3]) if key[2] == "fixed" else np.nan)
            for name, sizes in ends.items():
                row |= slower(found, key, sizes=sizes).row(name)
            rows.append(row)
    return pd.DataFrame(rows)


def floor(staleness: int) -> float:
    """By what factor the stable rate falls, and the floor of the noisy quadratic model rises, with
    plain SGD.
    """
    return late_quadratic.stability_limit(0) / late_quadratic.stability_limit(staleness)


def lines(points: pd.DataFrame, predict: bool) -> pd.DataFrame:
    """A line for every staleness of a method, along the batch sizes of its points: staleness,
    batch_size, steps.

    predict: c1/B + `floor` c2 with the constants of the curve without delay; else each staleness
    has constants of its own. points: of `points`, of one method and kind of delays.  A staleness
    with fewer than three sizes has no line.
    """
    own = {s: part for s, part in points.groupby("staleness") if len(part) >= 3}
    fits = {s: scaling.fit(part.batch_size, np.log(part.steps)) for s, part in own.items()}
    rows = []
    for s, part in own.items():
        one = fits[0 if predict else s]
        times = floor(s) if predict else 1.0
        ends = part.batch_size.agg(["min", "max"])
        sizes = np.geomspace(*ends, PLACES)
        steps = one.c1[0] / sizes + times * one.c2[0]
        rows.append(pd.DataFrame({"staleness": s, "batch_size": sizes, "steps": steps}))
    return pd.concat(rows)


def over_adam(found: dict[tuple, Curve], staleness: int) -> float | None:
    """SGD's steps over Adam's with gradients as late, at the largest of SIZES; None where one has
    no curve.
    """
    sgd, adam = (found.get((WORK, m, "fixed", staleness)) for m in ("sgd", "adam"))
    both = sgd is not None and adam is not None
    return scaling.mean_steps_ratio(sgd, adam, SIZES[-1:]).row()[""] if both else None


def without_waiting(found: dict[tuple, Curve], algorithm: str) -> pd.DataFrame:
    """W workers that take turns against one synchronous batch of W times theirs: a row per W.

    ratio, ratio_low, ratio_high: gradients to the goal, K_{W-1}(b) / (W K_0(W b)), the geometric
    mean over batch sizes b of a worker (sizes: how many), on shared searches.
    """
    rows = []
    (_, *late) = known(found, algorithm)
    base = found[WORK, algorithm, "fixed", 0]
    for workers in (staleness + 1 for staleness in late):
        curve = found[WORK, algorithm, "fixed", workers - 1]
        of_one = {b: b // workers for b in base.logs if b % workers == 0}
        names = {b: own for b, own in of_one.items() if own in curve.logs}
        if names:
            tables = (table[[*names]].rename(columns=names) for table in (base.logs, base.missed))
            effect = scaling.mean_steps_ratio(curve, Curve(*tables, base.scatter))
            effect = dataclasses.replace(effect, value=effect.value - np.log(workers))
            row = {"workers": workers, "sizes": len(names)}
            rows.append(row | effect.row("ratio"))
    return pd.DataFrame(rows)
