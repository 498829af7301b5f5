"""What late gradients cost: curves at every staleness beside the curve without delay, and workers
that do not wait beside one synchronous batch.

The key of a curve is LATE: workload, algorithm, delays ("fixed" or "uniform") and staleness;
without delay, delays is "fixed".
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import altair as alt
import numpy as np
import pandas as pd

from lib import forms
from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.page import charts, tips
from lib.records import results
from lib.studies import plans
from lib.studies.study import Study
from lib.wording import named, with_interval

WORK = "digits-mlp"
LATE = ["workload", "algorithm", "delays", "staleness"]
SMALL, *_, LARGE = SIZES = (4, 16, 64, 256)  # batch sizes measured with every delay
JUDGED = 7  # the staleness at which methods are compared
LISTED = (JUDGED, 31)  # in the table; the figure shows all
METHODS = ("sgd", "momentum", "adam")
DEPTHS = {"digits-mlp-64x1": ", one hidden layer", "digits-mlp-64x4": ", four hidden layers"}
COLOURS = (charts.BLUE, charts.TEAL, charts.GREEN, charts.ORANGE, charts.PINK, charts.RED)


def measured() -> pd.DataFrame:
    """All trials of these studies, with late gradients and without, each workload at its goal."""
    names = "staleness", "staleness-depth"
    cells = (cell for name in names for cell in plans.study(name).searches)
    return scaling.at_goals(results.read(Study("late", "Late gradients", cells)))


def curves(trials: pd.DataFrame) -> dict[tuple, Curve]:
    """Every curve of these trials, by LATE."""
    searches = scaling.steps_to_result(trials).groupby(LATE) if len(trials) else ()
    return {key: scaling.curve_of(rows) for key, rows in searches}


def slower(curves: dict[tuple, Curve], *keys: tuple, sizes=SIZES) -> Effect | None:
    """ln of a late curve's steps over those without delay, the mean over these batch sizes, on
    shared searches; for two keys, the first ratio over the second.  None if a curve is not
    measured.
    """
    timely = [(*key[:2], "fixed", 0) for key in keys]
    terms = [curves.get(key) for key in itertools.chain(*zip(keys, timely))]
    if any(curve is None for curve in terms):
        return None
    signs = (1, -1, -1, 1)
    return scaling.estimate(
        lambda *tables: sum(sign * logs.mean(1) for sign, (_, logs) in zip(signs, tables)),
        *(curve.select([b for b in sizes if b in curve.logs]) for curve in terms),
    )


def growth(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """A row per late curve, least late first: LATE; small and large: steps over those without delay
    at the smallest and largest of SIZES, with intervals.
    """
    rows = []
    for key in sorted((key for key in curves if key[3]), key=lambda key: key[3]):
        small, large = (slower(curves, key, sizes=[size]) for size in (SMALL, LARGE))
        rows.append(dict(zip(LATE, key)) | small.row("small") | large.row("large"))
    return pd.DataFrame(rows)


def stability_limit(staleness: int) -> float:
    """Plain SGD converges if rate times curvature is below this limit: 2 sin(pi / (2 (2 s + 1))).

    A root z = e^{i a} of z^{s+1} - z^s + x has x = z^s (1 - z) = 2 sin(a/2) e^{i ((s + 1/2) a -
    pi/2)}, which is first real and positive at a = pi / (2 s + 1).
    """
    return 2 * math.sin(math.pi / (2 * (2 * staleness + 1)))


def floor(staleness: int) -> float:
    """Factor by which plain SGD's largest stable rate falls and a noisy quadratic's floor rises."""
    return stability_limit(0) / stability_limit(staleness)


def predicted(points: pd.DataFrame, staleness: int, sizes: np.ndarray) -> np.ndarray:
    """Steps of plain SGD [n] at `sizes` [n], from the curve without delay: c1/B + `floor` c2."""
    timely = points[points.staleness == 0]
    fit = forms.fit(timely.batch_size, np.log(timely.steps))
    return fit.c1[0] / sizes + floor(staleness) * fit.c2[0]


def lines(points: pd.DataFrame) -> pd.DataFrame:
    """`predicted` for every staleness, over its batch sizes: staleness, batch_size, steps."""
    rows = []
    for s, part in points.groupby("staleness"):
        sizes = np.geomspace(part.batch_size.min(), part.batch_size.max(), 40)
        steps = predicted(points, s, sizes)
        rows.append(pd.DataFrame({"staleness": s, "batch_size": sizes, "steps": steps}))
    return pd.concat(rows)


def without_waiting(curves: dict[tuple, Curve], algorithm: str) -> pd.DataFrame:
    """W workers that take turns, against one synchronous batch W times as large: a row per W.

    ratio, ratio_low, ratio_high: gradients to the goal, K_{W-1}(b) / (W K_0(W b)), the geometric
    mean over batch sizes b per worker, on shared searches.
    """
    rows, kind = [], (WORK, algorithm, "fixed")
    late = {key[3]: curve for key, curve in curves.items() if key[:3] == kind}
    timely = late.pop(0)
    for staleness, curve in sorted(late.items()):
        workers = staleness + 1
        sizes = {b: b // workers for b in timely.logs if b % workers == 0}
        names = {b: size for b, size in sizes.items() if size in curve.logs}
        logs = timely.logs[[*names]].rename(columns=names)
        missed = timely.missed[[*names]].rename(columns=names)
        batches = Curve(logs, missed, timely.scatter)
        effect = scaling.mean_steps_ratio(curve, batches)
        effect = dataclasses.replace(effect, value=effect.value - np.log(workers))
        rows.append({"workers": workers, **effect.row("ratio")})
    return pd.DataFrame(rows)


def turns(curves: dict[tuple, Curve]) -> dict[str, pd.DataFrame]:
    """`without_waiting` for every method, a row per number of workers."""
    return {name: without_waiting(curves, name).set_index("workers") for name in METHODS}


def table(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """Late curves compared with those without delay."""
    rows, cells = growth(curves), []
    rows = rows[rows.staleness.isin(LISTED)]
    rows["place"] = rows.algorithm.map(METHODS.index)
    for row in rows.sort_values(["workload", "place", "delays", "staleness"]).itertuples():
        late = f"{row.staleness}" if row.delays == "fixed" else f"0 to {row.staleness}, drawn"
        cells.append({
            "training method": named(row.algorithm) + DEPTHS.get(row.workload, ""),
            "steps late": late,
            f"step ratio, batch {SMALL}": with_interval(row.small, row.small_low, row.small_high),
            f"batch {LARGE}": with_interval(row.large, row.large_low, row.large_high),
        })  # fmt: skip
    return pd.DataFrame(cells)


def _words(staleness: int) -> str:
    late = f"{staleness} step{'s' if staleness > 1 else ''} late"
    return late if staleness else "on time"


def points_of(trials: pd.DataFrame) -> pd.DataFrame:
    """The curves of SGD on WORK with fixed delays, from `scaling.across_replicates`, joined."""
    trials = trials[(trials.workload == WORK) & (trials.algorithm == "sgd")]
    searches = scaling.steps_to_result(trials[trials.delays == "fixed"]).groupby(LATE)
    parts = (scaling.across_replicates(rows) for _, rows in searches)
    return pd.concat(parts, ignore_index=True)


def chart(points: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, one colour per staleness; from `points_of`; dashed: `lines`."""
    dashed = lines(points)
    colours = dict(zip(map(_words, sorted(points.staleness.unique())), COLOURS))
    pick, faded = charts.picked("gradients")
    lowest = min(points.low.clip(lower=points.steps / 3).min(), dashed.steps.min())
    span = [lowest / 1.2, points.steps.max() * 2.5]
    ends = {f"bar_{end}": points[end].clip(*span) for end in ("low", "high")}
    points = tips.with_sources(points).assign(gradients=points.staleness.map(_words), **ends)
    scale = charts.log(domain=span)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    base = alt.Chart(points).encode(
        x=charts.batch_axis(points.batch_size),
        color=charts.by_name("gradients", colours, 2),
        opacity=faded,
    )
    theory = base.properties(data=dashed.assign(gradients=dashed.staleness.map(_words)))
    theory = theory.mark_line(strokeDash=[5, 4], strokeWidth=2, clip=True).encode(y=y)
    low = alt.Y("bar_low:Q", scale=scale)
    bars = base.mark_rule(strokeWidth=2).encode(y=low, y2="bar_high:Q")
    dots = base.mark_point(filled=True, size=64, opacity=1)
    dots = dots.encode(y=y, tooltip=tips.points("gradients"))
    return charts.sized(alt.layer(theory.add_params(pick), bars, dots), 340)
