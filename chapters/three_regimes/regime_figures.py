"""Figures of steps to result against batch size in which regimes are read off."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import STEPS, panels, small_curve
from lib.page.tips import tip


def regimes_chart(points: pd.DataFrame, lines: pd.DataFrame, goal: tuple) -> alt.LayerChart:
    """Means with their intervals, and the two lines between which the curve of `lines` lies.

    Args:
        points: as for `shared_figures.scaling_chart`, at every goal.
        lines: goal, c1, c2, critical, critical_low and critical_high of one network (none: no
            guides).
        goal: of `charts.goal_slider`.
    """
    pick, faded = charts.picked("sparsity")
    levels = sorted(points.sparsity.unique())
    sizes = sorted(points.batch_size.unique())
    within = [points.low.min() / 1.6, points.high.max() * 1.3]
    scale = alt.Scale(
        type="log",
        base=2,
        domain=within,
        nice=False,
    )
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    base = alt.Chart(tips.known(points)).encode(
        x=charts.batch_axis(sizes), color=charts.by_sparsity(levels), opacity=faded
    )
    bars, means, marks = charts.curve(base, y, scale, tips.points("sparsity"))
    ends = lines.assign(
        first=sizes[0],
        last=sizes[-1],
        least=within[0],
    )
    guides = _guides(ends, scale) if len(lines) else []
    layers = [*guides, bars.add_params(pick), means, marks]
    return charts.sized(charts.controlled(layers, goal), 350)


def _guides(lines: pd.DataFrame, scale: alt.Scale) -> list[alt.Chart]:
    """c1/B and c2 as dotted lines, and the critical batch size, at which they cross, with its
    interval and in words.

    Args:
        lines: also first, last (batch sizes) and least (steps), the ends of the axes.
    """
    lines = lines.assign(bottom=lines.c1 / lines.least)
    ends = (lines["first"], lines.bottom)
    falling = pd.concat([lines.assign(at=at, steps=lines.c1 / at) for at in ends])
    base, upright = alt.Chart(lines), {"y": alt.value(24), "y2": alt.value("height")}
    dotted = {"strokeDash": [3, 4], "color": charts.GUIDE, "strokeWidth": 1.3, "clip": True}
    name = "'critical batch size ' + format(datum.critical, ',.2r')"
    steps, least, floor = (alt.Y(f"{c}:Q", scale=scale) for c in ("steps", "least", "c2"))
    band = base.mark_rect(color=charts.GUIDE, opacity=0.18, clip=True)
    critical = base.transform_calculate(name=name).mark_text(fontWeight="bold")
    scaling = base.mark_text(align="right", dx=-26, dy=-8)
    level = base.mark_text(align="left", dx=6, dy=-8)
    upper = {"x": "critical:Q", "y": alt.value(14), "text": "name:N"}
    lower = {"x": "bottom:Q", "y": least, "text": alt.value("perfect scaling, c₁/B")}
    return [
        band.encode(x="critical_low:Q", x2="critical_high:Q", **upright),
        alt.Chart(falling).mark_line(**dotted).encode(x="at:Q", y=steps),
        base.mark_rule(**dotted).encode(x="first:Q", x2="last:Q", y=floor),
        base.mark_rule(color=charts.GUIDE, strokeWidth=1.3).encode(x="critical:Q", **upright),
        critical.encode(**upper),
        scaling.encode(**lower),
        level.encode(x="first:Q", y=floor, text=alt.value("floor, c₂")),
    ]


def panels_chart(
    points: pd.DataFrame, by: str, colour: alt.Color, absent: Iterable[str]
) -> alt.FacetChart:
    """Steps to result against batch size, a panel per network, with dotted lines of perfect scaling
    where the points have them.

    Args:
        points: of `scaling.across_replicates`, with `panel`.
        by: a column, a line for each of its values.
        colour: of a line.
        absent: networks of the paper that are not measured.
    """
    scale = charts.log(4, domain=[points.low.min() / 1.3, points.high.max() * 1.3])
    x = charts.batch_axis([1, 8, 64, 512, 4096], None)
    y = alt.Y("steps:Q", scale=scale)
    y = y.axis(values=[4.0**n for n in range(12)], format=",")
    told = [
        tip(f"{by}:N", tips.FIELDS.get(by, by)),
        tips.BATCH_SIZE,
        tips.STEPS,
        *tips.ends(),
        tips.SEARCHES,
    ]

    def layers(base: alt.Chart) -> list[alt.Chart]:
        lines = base.encode(x=x, y=y, color=colour, detail=f"{by}:N")
        perfect = lines.mark_line(strokeDash=[3, 4], strokeWidth=1, clip=True)
        guides = [perfect.encode(y="perfect:Q")] if "perfect" in points else []
        return [*guides, *small_curve(lines, told)]

    field = colour["shorthand"].split(":")[0]
    kept = ["panel", by, field, "batch_size", "steps", "low", "high", "perfect", "replicates"]
    rows = points[[name for name in dict.fromkeys(kept) if name in points]]
    return panels(rows, layers, f"{STEPS} against batch size", absent)
