"""Figures of the language model: steps and tokens against batches of sequences."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.language_model import branched
from lib.analysis.scaling import mean_of
from lib.page import charts, shared_figures, tips
from lib.workloads.texts import CONTEXT

SHADES = (charts.RED, charts.ORANGE, charts.GREEN, charts.TEAL, charts.BLUE, charts.PURPLE)
NATS = (
    "'goal: ' + format(value, '.2f') + ' nats, ' + format(value / LN2, '.2f') + ' bits a character'"
)


def steps_by_method(points: pd.DataFrame, start: float) -> alt.LayerChart:
    """Steps to result against batch size, a colour per curve; a slider over goals.

    Args:
        points: of `text_results.curves`.
        start: the goal shown first.
    """
    known = points.drop_duplicates("curve")
    shades = known.algorithm.map(charts.ALGORITHM_COLOURS).fillna(charts.GUIDE)
    shades = shades.mask(known.sparsity > 0, charts.sparsity_colour(0.9))
    names = dict(zip(known.curve, shades))
    colour = charts.by_name("curve", names, 2)
    goals = sorted(points.goal.unique())
    slider = charts.slider("goal", goals, start, "goal (nats)", NATS)
    return shared_figures.scaling_chart(points, colour, slider, height=340)


def tokens_by_goal(points: pd.DataFrame, start: str) -> alt.LayerChart:
    """Tokens to each goal against batch size, a colour per goal from the hardest, red, to the
    easiest, with the intervals of the steps; a menu of curves.

    Args:
        points: of `text_results.curves`.
        start: the curve shown first.
    """
    each = CONTEXT * points.batch_size
    rows = pd.DataFrame(
        {
            "curve": points.curve,
            "goal": points.goal.map("{:g} nats".format),
            "batch_size": points.batch_size,
            "tokens": each * points.steps,
            "low": each * points.low,
            "high": each * points.high,
            "replicates": points.replicates,
        }
    )
    names = dict(zip(sorted(rows.goal.unique()), SHADES))
    base = alt.Chart(rows).encode(color=charts.by_name("goal", names, 2))
    more = {"replicates:Q": "searches"}
    layers = _tokens(base, rows.batch_size, "tokens to the goal", more)
    curves = list(points.curve.unique())
    menu = charts.menu("curve", curves, start, "training method")
    drawn = charts.controlled(layers, menu)
    return charts.sized(drawn, 320)


def tokens_to_goal(branches: pd.DataFrame) -> pd.DataFrame:
    """Tokens to the next goal: branch (in words), way, batch_size, tokens, low, high (90 %),
    orders; batch sizes that missed the goal in some order are left out.

    Args:
        branches: of `branched.to_goal`.
    """
    rows = []
    for (way, at, goal, size), own in branches.groupby(["way", "at", "goal", "size"]):
        if own.took.notna().all():
            logs = np.log(CONTEXT * own.took)
            tokens, low, high = mean_of(logs).row().values()
            row = {
                "branch": f"from step {at:,} to {goal:g} nats",
                "way": way,
                "batch_size": size,
                "tokens": tokens,
                "low": low,
                "high": high,
                "orders": len(own),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def tokens_by_size(rows: pd.DataFrame) -> alt.LayerChart:
    """Tokens to the next goal against batch size, a line per branch point and way to set the rate.

    Args:
        rows: of `tokens_to_goal`.
    """
    shades = (charts.BLUE, charts.TEAL, charts.ORANGE)
    names = dict(zip(rows.branch.unique(), shades))
    ways = alt.Scale(
        domain=[branched.RULE, branched.KEPT],
        range=[[1, 0], [4, 4]],
    )
    # Below the plot: beside the names of branches a phone has no room for it
    legend = alt.Legend(title=None, columns=1, orient="bottom")
    dash = alt.StrokeDash("way:N", scale=ways, legend=legend)
    colour = charts.by_name("branch", names)
    base = alt.Chart(rows).encode(color=colour, detail="way:N")
    more = {
        "way:N": "learning rate",
        "orders:Q": "orders of the examples",
    }
    bars, lines, dots = _tokens(base, rows.batch_size, "tokens to the next goal", more)
    lines = lines.encode(strokeDash=dash)
    return charts.sized(alt.layer(bars, lines, dots), 320)


def _tokens(base: alt.Chart, sizes: pd.Series, title: str, more: dict[str, str]) -> list[alt.Chart]:
    """The layers of tokens against batch size, of rows with batch_size, tokens, low and high; more:
    columns that pointing at a mark tells, too.
    """
    scale = charts.log(8, base=10)
    axis = alt.Axis(format="~s", values=charts.DECADES)
    y = alt.Y("tokens:Q", title=title, scale=scale, axis=axis)
    x = charts.batch_axis(sizes, "batch size (sequences)")
    base = base.encode(x=x)
    told = {
        "batch_size:Q|,": "batch size, sequences",
        "tokens:Q|,.0f": "tokens to the goal",
    }
    tooltip = [*tips.listed(told | more), *tips.ends()]
    return charts.curve(base, y, scale, tooltip)
