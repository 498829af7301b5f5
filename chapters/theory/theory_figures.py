"""The figures of the page on theory and the gradient’s noise."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.theory.quadratic import DIMENSIONS
from lib.page import charts, shared_figures, tips


def residuals(points: pd.DataFrame, start: str | None) -> alt.LayerChart:
    """Steps over each curve's own c1/B + c2, along the batch size over the critical one; a menu of
    methods, a line per curve.

    points: of `findings.residuals`.  start: the method shown at first; any if None.
    """
    if points.empty:
        return charts.nothing("No curve of five batch sizes or more is measured.")
    drawn = points.assign(x=points.batch_size / points.critical)
    first = start or points.method.iloc[0]
    menu = charts.menu("method", sorted(points.method.unique()), first, "method")
    title = "batch size over the critical batch size"
    x = alt.X("x:Q", title=title, scale=charts.log(8), axis=charts.fractions())
    up = charts.log(8, base=alt.Undefined)
    # A logarithmic axis would leave most of its ticks without labels
    ticks = np.arange(0.5, 2, 0.05).round(2)
    ticks = ticks[(ticks >= drawn.over.min()) & (ticks <= drawn.over.max())].tolist()
    axis = alt.Axis(format=".2f", values=ticks, labelOverlap="greedy")
    y = alt.Y("over:Q", title="steps over c₁/B + c₂", scale=up, axis=axis)
    ratio = tips.tip("over:Q", "steps over the form", ".2f")
    tooltip = [tips.CURVE, tips.SPARSITY, tips.BATCH_SIZE, ratio]
    colour = charts.by_sparsity(sorted(points.sparsity.unique()))
    base = alt.Chart(drawn).encode(x=x, y=y, color=colour, detail=["curve:N", "sparsity:N"])
    layers = [
        base.mark_line(strokeWidth=1.2, opacity=0.5),
        base.mark_point(filled=True, size=34, opacity=1).encode(tooltip=tooltip),
    ]
    guides = charts.across(1 / 1.1, 1, 1.1, y=up)
    curves = charts.controlled(layers, menu)
    return charts.sized(alt.layer(guides, curves), 340)


def noise(curves: pd.DataFrame) -> alt.LayerChart:
    """Critical batch sizes over noise scales, a row for each network and method.

    Args:
        curves: of `findings.noise_scales`.
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


def exact_curves(shown: pd.DataFrame) -> alt.LayerChart:
    """Exact steps against batch size, a line per method, one condition and noise at a time; shown:
    of `quadratic.exact_curves`.
    """
    pick, faded = charts.picked("kind")
    colours = {kind: charts.method_colour(kind) for kind in dict.fromkeys(shown.kind)}
    scale = alt.Scale(type="log", base=2, nice=False, padding=8)
    tooltip = [
        tips.tip("kind:N", "training method"),
        tips.BATCH_SIZE,
        tips.STEPS,
        tips.tip("rate:Q", "best learning rate", ".2r"),
        tips.tip("momentum:Q", "best momentum"),
    ]
    line = alt.Chart(shown).mark_line(point=alt.OverlayMarkDef(size=50)).add_params(pick)
    line = line.encode(
        x=charts.batch_axis(shown.batch_size),
        y=alt.Y("steps:Q", title="steps to the target loss", scale=scale),
        color=charts.by_name("kind", colours, columns=2),
        opacity=faded,
        tooltip=tooltip,
    )
    conditions = [int(d) for d in sorted(shown.dimensions.unique())]
    caption = "'condition number ' + format(value, ',')"
    slider = charts.slider("dimensions", conditions, DIMENSIONS, "condition number", caption)
    menu = charts.menu("noise", list(shown.noise.unique()), "1", "noise")
    return charts.sized(charts.controlled([line], slider, menu), 340)
