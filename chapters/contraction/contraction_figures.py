"""Figures of what Top-k leaves of a vector: bounds, and the profiles on which they rest."""

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
VECTOR, DENSITY = tip("vector:N", "vector"), tip("x:Q", "density", ".2~g")
LEFT = tip("value:Q", "left", ".2%")


def bounds(
    curves: pd.DataFrame, band: pd.DataFrame, dots: pd.DataFrame, start: str
) -> alt.LayerChart:
    """What Top-k leaves of the energy against the density: bounds, the range of what was measured,
    and one vector's dots.

    Args:
        curves: bound (of BOUNDS), x and value.
        band: x, low, middle and high.
        dots: vector, x and value, for the menu.
        start: the vector shown first.
    """
    title = "share of the energy that is left"
    axis = alt.Axis(values=[0.001, 0.01, 0.1, 1], format="~g")
    x = alt.X("x:Q", title="density k/d", axis=axis).scale(type="log", domain=[1e-3, 1])
    y = alt.Y("value:Q", title=title).scale(domain=[0, 1]).axis(format="%")
    within = [
        tip("x:Q", "density", ".2~g"),
        tip("low:Q", "least left", ".2%"),
        tip("middle:Q", "median left", ".2%"),
        tip("high:Q", "most left", ".2%"),
    ]
    area = alt.Chart(band).mark_area(opacity=0.35, color=charts.BLUE)
    area = area.encode(x=x, y=alt.Y("low:Q", title=title), y2="high:Q", tooltip=within)
    lines = (
        alt.Chart(curves)
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=charts.by_name("bound", BOUNDS, columns=1),
            tooltip=[tip("bound:N", "curve"), DENSITY, LEFT],
        )
    )
    points = alt.Chart(dots).mark_point(filled=True, size=40, opacity=1, color=charts.BLUE)
    points = points.encode(x=x, y=y, tooltip=[VECTOR, DENSITY, LEFT])
    menu = charts.menu("vector", list(dict.fromkeys(dots.vector)), start, "dots")
    return charts.sized(alt.layer(area, lines, charts.controlled([points], menu)), 280)


def profiles(rows: pd.DataFrame, start: str) -> alt.LayerChart:
    """Sorted squared entries over the largest, one vector at a time, below a straight line.

    Args:
        rows: vector, x and value.
        start: the vector shown first.
    """
    straight = alt.Chart(pd.DataFrame({"x": [0, 1], "value": [1, 0]}))
    x = alt.X("x:Q", title="share of the entries, largest first").axis(format="%")
    y = alt.Y("value:Q", title="squared entry over the largest").scale(domain=[0, 1])
    line = straight.mark_line(strokeDash=[4, 4], color=charts.GUIDE).encode(x=x, y=y)
    share = tip("x:Q", "share of the entries", ".0%")
    height = tip("value:Q", "squared entry over the largest", ".2~g")
    area = alt.Chart(rows).mark_area(
        opacity=0.5,
        line=True,
        color=charts.BLUE,
    )
    area = area.encode(
        x=x,
        y=y,
        tooltip=[VECTOR, share, height],
    )
    menu = charts.menu("vector", list(dict.fromkeys(rows.vector)), start, "vector")
    return charts.sized(alt.layer(charts.controlled([area], menu), line), 240)
