"""The figure of frameworks: time to the goal at every batch size, with a link that a reader sets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import altair as alt
import pandas as pd

from lib.page import charts

NO_LIMIT = 1e15  # bytes per second that cost nothing
LATENCIES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
BANDWIDTHS = (1.25e6, 1.25e7, 1.25e8, 1.25e9, 1.25e10, NO_LIMIT)


def _dials(start: Mapping[str, float]) -> dict[str, tuple]:
    """What `charts.dial` returns, by field."""
    rate = f"(value >= {NO_LIMIT} ? 'no limit to bandwidth' : format(8 * value, '.2~s') + 'bit/s')"
    about = {
        "latency": (
            LATENCIES,
            "latency of a message",
            "format(value * 1e6, ',.3~r') + ' µs latency'",
        ),
        "bandwidth": (BANDWIDTHS, "bandwidth", rate),
    }
    return {
        name: charts.dial(f"{name}_at", values, start[name], *words)
        for name, (values, *words) in about.items()
    }


def colours(names: list[str]) -> alt.Color:
    """A colour per framework, the first that of guide lines."""
    scale = alt.Scale(
        domain=names,
        range=[charts.GUIDE, charts.BLUE, *itertools.islice(charts.CATEGORIES, len(names) - 2)],
    )
    return alt.Color(
        "framework:N",
        scale=scale,
        legend=alt.Legend(title=None, columns=2, labelLimit=125),
        sort=names,
    )


def to_goal(
    table: pd.DataFrame,
    expression: str,
    start: Mapping[str, float],
    curve: str,
    names: list[str],
    limit: str,
) -> alt.LayerChart:
    """Time to the goal against batch size, a line per framework; the fastest of all ringed.

    table: curve, framework, batch_size, goal, steps, seconds, waits, sent.  expression: that of
    `framework_costs`. start: where the sliders of latency and bandwidth begin; curve: the one shown
    at first; names: of the frameworks, in order; limit: of these the one whose steps may be more,
    which is dashed and never ringed.
    """
    dials = _dials(start)
    menu = charts.menu("curve", list(table.curve.unique()), curve, "network")
    numbers = {name: value for name, (_, value, _) in dials.items()}
    pick, faded = charts.picked("framework")
    base = (
        alt.Chart(table)
        .transform_filter(menu[1])
        .transform_calculate(step=expression.format(**numbers))
        .transform_calculate(time="datum.steps * datum.step", milliseconds="1000 * datum.step")
        .encode(x=charts.batch_axis(table.batch_size), color=colours(names), opacity=faded)
    )
    y = alt.Y("time:Q", title="time to the goal (s)").scale(type="log", nice=False, padding=18)
    tooltip = [
        alt.Tooltip("framework:N", title="framework"),
        alt.Tooltip("batch_size:Q", title="batch size", format=","),
        alt.Tooltip("goal:Q", title="goal error", format=".1%"),
        alt.Tooltip("steps:Q", title="steps to result", format=",.0f"),
        alt.Tooltip("milliseconds:Q", title="a step (ms)", format=",.2r"),
        alt.Tooltip("time:Q", title="time to the goal (s)", format=",.2r"),
    ]
    dashes = (
        alt.when(f"datum.framework === '{limit}'")
        .then(alt.value([5, 4]))
        .otherwise(alt.value([1, 0]))
    )
    line = base.mark_line(strokeWidth=2.2).encode(y=y, strokeDash=dashes).add_params(pick)
    dots = base.mark_point(filled=True, size=60).encode(y=y, tooltip=tooltip)
    best = base.transform_filter(f"datum.framework !== '{limit}'").transform_joinaggregate(
        least="min(time)"
    )
    ring = best.transform_filter("datum.time <= datum.least * 1.0001").mark_point(
        size=240, strokeWidth=3, filled=False
    )
    caption = charts.captions([text for *_, text in dials.values()])
    return (
        alt.layer(line, dots, ring.encode(y=y), caption)
        .add_params(menu[0], *(param for param, *_ in dials.values()))
        .properties(width="container", height=360)
    )
