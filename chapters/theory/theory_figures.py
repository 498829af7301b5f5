"""The figures of the page on theory and the gradient’s noise."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, shared_figures, tips


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
