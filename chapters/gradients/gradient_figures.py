"""The figure of how a gradient's entries are distributed."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts
from lib.page.tips import tip


def colours_of(ways: list[str]) -> dict[str, str]:
    """A colour for every way of sending; everything sent has that of dense networks."""
    shades = iter([charts.RED, charts.ORANGE, charts.GREEN, charts.TEAL])
    return {way: charts.DENSE if way == "everything sent" else next(shades) for way in ways}


def shapes(
    entries: pd.DataFrame, normal: pd.DataFrame, ways: list[str], network: str, step: int
) -> alt.LayerChart:
    """Densities of a vector's entries on a logarithmic axis, a line per way of sending, one network
    and step at a time.

    Args:
        entries: network, way, step, x (in standard deviations) and value (positive).
        normal: x and value of a normal distribution.
        ways: in the legend's order.
        network, step: shown first.
    """
    if entries.empty:
        return charts.nothing("Not measured yet.")
    pick, faded = charts.picked("way")
    x = alt.X("x:Q", title="entry over the standard deviation of all entries").scale(domain=[-6, 6])
    ticks = charts.powers([-4, -3, -2, -1, 0, 1])
    y = alt.Y("value:Q", title="probability density", axis=ticks)
    y = y.scale(
        type="log",
        domain=[1e-5, 20],
        clamp=True,
    )
    guide = alt.Chart(normal).mark_line(strokeDash=[4, 4], color=charts.GUIDE).encode(x=x, y=y)
    tooltip = [
        tip("way:N", "sent"),
        tip("x:Q", "standard deviations", ".2f"),
        tip("value:Q", "probability density", ".2~g"),
    ]
    colour = charts.by_name("way", colours_of(ways), columns=1)
    lines = alt.Chart(entries).mark_line(strokeWidth=2, clip=True).add_params(pick)
    lines = lines.encode(
        x=x,
        y=y,
        color=colour,
        opacity=faded,
        tooltip=tooltip,
    )
    networks, steps = sorted(entries.network.unique()), sorted(map(int, entries.step.unique()))
    network = network if network in networks else networks[0]
    step = step if step in steps else steps[0]
    menu = charts.menu("network", networks, network, "network")
    slider = charts.slider(
        "step",
        steps,
        step,
        "step",
        "'step ' + format(value, ',')",
    )
    return charts.sized(alt.layer(guide, charts.controlled([lines], menu, slider)), 250)
