"""Figures of what Top-k leaves of a vector, and of how the vector's entries are distributed."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts
from lib.page.tips import tip

BOUNDS = {
    "1 − k/d (any vector)": charts.GUIDE,
    "(1 − k/d)² (bell)": charts.RED,
    "normal distribution": charts.TEAL,
}


def bounds(curves: pd.DataFrame, band: pd.DataFrame) -> alt.LayerChart:
    """What Top-k leaves of the energy against the density: bounds, and the range of what was
    measured.

    Args:
        curves: bound (of BOUNDS), x and value.
        band: x, low, middle and high.
    """
    title = "share of the energy that is left"
    axis = alt.Axis(values=[0.001, 0.01, 0.1, 1], format="~g")
    x = alt.X("x:Q", title="density k/d", axis=axis).scale(type="log", domain=[1e-3, 1])
    y = alt.Y("value:Q", title=title).scale(domain=[0, 1]).axis(format="%")
    ends = {"low": "least left", "middle": "median left", "high": "most left"}
    density = tip("x:Q", "density", ".2~g")
    within = [density, *(tip(f"{end}:Q", words, ".2%") for end, words in ends.items())]
    area = alt.Chart(band).mark_area(opacity=0.35, color=charts.BLUE)
    area = area.encode(x=x, y=alt.Y("low:Q", title=title), y2="high:Q", tooltip=within)
    told = [tip("bound:N", "curve"), density, tip("value:Q", "left", ".2%")]
    colour = charts.by_name("bound", BOUNDS, columns=1)
    lines = alt.Chart(curves).mark_line(strokeWidth=2)
    lines = lines.encode(x=x, y=y, color=colour, tooltip=told)
    return charts.sized(alt.layer(area, lines), 280)


def colours_of(ways: list[str]) -> dict[str, str]:
    """A colour for every way of sending; everything sent has that of dense networks."""
    shades = iter([charts.RED, charts.ORANGE, charts.GREEN, charts.TEAL])
    return {way: charts.DENSE if way == "everything sent" else next(shades) for way in ways}


def shapes(entries: pd.DataFrame, normal: pd.DataFrame, ways: list[str]) -> alt.LayerChart:
    """Densities of a vector's entries on a logarithmic axis, a line per way of sending, one network
    and step at a time.

    Args:
        entries: network, way, step, x (in standard deviations) and value (positive).
        normal: x and value of a normal distribution.
        ways: in the legend's order.
    """
    if entries.empty:
        return charts.nothing("Not measured yet.")
    pick, faded = charts.picked("way")
    x = alt.X("x:Q", title="entry over the standard deviation of all entries").scale(
        domain=[-6, 6]
    )
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
    menu = charts.menu("network", networks, networks[0], "network")
    slider = charts.slider(
        "step",
        steps,
        steps[0],
        "step",
        "'step ' + format(value, ',')",
    )
    return charts.sized(alt.layer(guide, charts.controlled([lines], menu, slider)), 250)
