"""Figures of training methods side by side: where their curves lie to SGD's, and where a model says
that they should.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips
from lib.wording import brief, span

WORDS = {  # what is compared, as the menu has it
    "critical": "critical batch size",
    "large": "steps, two largest batches",
    "small": "steps, two smallest batches",
}
# Which of the model's limits each comes near to
COLUMNS = {
    "critical": "critical",
    "large": "c2",
    "small": "c1",
}
SHADES = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.RED, charts.PURPLE)
LOG = {"type": "log", "base": 2, "nice": False}
BEYOND = 1e7  # larger than any batch size or number of steps
ROW = 9  # pixels of a network within a method's row


def beside_prediction(measured: pd.DataFrame, predicted: pd.DataFrame) -> alt.LayerChart:
    """Ratios to SGD with intervals, a row per method and a colour per network, and the model's
    ratio as a hollow diamond.

    measured: what (of WORDS), method, network, ratio, ratio_low, ratio_high, n (searches);
    predicted: what, method, ratio. A menu chooses what.  Intervals end at eight times the outermost
    points.
    """
    if measured.empty:
        return charts.nothing("No method but SGD has a curve of three batch sizes yet.")
    plain = measured[["what", "method", "network", "ratio", "ratio_low", "ratio_high", "n"]]
    parts = [charts.cut(own, "ratio", 8)[0] for _, own in plain.groupby("what", sort=False)]
    shown = pd.concat(parts, ignore_index=True).assign(what=lambda rows: rows.what.map(WORDS))
    order, networks = list(dict.fromkeys(measured.method)), list(dict.fromkeys(measured.network))
    model = predicted[predicted.method.isin(order)].assign(what=predicted.what.map(WORDS))
    scale = alt.Scale(padding=14, **LOG)
    rows = alt.Y("method:N", title=None, sort=order)
    x = alt.X(
        "ratio:Q",
        title="times SGD’s",
        scale=scale,
        axis=charts.fractions(labelOverlap="greedy", labelBound=True),
    )
    colour = alt.Color(
        "network:N",
        title=None,
        scale=alt.Scale(domain=networks, range=list(SHADES[: len(networks)])),
    )
    short = "replace(datum.label, ', easier goal', '')"  # for a phone
    legend = colour.legend(columns=1, labelLimit=260, labelExpr=short)
    base = alt.Chart(shown).encode(
        y=rows, yOffset=alt.YOffset("network:N", sort=networks), color=legend
    )
    tooltip = [
        alt.Tooltip("method:N", title="training method"),
        tips.NETWORK,
        alt.Tooltip("ratio:Q", title="times SGD’s", format=".2f"),
        alt.Tooltip("range:N", title="5–95 %"),
        alt.Tooltip("n:Q", title="searches of both"),
    ]
    told = [
        alt.Tooltip("method:N", title="training method"),
        alt.Tooltip("ratio:Q", title="the model’s ratio", format=".2r"),
    ]
    layers = [
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("ratio_low:Q", scale=scale, title="times SGD’s"), x2="ratio_high:Q"
        ),
        base.mark_point(filled=True, size=50, opacity=1).encode(x=x, tooltip=tooltip),
        alt.Chart(model)
        .mark_point(shape="diamond", size=90, strokeWidth=2, color=charts.GUIDE)
        .encode(y=rows, x=x, tooltip=told),
    ]
    what = charts.menu(
        "what",
        [word for word in WORDS.values() if word in set(shown.what)],
        shown.what.iloc[0],
        "show",
    )
    drawn = charts.controlled(layers, what)
    height = len(order) * max(30, ROW * len(networks))
    return alt.layer(charts.across(1, x=scale), drawn).properties(width="container", height=height)


def by_power(found: pd.DataFrame, methods: pd.DataFrame) -> alt.LayerChart:
    """What the model says of preconditioning: floor and critical batch size against the power of
    the curvature.

    found: power, c2, critical; methods: power and method (names of those that lie there).
    """
    names = {"critical": "critical batch size (examples)", "c2": "floor (steps)"}
    long = found.melt("power", list(names), "what", "value").replace({"what": names})
    scale = alt.Scale(type="log", padding=10, nice=False)
    room = alt.Scale(domain=[-0.05, 1.05], nice=False)  # for the names at either end
    x = alt.X("power:Q", title="power p of the curvature", scale=room)
    x = x.axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f")
    y = alt.Y("value:Q", title="steps, or examples", scale=scale).axis(format="~s", tickCount=6)
    shades = alt.Scale(domain=list(names.values()), range=[charts.BLUE, charts.ORANGE])
    colour = alt.Color(
        "what:N", title=None, scale=shades, legend=alt.Legend(columns=1, labelLimit=260)
    )
    tooltip = [
        alt.Tooltip("power:Q", title="power", format=".2f"),
        alt.Tooltip("what:N", title="shown"),
        alt.Tooltip("value:Q", title="value", format=",.2r"),
    ]
    lines = alt.Chart(long).mark_line(strokeWidth=2.2).encode(x=x, y=y, color=colour)
    dots = (
        alt.Chart(long)
        .mark_point(filled=True, size=55, opacity=1)
        .encode(x=x, y=y, color=colour, tooltip=tooltip)
    )
    marks = alt.Chart(methods).encode(x=x)
    rules = marks.mark_rule(strokeDash=[3, 4], color=charts.GUIDE)
    texts = marks.mark_text(baseline="bottom", fontWeight="bold").encode(
        y=alt.value(-4), text="method:N"
    )
    return alt.layer(rules, lines, dots, texts).properties(width="container", height=260)


def time_beside_steps(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps and time over SGD's against batch size, a colour per method and a dash for time; a menu
    of networks.

    rows: network, algorithm, batch_size, kind ("steps" or "time"), ratio, ratio_low, ratio_high,
    dearer.
    """
    if rows.empty:
        return charts.nothing("No step of these methods was timed yet.")
    pick, faded = charts.picked("algorithm")
    rows = rows.assign(
        interval=[
            span((float(brief(a).replace(",", "")), float(brief(b).replace(",", ""))))
            for a, b in zip(rows.ratio_low, rows.ratio_high)
        ]
    )
    scale = alt.Scale(padding=10, **LOG)
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_algorithm(list(rows.algorithm.unique())),
        opacity=faded,
    )
    y = alt.Y("ratio:Q", title="times SGD’s", scale=scale, axis=charts.fractions())
    tooltip = [
        tips.BATCH_SIZE,
        alt.Tooltip("kind:N", title="shown"),
        alt.Tooltip("ratio:Q", title="times SGD’s", format=".2f"),
        tips.INTERVAL,
        alt.Tooltip("dearer:Q", title="a step’s time over SGD’s", format=".2f"),
    ]
    dash = alt.StrokeDash(
        "kind:N", legend=None, scale=alt.Scale(domain=["steps", "time"], range=[[2, 3], [1, 0]])
    )
    lines = base.mark_line(strokeWidth=2.2).encode(y=y, strokeDash=dash).add_params(pick)
    dots = base.mark_point(filled=True, size=50).encode(y=y, tooltip=tooltip)
    guide = (
        alt.Chart(pd.DataFrame({"at": [1.0]}))
        .mark_rule(color=charts.GUIDE)
        .encode(y=alt.Y("at:Q", scale=scale))
    )
    network = charts.menu("network", list(rows.network.unique()), rows.network.iloc[0], "network")
    return alt.layer(guide, charts.controlled([lines, dots], network)).properties(
        width="container", height=300
    )


def moving(
    rows: pd.DataFrame, field: str, title: str, *controls: tuple, tooltip: list = ()
) -> alt.LayerChart:
    """Means over searches with intervals against batch size, on a logarithmic axis: a line for
    every value of a field.

    rows: the field, batch_size, middle, low, high and searches, and what controls and further
    tooltips name.
    """
    if rows.empty:
        return charts.nothing("No batch size has three searches of these methods yet.")
    rows = rows.assign(interval=[f"{brief(a)} to {brief(b)}" for a, b in zip(rows.low, rows.high)])
    kinds = list(dict.fromkeys(rows[field]))
    shades = alt.Scale(domain=kinds, range=list(SHADES[: len(kinds)]))
    colour = alt.Color(
        f"{field}:N", title=None, scale=shades, legend=alt.Legend(columns=1, labelLimit=260)
    )
    base = alt.Chart(rows).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    scale = alt.Scale(type="log", padding=10, nice=False)
    y = alt.Y("middle:Q", title=title, scale=scale).axis(format="~g", tickCount=6)
    told = [
        alt.Tooltip(f"{field}:N", title="shown"),
        tips.BATCH_SIZE,
        alt.Tooltip("middle:Q", title="mean over searches", format=".2r"),
        tips.INTERVAL,
        alt.Tooltip("searches:Q", title="searches"),
        *tooltip,
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    lines = base.mark_line(strokeWidth=2.2).encode(y=y)
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(y=y, tooltip=told)
    layers = [bars, lines, dots]
    chart = charts.controlled(layers, *controls) if controls else alt.layer(*layers)
    return chart.properties(width="container", height=280)


def finite(ratio: float, low: float, high: float) -> str:
    """A ratio with its interval as a table has it; the fit of a curve without a floor ends at
    BEYOND or farther.
    """
    if not np.isfinite(ratio):
        return "—"
    middle, *ends = (
        np.inf if value > BEYOND else 0 if value < 1 / BEYOND else value
        for value in (ratio, low, high)
    )
    return "{} ({}–{})".format(*map(brief, (middle, *ends))).replace("inf", "∞")
