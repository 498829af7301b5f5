"""The figures of the page on theory and the gradient’s noise."""

from __future__ import annotations

import json

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.wording import span


def residuals(points: pd.DataFrame, start: str | None) -> alt.LayerChart:
    """Steps over each curve's own c1/B + c2, along the batch size over the critical one; a menu of
    methods, a line per curve.

    points: of `findings.Measured`, with curve and method.  start: the method shown at first; any
    if None.
    """
    if points.empty:
        return charts.nothing("No curve of five batch sizes or more is measured.")
    drawn = points.assign(x=points.batch_size / points.critical, y=np.exp(points.over))
    first = start or points.method.iloc[0]
    menu = charts.menu("method", sorted(points.method.unique()), first, "method")
    title = "batch size over the critical batch size"
    x = alt.X("x:Q", title=title, scale=charts.log(8), axis=charts.fractions())
    up = charts.log(8, base=alt.Undefined)
    # A logarithmic axis would leave most of its ticks without labels
    ticks = [t for t in np.arange(0.5, 2, 0.05).round(2) if drawn.y.min() <= t <= drawn.y.max()]
    axis = alt.Axis(format=".2f", values=ticks, labelOverlap="greedy")
    y = alt.Y("y:Q", title="steps over c₁/B + c₂", scale=up, axis=axis)
    over = tips.tip("y:Q", "steps over the form", ".2f")
    tooltip = [tips.CURVE, tips.SPARSITY, tips.BATCH_SIZE, over]
    colour = charts.by_sparsity(sorted(points.sparsity.unique()))
    base = alt.Chart(drawn).encode(x=x, y=y, color=colour, detail=["curve:N", "sparsity:N"])
    layers = [
        base.mark_line(strokeWidth=1.2, opacity=0.5),
        base.mark_point(filled=True, size=34, opacity=1).encode(tooltip=tooltip),
    ]
    ends = [float(drawn.x.min()), float(drawn.x.max())]
    line = alt.Chart(pd.DataFrame({"x": ends, "y": [1.0, 1.0]})).mark_line(color=charts.GUIDE)
    within = {"x": ends[:1], "to": ends[1:], "low": [1 / 1.1], "high": [1.1]}
    band = alt.Chart(pd.DataFrame(within)).mark_rect(color=charts.GUIDE, opacity=0.15)
    band = band.encode(x=x, x2="to:Q", y=alt.Y("low:Q", scale=up), y2="high:Q")
    own = charts.controlled(layers, menu)
    return charts.sized(alt.layer(own, band, line.encode(x=x, y=y)), 340)


def constants(pairs: pd.DataFrame) -> alt.LayerChart:
    """Both constants of sparse curves over the dense network's, one against the other on equal
    axes, with ranges and the diagonal.

    Args:
        pairs: curve, sparsity, and c1, c2 with _low and _high each.
    """
    if pairs.empty:
        return charts.nothing("No sparse curve is measured beside its dense one.")
    ends = []
    tip = [tips.CURVE, tips.SPARSITY]
    for name, title in (("c1", "c₁, sparse over dense"), ("c2", "c₂, sparse over dense")):
        pairs, within = charts.cut(pairs, name, 2)
        pairs = pairs.rename(columns={"range": f"{name}_range"})
        ends += within
        tip += [tips.tip(f"{name}:Q", title, ".2f"), tips.tip(f"{name}_range:N", "90 % interval")]
    scale = charts.log(12, domain=[min(ends), max(ends)])
    axis = charts.fractions(values=[2.0**n for n in range(-9, 10)])
    x = alt.X("c1:Q", title="c₁ (noise), sparse over dense", scale=scale, axis=axis)
    y = alt.Y("c2:Q", title="c₂ (floor), sparse over dense", scale=scale, axis=axis)
    # Symbols as faint as the bars would not be seen
    colour = charts.by_sparsity(sorted(pairs.sparsity.unique()), symbolOpacity=1)
    base = alt.Chart(pairs).encode(x=x, y=y, color=colour)
    bars = base.mark_rule(opacity=0.7)
    line = alt.Chart(pd.DataFrame({"c1": ends, "c2": ends})).encode(x=x, y=y)
    layers = [
        line.mark_line(color=charts.GUIDE, strokeDash=[4, 4]),
        bars.encode(x=alt.X("c1_low:Q", scale=scale), x2="c1_high:Q"),
        bars.encode(y=alt.Y("c2_low:Q", scale=scale), y2="c2_high:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(tooltip=tip),
    ]
    return charts.sized(alt.layer(*layers), 380)


def noise(curves: pd.DataFrame) -> alt.LayerChart:
    """Critical batch sizes over noise scales, a row for each network and method.

    Args:
        curves: of `followed_paths.predicted_bends`, with curve.
    """
    if curves.empty:
        return charts.nothing("No followed curve has three batch sizes yet.")
    rows = curves.sort_values(["curve", "sparsity"]).rename(columns={"curve": "row"})
    rows["label"] = rows.sparsity.map(lambda s: f"sparsity {s:g}" if s else "dense")
    for end in ("", "_low", "_high"):
        rows[f"ratio{end}"] = rows[f"critical{end}"] / rows.predicted
    levels = dict(zip(rows.label, rows.sparsity))
    ordered = sorted(levels, key=levels.get)
    colours = {label: charts.sparsity_colour(levels[label]) for label in ordered}
    title = "critical batch size over noise scale"
    return shared_figures.ratios(rows, title, charts.by_name("label", colours), (0.5, 1, 2))


HEARD, SAME, ALONE = (
    "workers’ own gradients",
    "reference, averaged over the same steps",
    "reference, single steps",
)
KINDS = {HEARD: charts.BLUE, SAME: charts.ORANGE, ALONE: charts.GUIDE}


def running(rows: pd.DataFrame, start: str) -> alt.LayerChart:
    """The noise scale of jobs as their workers heard it, with its interval, and by other gradients;
    a menu of networks.

    rows: of `experiments.JOBS.results`, with network.  start: the network shown at first.
    """
    high = rows.high.fillna(np.inf)
    values = rows.groupby("network")[["running", "offline", "single"]]
    least = values.transform("min").min(axis=1)
    most = values.transform("max").max(axis=1)
    rows = rows.assign(
        told=list(map(span, zip(rows.low, high))),
        low=rows.low.clip(lower=least / 1.5),
        high=high.clip(upper=most * 1.5),
    )
    scale = charts.log(8)
    about = {"labelLimit": 300, "symbolType": "circle", "symbolOpacity": 1}
    legend = alt.Legend(title=None, columns=1, orient="bottom", **about)
    kinds = alt.Scale(domain=list(KINDS), range=list(KINDS.values()))
    x = alt.X("step:Q", title="training step", scale=alt.Scale(nice=False))
    base = alt.Chart(rows).encode(x=x)
    colour = alt.Color("kind:N", scale=kinds, legend=legend)

    def drawn(column: str, kind: str, *more: alt.Tooltip) -> alt.Chart:
        y = alt.Y(f"{column}:Q", title="noise scale (examples)", scale=scale).axis(format=",")
        step = tips.tip("step:Q", "training step", ",")
        value = tips.tip(f"{column}:Q", f"noise scale by {kind}", ",.2r")
        known = base.transform_filter(f"isValid(datum.{column})")
        named = known.transform_calculate(kind=json.dumps(kind))
        return named.encode(y=y, color=colour, tooltip=[step, value, *more])

    band = base.mark_area(opacity=0.25, color=charts.BLUE)
    layers = [
        band.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        drawn("single", ALONE).mark_point(size=12, opacity=0.6, filled=True),
        drawn("offline", SAME).mark_point(size=34, opacity=1, filled=True),
        drawn("running", HEARD, tips.tip("told:N", "5–95 %")).mark_line(strokeWidth=2.2),
    ]
    menu = charts.menu("network", list(dict.fromkeys(rows.network)), start, "trained")
    return charts.sized(charts.controlled(layers, menu), 340)
