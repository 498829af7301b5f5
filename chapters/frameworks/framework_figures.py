"""The figure of frameworks: time to the goal by batch size."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.frameworks.framework_costs import NAMES, SPARSE
from lib.page import charts, tips


def to_goal(table: pd.DataFrame, curve: str) -> alt.LayerChart:
    """Time to the goal against batch size, a line per framework; the fastest of all ringed.

    table: of `framework_costs.to_goal`.  curve: the one shown at first.  Sparse messages may take
    more steps: they are dashed and never ringed.
    """
    select, chosen, _ = charts.menu("curve", list(table.curve.unique()), curve, "network")
    names = list(NAMES.values())
    limit = NAMES[SPARSE]
    shades = [charts.GUIDE, charts.BLUE, *charts.CATEGORIES[: len(names) - 2]]
    pick, faded = charts.picked("framework")
    base = (
        alt.Chart(table.assign(milliseconds=1000 * table.seconds))
        .transform_filter(chosen)
        .encode(
            x=charts.batch_axis(table.batch_size),
            color=charts.by_name("framework", dict(zip(names, shades)), columns=2),
            opacity=faded,
        )
    )
    scale = charts.log(18, base=10)
    y = alt.Y("time:Q", title="time to the goal (s)", scale=scale)
    y = y.axis(values=charts.DECADES, format=",~g")
    tooltip = [
        tips.tip("framework:N", "framework"),
        tips.BATCH_SIZE,
        tips.tip("goal:Q", "goal error", ".1%"),
        tips.STEPS,
        tips.tip("milliseconds:Q", "a step (ms)", ",.2r"),
        tips.tip("time:Q", "time to the goal (s)", ",.2r"),
        tips.tip("time_low:Q", "lower quartile", ",.2r"),
        tips.tip("time_high:Q", "upper quartile", ",.2r"),
    ]
    dashes = alt.when(f"datum.framework === '{limit}'").then(alt.value([5, 4]))
    dashes = dashes.otherwise(alt.value([1, 0]))
    bars = base.mark_rule(strokeWidth=2).add_params(pick)
    bars = bars.encode(y=alt.Y("time_low:Q", scale=scale), y2="time_high:Q")
    line = base.mark_line(strokeWidth=2.2).encode(y=y, strokeDash=dashes)
    dots = base.mark_point(filled=True, size=60).encode(y=y, tooltip=tooltip)
    best = base.transform_filter(f"datum.framework !== '{limit}'")
    best = best.transform_joinaggregate(least="min(time)")
    best = best.transform_filter("datum.time == datum.least")
    ring = best.mark_point(size=240, strokeWidth=3, filled=False).encode(y=y)
    return charts.sized(alt.layer(bars, line, dots, ring).add_params(select), 360)
