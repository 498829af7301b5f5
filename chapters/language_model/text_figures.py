"""Figures of the language model: steps, and tokens, against batches of sequences."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips

STEPS = "steps to result (training steps)"
SHADES = (charts.RED, charts.ORANGE, charts.GREEN, charts.TEAL, charts.BLUE, charts.PURPLE)
NATS = (
    "'goal: ' + format(value, '.2f') + ' nats, ' + format(value / LN2, '.2f') + ' bits a character'"
)


def looks(points: pd.DataFrame) -> dict:
    """Colour and shape of every curve: the colour is its training method's; a pruned network's
    points are diamonds.
    """
    known = points.drop_duplicates("curve")
    names = list(known.curve)
    shades = [charts.ALGORITHM_COLOURS.get(a, charts.GUIDE) for a in known.algorithm]
    shapes = ["diamond" if s else "circle" for s in known.sparsity]
    columns = alt.expr(f"width < {charts.PHONE} ? 1 : 2")
    legend = alt.Legend(title=None, columns=columns)
    colours = alt.Scale(domain=names, range=shades)
    forms = alt.Scale(domain=names, range=shapes)
    return {
        "color": alt.Color("curve:N", scale=colours, legend=legend),
        "shape": alt.Shape("curve:N", scale=forms, legend=legend),
    }


def steps_by_method(
    points: pd.DataFrame, lines: pd.DataFrame, start: float, context: int
) -> alt.LayerChart:
    """Steps to result against batch size, a colour per curve, with the fitted lines; a slider over
    goals.

    points: of `text_results.curves`; lines: of `lines` there; start: the goal shown first; context:
    tokens of a sequence.
    """
    points = points.assign(
        interval=points.borrowed.map(tips.KNOWN_FROM), bits=points.goal / 0.6931471805599453
    )
    within = [points.low.min() / 1.3, points.high.max() * 1.3]
    scale = alt.Scale(type="log", base=2, domain=within, nice=False)
    pick = alt.selection_point(fields=["curve"], bind="legend", name="shown")
    tokens = f"[format(datum.value, ','), format({context} * datum.value, ',')]"
    axis = alt.Axis(
        values=sorted({int(b) for b in points.batch_size}), labelExpr=tokens, labelOverlap="parity"
    )
    x = charts.batch_axis(points.batch_size, "batch size: sequences, below them tokens").axis(axis)
    look = looks(points)
    seen = alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.1))
    base = alt.Chart(points).encode(x=x, color=look["color"], opacity=seen)
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    tooltip = [
        alt.Tooltip("curve:N", title="training method"),
        alt.Tooltip("batch_size:Q", title="batch size, sequences", format=","),
        alt.Tooltip("tokens:Q", title="batch size, tokens", format=","),
        alt.Tooltip("goal:Q", title="goal, nats", format=".2f"),
        alt.Tooltip("bits:Q", title="goal, bits a character", format=".2f"),
        alt.Tooltip("steps:Q", title="steps to result", format=",.0f"),
        alt.Tooltip("low:Q", title="interval, from", format=",.0f"),
        alt.Tooltip("high:Q", title="interval, to", format=",.0f"),
        alt.Tooltip("interval:N", title="interval known from"),
        alt.Tooltip("replicates:Q", title="searches"),
        alt.Tooltip("missed:Q", title="of these, missed the goal"),
        alt.Tooltip("trials:Q", title="trials of a search"),
    ]
    bars = (
        base.mark_rule(strokeWidth=2)
        .encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
        .add_params(pick)
    )
    dots = base.mark_point(filled=True, size=64, opacity=1).encode(
        y=y, shape=look["shape"], tooltip=tooltip
    )
    # A method that has no line yet has its points joined.
    lined = lines[["curve", "goal"]].drop_duplicates().assign(lined=True)
    loose = points.merge(lined, on=["curve", "goal"], how="left")
    joined = (
        base.properties(data=loose[loose.lined.isna()]).mark_line(strokeDash=[2, 3]).encode(y=y)
    )
    layers = [bars, joined, dots]
    if len(lines):
        fitted = base.properties(data=lines).mark_line(strokeWidth=2.2, clip=True)
        layers.insert(1, fitted.encode(y=alt.Y("fitted:Q", scale=scale)))
    goals = sorted(points.goal.unique())
    slider = charts.slider("goal", goals, start, "goal (nats)", NATS)
    return charts.controlled(layers, slider).properties(width="container", height=340)


def tokens_by_goal(points: pd.DataFrame, start: str, context: int) -> alt.LayerChart:
    """Tokens to each goal against batch size, a colour per goal from the hardest, red, to the
    easiest, with the intervals of the steps; a menu of curves.

    Args:
        points: of `text_results.curves`.
        start: the curve shown first.
        context: tokens of a sequence.
    """
    each = context * points.batch_size
    drawn = points.assign(
        used=each * points.steps,
        least=each * points.low,
        most=each * points.high,
        label=points.goal.map("{:g} nats".format),
    )
    goals = sorted(drawn.goal.unique())
    names = dict(zip(map("{:g} nats".format, goals), SHADES))
    menu = charts.menu("curve", list(dict.fromkeys(drawn.curve)), start, "training method")
    scale = alt.Scale(type="log", base=10, nice=False, padding=8)
    tens = [n * 10**power for power in range(3, 12) for n in (1, 2, 5)]
    ticks = [n for n in tens if drawn.least.min() <= n <= drawn.most.max()]
    axis = alt.Axis(format="~s", values=ticks)
    y = alt.Y("used:Q", title="tokens to the goal", scale=scale, axis=axis)
    x = charts.batch_axis(drawn.batch_size, "batch size (sequences)")
    base = alt.Chart(drawn).encode(x=x, color=charts.by_name("label", names, 2))
    tooltip = [
        tips.tip("curve:N", "training method"),
        tips.tip("label:N", "goal"),
        tips.tip("batch_size:Q", "batch size, sequences", ","),
        tips.tip("used:Q", "tokens to the goal", ",.0f"),
        tips.tip("least:Q", "interval, from", ",.0f"),
        tips.tip("most:Q", "interval, to", ",.0f"),
        tips.tip("replicates:Q", "searches"),
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("least:Q", scale=scale), y2="most:Q")
    lines = base.mark_line(strokeWidth=2).encode(y=y)
    dots = base.mark_point(filled=True, size=64, opacity=1).encode(y=y, tooltip=tooltip)
    return charts.sized(charts.controlled([bars, lines, dots], menu), 320)
