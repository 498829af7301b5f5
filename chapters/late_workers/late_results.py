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


def known(found: dict[tuple, Curve], workload: str, algorithm: str) -> list[int]:
    """The fixed delays, 0 first, of which a method has curves on a workload; none without the curve
    on time.
    """
    of = sorted(
        s
        for work, method, delays, s in found
        if (work, method, delays) == (workload, algorithm, "fixed")
    )
    return of if of[:1] == [0] else []


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
    for key in found:
        if key == timely(key) or timely(key) not in found:
            continue
        ends = {"small": SIZES[:1], "large": SIZES[-1:], "mean": SIZES}
        told = [slower(found, key, sizes=sizes).row(name) for name, sizes in ends.items()]
        about = {
            **dict(zip(LATE, key, strict=True)),
            "floor": floor(key[3]) if key[2] == "fixed" else np.nan,
        }
        rows.append({name: value for part in (about, *told) for name, value in part.items()})
    columns = [
        f"{name}{end}" for name in ("small", "large", "mean") for end in ("", "_low", "_high")
    ]
    return pd.DataFrame(rows, columns=[*LATE, "floor", *columns])


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
        one, times = (fits[0], floor(s)) if predict else (fits[s], 1.0)
        for b in np.geomspace(part.batch_size.min(), part.batch_size.max(), PLACES):
            rows.append((s, b, one.c1[0] / b + times * one.c2[0]))
    return pd.DataFrame(rows, columns=["staleness", "batch_size", "steps"])


def advantage(
    found: dict[tuple, Curve], workload: str, algorithm: str, over: str = "sgd"
) -> pd.DataFrame:
    """Steps of one method over those of another with delays as long, at the largest of SIZES: a row
    per fixed staleness.

    staleness, ratio with ratio_low and ratio_high.
    """
    rows = []
    for (work, method, delays, s), curve in found.items():
        other = found.get((workload, over, delays, s))
        if (work, method, delays) == (workload, algorithm, "fixed") and other is not None:
            rows.append(
                {"staleness": s, **scaling.mean_steps_ratio(other, curve, SIZES[-1:]).row("ratio")}
            )
    columns = ["staleness", "ratio", "ratio_low", "ratio_high"]
    return pd.DataFrame(rows, columns=columns).sort_values("staleness", ignore_index=True)


def without_waiting(found: dict[tuple, Curve], workload: str, algorithm: str) -> pd.DataFrame:
    """W workers that take turns against one synchronous batch of W times theirs: a row per W.

    ratio, ratio_low, ratio_high: gradients to the goal, K_{W-1}(b) / (W K_0(W b)), the geometric
    mean over batch sizes b of a worker (sizes: how many), on shared searches.
    """
    base = found.get((workload, algorithm, "fixed", 0))
    rows = []
    for (work, method, delays, s), curve in found.items():
        if (work, method, delays) != (workload, algorithm, "fixed") or not s or base is None:
            continue
        workers = s + 1
        names = {
            b: b // workers for b in base.logs if b // workers in curve.logs and b % workers == 0
        }
        shared = dataclasses.replace(
            base,
            **{k: getattr(base, k)[[*names]].rename(columns=names) for k in ("logs", "missed")},
        )
        if names:
            effect = scaling.mean_steps_ratio(curve, shared)
            rows.append(
                {
                    "workers": workers,
                    "sizes": len(names),
                    **dataclasses.replace(effect, value=effect.value - np.log(workers)).row(
                        "ratio"
                    ),
                }
            )
    columns = ["workers", "sizes", "ratio", "ratio_low", "ratio_high"]
    return pd.DataFrame(rows, columns=columns).sort_values("workers", ignore_index=True)
