"""Figures of the language model: steps, and tokens, against batches of sequences."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import STEPS
from lib.page.tips import tip

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
    bits = points.goal / np.log(2)
    points = points.assign(interval=points.borrowed.map(tips.KNOWN_FROM), bits=bits)
    scale = charts.log(domain=[points.low.min() / 1.3, points.high.max() * 1.3])
    pick, faded = charts.picked("curve")
    tokens = f"[format(datum.value, ','), format({context} * datum.value, ',')]"
    x = charts.batch_axis(points.batch_size, "batch size: sequences, below them tokens")
    x = x.axis(values=x["axis"]["values"], labelExpr=tokens, labelOverlap="parity")
    look = looks(points)
    base = alt.Chart(points).encode(x=x, color=look["color"], opacity=faded)
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    tooltip = [
        *tips.listed(
            {
                "curve:N": "training method",
                "batch_size:Q|,": "batch size, sequences",
                "tokens:Q|,": "batch size, tokens",
                "goal:Q|.2f": "goal, nats",
                "bits:Q|.2f": "goal, bits a character",
            }
        ),
        tips.STEPS,
        *tips.ends(),
        tip("interval:N", "interval known from"),
        tips.SEARCHES,
        tip("missed:Q", "of these, missed the goal"),
        tips.TRIALS,
    ]
    bars, _, dots = charts.curve(base, y, scale, tooltip, shape=look["shape"])
    # A method that has no line yet has its points joined.
    lined = lines[["curve", "goal"]].drop_duplicates().assign(lined=True)
    loose = points.merge(lined, on=["curve", "goal"], how="left")
    joined = base.properties(data=loose[loose.lined.isna()])
    layers = [bars.add_params(pick), joined.mark_line(strokeDash=[2, 3]).encode(y=y), dots]
    if len(lines):
        fitted = base.properties(data=lines).mark_line(strokeWidth=2.2, clip=True)
        layers.insert(1, fitted.encode(y=alt.Y("fitted:Q", scale=scale)))
    goals = sorted(points.goal.unique())
    slider = charts.slider("goal", goals, start, "goal (nats)", NATS)
    return charts.sized(charts.controlled(layers, slider), 340)


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
    scale = charts.log(8, base=10)
    tens = [n * 10**power for power in range(3, 12) for n in (1, 2, 5)]
    ticks = [n for n in tens if drawn.least.min() <= n <= drawn.most.max()]
    axis = alt.Axis(format="~s", values=ticks)
    y = alt.Y("used:Q", title="tokens to the goal", scale=scale, axis=axis)
    x = charts.batch_axis(drawn.batch_size, "batch size (sequences)")
    base = alt.Chart(drawn).encode(x=x, color=charts.by_name("label", names, 2))
    tooltip = [
        *tips.listed(
            {
                "curve:N": "training method",
                "label:N": "goal",
                "batch_size:Q|,": "batch size, sequences",
                "used:Q|,.0f": "tokens to the goal",
            }
        ),
        *tips.ends("least", "most"),
        tips.SEARCHES,
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("least:Q", scale=scale), y2="most:Q")
    lines = base.mark_line(strokeWidth=2).encode(y=y)
    dots = base.mark_point(filled=True, size=64, opacity=1).encode(y=y, tooltip=tooltip)
    return charts.sized(charts.controlled([bars, lines, dots], menu), 320)
