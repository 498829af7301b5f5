"""The figure of frameworks: time to the goal by batch size, over a link that a reader sets."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.frameworks.framework_costs import EXPRESSION, NAMES, SPARSE
from lib.page import charts, tips

NO_LIMIT = 1e15  # bytes per second that cost nothing
LATENCIES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
BANDWIDTHS = (1.25e6, 1.25e7, 1.25e8, 1.25e9, 1.25e10, NO_LIMIT)
RATE = f"(value >= {NO_LIMIT} ? 'no limit to bandwidth' : format(8 * value, '.2~s') + 'bit/s')"
DIALS = {  # values, the first shown, title, and how a caption says the value
    "latency": (
        LATENCIES,
        0.0,
        "latency of a message",
        "format(value * 1e6, ',.3~r') + ' µs latency'",
    ),
    "bandwidth": (BANDWIDTHS, NO_LIMIT, "bandwidth", RATE),
}


def to_goal(table: pd.DataFrame, curve: str) -> alt.LayerChart:
    """Time to the goal against batch size, a line per framework; the fastest of all ringed.

    table: of `framework_costs.to_goal`.  curve: the one shown at first.  Sparse messages may take
    more steps: they are dashed and never ringed.
    """
    dials = {name: charts.dial(f"{name}_at", *dial) for name, dial in DIALS.items()}
    menu = charts.menu("curve", list(table.curve.unique()), curve, "network")
    names = list(NAMES.values())
    limit = NAMES[SPARSE]
    shades = [charts.GUIDE, charts.BLUE, *charts.CATEGORIES[: len(names) - 2]]
    step = EXPRESSION.format(**{name: value for name, (_, value, _) in dials.items()})
    ends = {f"time_{end}": step.replace("seconds", end) for end in ("low", "high")}
    pick, faded = charts.picked("framework")
    base = (
        alt.Chart(table)
        .transform_filter(menu[1])
        .transform_calculate(step=step)
        .transform_calculate(time="datum.steps * datum.step", milliseconds="1000 * datum.step")
        .transform_calculate(**{name: f"datum.steps * ({end})" for name, end in ends.items()})
        .encode(
            x=charts.batch_axis(table.batch_size),
            color=charts.by_name("framework", dict(zip(names, shades)), columns=2),
            opacity=faded,
        )
    )
    scale = charts.log(18, base=10)
    y = alt.Y("time:Q", title="time to the goal (s)", scale=scale)
    y = y.axis(values=charts.DECADES, format=",~g")
    low = alt.Y("time_low:Q", scale=scale)
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
    bars = base.mark_rule(strokeWidth=2).encode(y=low, y2="time_high:Q").add_params(pick)
    line = base.mark_line(strokeWidth=2.2).encode(y=y, strokeDash=dashes)
    dots = base.mark_point(filled=True, size=60).encode(y=y, tooltip=tooltip)
    best = base.transform_filter(f"datum.framework !== '{limit}'")
    best = best.transform_joinaggregate(least="min(time)")
    best = best.transform_filter("datum.time <= datum.least * 1.0001")
    ring = best.mark_point(size=240, strokeWidth=3, filled=False).encode(y=y)
    caption = charts.captions([text for *_, text in dials.values()])
    chart = alt.layer(bars, line, dots, ring, caption)
    return charts.sized(chart.add_params(menu[0], *(param for param, *_ in dials.values())), 360)
