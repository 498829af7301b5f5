"""The figures of the page on theory and the gradient’s noise."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.theory.findings import NEAR
from chapters.theory.quadratic import DIMENSIONS
from lib.page import charts, shared_figures, tips
from lib.wording import percent

SHADED = 1 / NEAR, NEAR


def residuals(points: pd.DataFrame) -> alt.TopLevelMixin:
    """Steps over each curve's c1/B + c2 against the batch size over the critical one, with medians
    over intervals of a factor of two, one panel per method.

    points: from `findings.residuals`.
    """
    if points.empty:
        return charts.nothing("No curve of five batch sizes or more is measured.")
    x = points.batch_size / points.critical
    near = points.over.between(*SHADED).groupby(points.method).transform("mean")
    drawn = points[["curve", "sparsity", "batch_size", "over"]].assign(
        panel=points.method + ": " + near.map(percent),
        kind=points.method.str.partition(",")[0],
        x=x,
        bin=2.0 ** np.log2(x).round(),
    )
    up = charts.log(base=alt.Undefined, domain=[drawn.over.min(), drawn.over.max()])
    ticks = alt.Axis(values=[0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4])
    along = {"scale": charts.log(4), "axis": charts.fractions(values=[1 / 64, 1 / 8, 1, 8, 64])}
    colours = {name: charts.method_colour(name) for name in drawn.kind}
    colour = charts.by_name("kind", colours).legend(None)
    ratio = tips.tip("over:Q", "steps over the form", ".2f")
    tooltip = [tips.CURVE, tips.SPARSITY, tips.BATCH_SIZE, ratio]

    def layers(base: alt.Chart) -> list[alt.Chart]:
        shaded = base.transform_aggregate(n="count()").mark_rect(
            color=charts.GUIDE, opacity=0.2
        )
        dots = base.mark_point(filled=True, size=18)
        line = base.mark_line(strokeWidth=2.5)
        y = alt.Y("over:Q", scale=up, axis=ticks)
        return [
            shaded.encode(alt.YDatum(SHADED[0]), alt.Y2Datum(SHADED[1])),
            dots.encode(alt.X("x:Q", **along), y, colour, tooltip=tooltip),
            line.encode(alt.X("bin:Q", **along), y.aggregate("median"), colour),
        ]

    title = "steps over c₁/B + c₂, against batch size over the critical batch size"
    ordered = drawn.sort_values("panel", kind="stable")
    return shared_figures.panels(ordered, layers, title, height=120, most=3)


def noise(curves: pd.DataFrame) -> alt.LayerChart:
    """Critical batch size over noise scale, one row per network and method.

    Args:
        curves: from `findings.noise_scales`.
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
    """Exact steps against batch size, one line per method, one condition and noise at a time;
    shown: from `quadratic.exact_curves`.
    """
    pick, faded = charts.picked("kind")
    colours = {kind: charts.method_colour(kind) for kind in dict.fromkeys(shown.kind)}
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
        y=alt.Y("steps:Q", title="steps to the target loss", scale=charts.log(8)),
        color=charts.by_name("kind", colours, columns=2),
        opacity=faded,
        tooltip=tooltip,
    )
    conditions = [int(d) for d in sorted(shown.dimensions.unique())]
    caption = "'condition number ' + format(value, ',')"
    slider = charts.slider("dimensions", conditions, DIMENSIONS, "condition number", caption)
    menu = charts.menu("noise", list(shown.noise.unique()), "1", "noise")
    return charts.sized(charts.controlled([line], slider, menu), 340)
