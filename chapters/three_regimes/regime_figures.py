"""Figures of steps to result against batch size that show the regimes."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.analysis.scaling import TOLERANCE
from lib.page import charts, tips
from lib.page.shared_figures import STEPS

REGIMES = (  # words, their position, and which of their ends lies there
    ("perfect|scaling", "first", "left"),
    ("diminishing|returns", "critical", "center"),
    ("maximal data|parallelism", "last", "right"),
)


def regimes_chart(
    points: pd.DataFrame, lines: pd.DataFrame, goal: tuple, titles: list[str]
) -> alt.LayerChart:
    """Means with their intervals, the two asymptotes of the curve in `lines`, and its three
    regimes.

    Args:
        points: as for `shared_figures.scaling_chart`, at every goal.
        lines: goal, c1, c2, critical, critical_low and critical_high of one network (none: no
            guides).
        goal: from `charts.goal_slider`.
        titles: of the figure, one per goal, the hardest first.
    """
    pick, faded = charts.picked("sparsity")
    sizes = sorted(points.batch_size.unique())
    limits = [points.low.min() / 1.6, points.high.max() * 1.3]
    scale = charts.log(domain=limits)
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    base = alt.Chart(tips.with_sources(points)).encode(
        x=charts.batch_axis(sizes),
        color=charts.by_sparsity(sorted(points.sparsity.unique())),
        opacity=faded,
    )
    bars, means, marks = charts.curve(base, y, scale, tips.points("sparsity"))
    guides = []
    if len(lines):
        ends = lines.assign(first=sizes[0], last=sizes[-1], least=limits[0])
        guides = _guides(ends, scale)
    bars = bars.add_params(pick)
    layers = [*guides, bars, means, marks]
    chart = charts.controlled(layers, goal).add_params(charts.title(titles, goal))
    return charts.sized(chart, 380)


def _guides(lines: pd.DataFrame, scale: alt.Scale) -> list[alt.Chart]:
    """c1/B and c2 as dotted lines, the critical batch size, where they cross, with its interval and
    a label, and the regimes; lines: also with first, last (batch sizes) and least (steps), the ends
    of the axes.
    """
    lines = lines.assign(bottom=lines.c1 / lines.least)
    ends = (lines["first"], lines.bottom)
    falling = pd.concat([lines.assign(at=size, steps=lines.c1 / size) for size in ends])
    base, upright = alt.Chart(lines), {"y": alt.value(54), "y2": alt.value("height")}
    dotted = {"strokeDash": [3, 4], "color": charts.GUIDE, "strokeWidth": 1.3, "clip": True}
    name = "'critical batch size ' + format(datum.critical, ',.2r')"
    steps, least, floor = (alt.Y(f"{c}:Q", scale=scale) for c in ("steps", "least", "c2"))
    band = base.mark_rect(color=charts.GUIDE, opacity=0.18, clip=True)
    critical = base.transform_calculate(name=name).mark_text(fontWeight="bold")
    upper = {"x": "critical:Q", "y": alt.value(44), "text": "name:N"}
    lower = {"x": "bottom:Q", "y": least, "text": alt.value("c₁/B")}
    return [
        *_regimes(lines),
        band.encode(x="critical_low:Q", x2="critical_high:Q", **upright),
        alt.Chart(falling).mark_line(**dotted).encode(x="at:Q", y=steps),
        base.mark_rule(**dotted).encode(x="first:Q", x2="last:Q", y=floor),
        base.mark_rule(color=charts.GUIDE, strokeWidth=1.3).encode(x="critical:Q", **upright),
        critical.encode(**upper),
        base.mark_text(align="right", dx=-26, dy=-8).encode(**lower),
        base.mark_text(align="left", dx=6, dy=-8).encode(
            x="first:Q", y=floor, text=alt.value("c₂")
        ),
    ]


def _regimes(lines: pd.DataFrame) -> list[alt.Chart]:
    """The names of the fit's regimes; the outer two, in which its examples or its steps are within
    TOLERANCE of the least, are shaded.
    """
    first, last = lines["first"].max(), lines["last"].max()
    ends = {"until": lines.critical * TOLERANCE, "since": lines.critical / TOLERANCE}
    base = alt.Chart(lines.assign(**{k: v.clip(first, last) for k, v in ends.items()}))
    shade = base.mark_rect(color=charts.GUIDE, opacity=0.1)
    outer = (("first", "until"), ("since", "last"))
    layers = [shade.encode(x=f"{low}:Q", x2=f"{high}:Q") for low, high in outer]
    small = alt.expr(f"width < {charts.PHONE} ? 10 : 12")
    for words, place, align in REGIMES:
        name = base.transform_calculate(words=f"split('{words}', '|')")
        name = name.mark_text(align=align, baseline="top", lineHeight=14, fontSize=small)
        layers.append(name.encode(x=f"{place}:Q", y=alt.value(4), text="words:N"))
    return layers
