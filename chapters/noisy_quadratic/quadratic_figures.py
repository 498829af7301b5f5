"""Figures of the noisy quadratic model."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.wording import brief

STEPS = "steps to the target loss"


def found_and_exact(measured: pd.DataFrame, truth: pd.DataFrame) -> alt.LayerChart:
    """What a search found, with intervals, on the exact curve, and the fitted hyperbola.

    measured: of `lib.analysis.scaling.across_replicates`; truth: batch_size, steps and fit.
    """
    scale = alt.Scale(type="log", base=2, nice=False, padding=8)
    x = charts.batch_axis(truth.batch_size)
    told = measured.assign(
        interval=[f"{brief(a)}–{brief(b)}" for a, b in zip(measured.low, measured.high)]
    )
    bars = alt.Chart(told).mark_rule(strokeWidth=2, color=charts.RED)
    dots = alt.Chart(told).mark_point(filled=True, size=70, color=charts.RED, opacity=1)
    tooltip = [
        tips.BATCH_SIZE,
        alt.Tooltip("steps:Q", title="steps found", format=",.0f"),
        tips.INTERVAL,
        tips.SEARCHES,
    ]
    law = alt.Chart(truth).mark_line(strokeDash=[4, 4], color=charts.GUIDE)
    line = alt.Chart(truth).mark_line(color=charts.BLUE)
    return alt.layer(
        law.encode(x=x, y=alt.Y("fit:Q", scale=scale, title=STEPS)),
        line.encode(x=x, y=alt.Y("steps:Q", scale=scale, title=STEPS)),
        bars.encode(x=x, y=alt.Y("low:Q", scale=scale, title=STEPS), y2="high:Q"),
        dots.encode(x=x, y=alt.Y("steps:Q", scale=scale, title=STEPS), tooltip=tooltip),
    ).properties(width="container", height=340)


def exact_curves(shown: pd.DataFrame, *controls: tuple) -> alt.LayerChart:
    """Exact steps against batch size, a line per method; shown: kind, batch_size, steps, rate and
    momentum.
    """
    pick, faded = charts.picked("kind")
    kinds = list(dict.fromkeys(shown.kind))
    colour = alt.Color("kind:N", title=None, legend=alt.Legend(columns=2))
    line = (
        alt.Chart(shown)
        .mark_line(point=alt.OverlayMarkDef(size=50))
        .encode(
            x=charts.batch_axis(shown.batch_size),
            y=alt.Y("steps:Q", title=STEPS).scale(type="log", base=2, nice=False, padding=8),
            color=colour.scale(domain=kinds, range=[charts.ORANGE, charts.BLUE, charts.TEAL]),
            opacity=faded,
            tooltip=[
                alt.Tooltip("kind:N", title="training method"),
                tips.BATCH_SIZE,
                alt.Tooltip("steps:Q", title="steps", format=",.0f"),
                alt.Tooltip("rate:Q", title="best learning rate", format=".2r"),
                alt.Tooltip("momentum:Q", title="best momentum"),
            ],
        )
        .add_params(pick)
    )
    return charts.controlled([line], *controls).properties(width="container", height=380)
