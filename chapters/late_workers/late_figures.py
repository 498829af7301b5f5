"""The figure of late gradients: steps against batch size by how late they are, beside what the
curve without delay predicts.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips

COLOURS = (charts.BLUE, charts.TEAL, charts.GREEN, charts.ORANGE, charts.PINK, charts.RED)


def late_name(staleness: int) -> str:
    """How late gradients are, in words."""
    return "on time" if staleness == 0 else f"{staleness} step{'s' if staleness > 1 else ''} late"


def by_staleness(points: pd.DataFrame, lines: pd.DataFrame) -> alt.LayerChart:
    """Points with 5-95 % bars, a colour per staleness; lines: of `late_results.lines`, dashed.

    points: of `lib.analysis.scaling.across_replicates`, of one training method, with `staleness`.
    """
    colours = dict(zip(map(late_name, sorted(points.staleness.unique())), COLOURS))
    points = tips.known(points)
    points = points.assign(gradients=points.staleness.map(late_name))
    lines = lines.assign(gradients=lines.staleness.map(late_name))
    pick, faded = charts.picked("gradients")
    lowest = min(points.low.clip(lower=points.steps / 3).min(), lines.steps.min())
    within = [lowest / 1.2, points.steps.max() * 2.5]
    ends = {f"bar_{end}": points[end].clip(*within) for end in ("low", "high")}
    scale = charts.log(domain=within)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    base = alt.Chart(points.assign(**ends)).encode(
        x=charts.batch_axis(points.batch_size),
        color=charts.by_name("gradients", colours, 2),
        opacity=faded,
    )
    dashed = base.properties(data=lines).mark_line(strokeDash=[5, 4], strokeWidth=2, clip=True)
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("bar_low:Q", scale=scale), y2="bar_high:Q")
    dots = base.mark_point(filled=True, size=64, opacity=1)
    dots = dots.encode(y=y, tooltip=tips.points("gradients", regime=False))
    return charts.sized(alt.layer(dashed.encode(y=y).add_params(pick), bars, dots), 380)
