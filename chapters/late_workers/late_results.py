"""What late gradients cost: curves of every staleness beside the one without delay, and workers
that do not wait beside a batch.

A curve is named by LATE: workload, algorithm, delays ("fixed" or "uniform") and staleness; without
delay, delays is "fixed".
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.forms import Fits
from lib.records import results
from lib.studies import plans
from lib.studies.study import Study

WORK = "digits-mlp"
LATE = ["workload", "algorithm", "delays", "staleness"]
SIZES = (4, 16, 64, 256)  # batch sizes that curves of every delay have
JUDGED = 7  # the staleness at which methods and depths are compared


def measured() -> pd.DataFrame:
    """All trials with late gradients, and without, each workload at its goal."""
    names = "staleness", "staleness-depth"
    cells = (cell for name in names for cell in plans.study(name).cells)
    return scaling.at_goals(results.read(Study("late", "Late gradients", cells)))


def curves(trials: pd.DataFrame) -> dict[tuple, Curve]:
    """Every curve of the table, by LATE."""
    searches = scaling.steps_to_result(trials).groupby(LATE) if len(trials) else ()
    return {key: scaling.curve_of(own) for key, own in searches}


def points(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.across_replicates` of every curve, one below the other."""
    searches = scaling.steps_to_result(trials).groupby(LATE)
    return pd.concat([scaling.across_replicates(own) for _, own in searches], ignore_index=True)


def slower(found: dict[tuple, Curve], *keys: tuple, sizes=SIZES) -> Effect | None:
    """ln of steps of a late curve over those without delay, the mean over these batch sizes of
    searches of both; of two keys, that of the first over that of the second.  None if a curve is
    not measured.
    """
    timely = [(*key[:2], "fixed", 0) for key in keys]
    own = [found.get(one) for one in itertools.chain(*zip(keys, timely))]
    if any(curve is None for curve in own):
        return None
    signs = (1, -1, -1, 1)
    return scaling.estimate(
        lambda *each: sum(sign * logs.mean(1) for sign, (_, logs) in zip(signs, each)),
        *(curve.at([b for b in sizes if b in curve.logs]) for curve in own),
    )


def growth(found: dict[tuple, Curve]) -> pd.DataFrame:
    """A row per late curve, least late first: LATE; small and large: steps over timely ones at the
    smallest and largest of SIZES, with their ends; and floor: `floor` of a fixed delay.
    """
    rows = []
    for key in sorted((key for key in found if key[3]), key=lambda key: key[3]):
        small, large = (slower(found, key, sizes=size) for size in (SIZES[:1], SIZES[-1:]))
        row = dict(zip(LATE, key), floor=floor(key[3]))
        rows.append(row | small.row("small") | large.row("large"))
    return pd.DataFrame(rows)


def stability_limit(staleness: int) -> float:
    """Below which rate times curvature must lie for plain SGD to settle: 2 sin(pi / (2 (2 s + 1))).

    A root z = e^{i a} of z^{s+1} - z^s + x has x = z^s (1 - z) = 2 sin(a/2) e^{i ((s + 1/2) a -
    pi/2)}; this is first positive at a = pi / (2 s + 1).
    """
    return 2 * math.sin(math.pi / (2 * (2 * staleness + 1)))


def floor(staleness: int) -> float:
    """By what factor the stable rate of plain SGD falls, and a noisy quadratic's floor rises."""
    return stability_limit(0) / stability_limit(staleness)


def lines(points: pd.DataFrame) -> pd.DataFrame:
    """What the curve without delay predicts for every staleness of plain SGD, along the batch sizes
    of its points: c1/B + `floor` c2 (staleness, batch_size, steps).
    """
    fit = on_time(points)
    rows = []
    for s, part in points.groupby("staleness"):
        sizes = np.geomspace(part.batch_size.min(), part.batch_size.max(), 40)
        steps = fit.c1[0] / sizes + floor(s) * fit.c2[0]
        rows.append(pd.DataFrame({"staleness": s, "batch_size": sizes, "steps": steps}))
    return pd.concat(rows)


def on_time(points: pd.DataFrame) -> Fits:
    """The line (`scaling.fit`) of the curve without delay."""
    timely = points[points.staleness == 0]
    return scaling.fit(timely.batch_size, np.log(timely.steps))


def over_adam(found: dict[tuple, Curve], staleness: int) -> float:
    """SGD's steps over Adam's with gradients as late, at the largest of SIZES."""
    sgd, adam = (found[WORK, m, "fixed", staleness] for m in ("sgd", "adam"))
    return scaling.mean_steps_ratio(sgd, adam, SIZES[-1:]).row()[""]


def without_waiting(found: dict[tuple, Curve], algorithm: str) -> pd.DataFrame:
    """W workers that take turns against one synchronous batch of W times theirs: a row per W.

    ratio, ratio_low, ratio_high: gradients to the goal, K_{W-1}(b) / (W K_0(W b)), the geometric
    mean over batch sizes b of a worker, on shared searches.
    """
    rows = []
    own = {key[3]: curve for key, curve in found.items() if key[:3] == (WORK, algorithm, "fixed")}
    base = own.pop(0)
    for staleness, curve in sorted(own.items()):
        workers = staleness + 1
        of_one = {b: b // workers for b in base.logs if b % workers == 0}
        names = {b: size for b, size in of_one.items() if size in curve.logs}
        tables = (table[[*names]].rename(columns=names) for table in (base.logs, base.missed))
        effect = scaling.mean_steps_ratio(curve, Curve(*tables, base.scatter))
        effect = dataclasses.replace(effect, value=effect.value - np.log(workers))
        rows.append({"workers": workers, **effect.row("ratio")})
    return pd.DataFrame(rows)
