"""Figures of training with sparse messages: errors, what is sent, and both kinds of sparsity."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts
from lib.page.tips import tip

METHODS = {
    "dense": charts.DENSE,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "DGC-k": charts.TEAL,
    "Rand-k with feedback": charts.ORANGE,
    "Rand-k": charts.PURPLE,
}
METHOD = tip("method:N", "method")
FLOOR = 1e-3  # of what is drawn on a logarithmic axis
NONE = "No records yet."


def _colour(rows: pd.DataFrame) -> alt.Color:
    shown = set(rows.method)
    return charts.by_name("method", {m: c for m, c in METHODS.items() if m in shown}, columns=2)


def _controls(networks: list[str], densities: list[float]) -> tuple[tuple, tuple]:
    """A menu of networks and a slider over densities, the first of each shown first."""
    caption = "'density ' + format(value, '.2~g')"
    return (
        charts.menu("network", networks, networks[0], "network"),
        charts.slider("density", densities, densities[0], "density", caption),
    )


def errors(lines: pd.DataFrame, networks: list[str], densities: list[float]) -> alt.LayerChart:
    """Test error against steps or megabytes, a line per method.

    Args:
        lines: network, method, density, budget (steps), megabytes, error, low, high (over seeds),
            seeds and rate.
        networks, densities: those to choose from, shown first first.
    """
    if lines.empty:
        return charts.nothing(NONE)
    sides = {"training steps": "budget", "megabytes sent by a worker": "megabytes"}
    rows = pd.concat([lines.assign(axis=name, x=lines[column]) for name, column in sides.items()])
    network, density = _controls(networks, densities)
    against = charts.menu("axis", list(sides), next(iter(sides)), "against")
    pick, faded = charts.picked("method")
    scale = charts.log(8, base=None)
    x = alt.X("x:Q", title="training steps, or megabytes sent", scale=scale)
    y = alt.Y("error:Q", title="test error", scale=scale).axis(format="~%", values=charts.DECADES)
    tooltip = [
        METHOD,
        tip("budget:Q", "training steps", ","),
        tip("megabytes:Q", "megabytes sent by a worker", ".3g"),
        tip("error:Q", "test error, mean", ".2%"),
        tip("low:Q", "lowest seed", ".2%"),
        tip("high:Q", "highest seed", ".2%"),
        tip("seeds:Q", "seeds"),
        tip("rate:Q", "learning rate", ".3f"),
    ]
    x = x.axis(values=charts.DECADES)
    base = alt.Chart(rows).encode(
        x=x,
        color=_colour(lines),
        opacity=faded,
    )
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q").add_params(pick)
    layers = [bars, charts.dotted(base, 45, y=y, tooltip=tooltip)]
    return charts.sized(charts.controlled(layers, network, against, density), 250)


def sent(runs: pd.DataFrame, networks: list[str], densities: list[float]) -> alt.LayerChart:
    """Entries sent over those asked for against the step, a line per method and learning rate; what
    is below FLOOR is drawn there.

    Args:
        runs: network, method, density, learning_rate, budget (step) and over.
        networks, densities: those to choose from, shown first first.
    """
    if runs.empty:
        return charts.nothing(NONE)
    names = {-3: "≤ 0.001", -2: "0.01", -1: "0.1", 1: "10", 2: "100"}
    ticks = charts.powers([-3, -2, -1, 0, 1, 2], names)
    y = alt.Y(
        "drawn:Q",
        title="entries sent over k",
        axis=ticks,
        scale=charts.log(8, base=None),
    )
    pick, faded = charts.picked("method")
    base = alt.Chart(runs.assign(drawn=runs.over.clip(lower=FLOOR))).encode(
        x=alt.X("budget:Q", title="training step", scale=charts.log(8)),
        color=_colour(runs),
        detail="learning_rate:N",
        opacity=faded,
    )
    tooltip = [
        METHOD,
        tip("learning_rate:Q", "learning rate", ".3f"),
        tip("budget:Q", "up to step", ","),
        tip("over:Q", "entries sent over those asked for", ".2~g"),
    ]
    lines = charts.dotted(base, 30, y=y, tooltip=tooltip).add_params(pick)
    asked = alt.Chart(pd.DataFrame({"drawn": [1]})).encode(y=y)
    asked = asked.mark_rule(color=charts.GUIDE, strokeDash=[4, 4])
    drawn = charts.controlled([lines], *_controls(networks, densities))
    return charts.sized(alt.layer(asked, drawn), 280)


def joint(curves: pd.DataFrame, start: str) -> alt.LayerChart:
    """Steps to result against the density of messages, a line per sparsity.

    Args:
        curves: of `message_results.joint_curves`, and place (its menu's name).
        start: the place shown first.
    """
    if curves.empty:
        return charts.nothing(NONE)
    places = list(dict.fromkeys(curves.place))
    shares = sorted(curves.density.unique())
    axis = alt.Axis(
        values=shares,
        format=".2~g",
        grid=False,
    )
    ends = [shares[0] / 1.6, shares[-1] * 1.6]
    x = alt.X("density:Q", title="density of the messages", axis=axis)
    x = x.scale(
        charts.log(
            base=None,
            reverse=True,
            domain=ends,
        )
    )
    scale = charts.log(10)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    base = alt.Chart(curves).encode(x=x, color=charts.by_sparsity(sorted(curves.sparsity.unique())))
    tooltip = [
        tip("sparsity:N", "sparsity of the network"),
        tip("density:Q", "density", ".2~g"),
        tip("steps:Q", "steps to result", ","),
        tip("low:Q", "5 % over searches", ",.0f"),
        tip("high:Q", "95 % over searches", ",.0f"),
        tip("trials:Q", "trials of the search"),
        tip("hits_seen:Q", "trials that met the goal"),
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    layers = [bars, charts.dotted(base, 64, y=y, tooltip=tooltip)]
    menu = charts.menu("place", places, start if start in places else places[0], "where")
    return charts.sized(charts.controlled(layers, menu), 300)
