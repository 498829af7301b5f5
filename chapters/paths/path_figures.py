"""The figures of the page on the geometry of paths."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.paths import path_geometry
from lib.page import charts, tips
from lib.page.tips import tip
from lib.wording import span

COLOURS = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE, charts.RED)
KINDS = dict(zip(path_geometry.KINDS.values(), COLOURS))
QUANTITIES = dict(zip(path_geometry.QUANTITIES.values(), COLOURS))


def cosines(rows: pd.DataFrame) -> alt.LayerChart:
    """Cosines against the batch size, a line for each kind with its interval; a menu of curves.

    rows: curve and the columns of `path_geometry.cosines`.
    """
    rows = rows[rows.cosine > 0]  # A logarithm has no place for less
    least = rows.groupby("curve").cosine.transform("min") / 1.6
    ends = rows[["low", "high"]]
    told = [span((round(low, 3), round(high, 3))) for low, high in ends.to_numpy()]
    within = rows.assign(interval=told, **ends.clip(lower=least, axis=0))
    scale = charts.log(12)
    axis = alt.Axis(values=[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], format="~r")
    y = alt.Y("cosine:Q", title="cosine with the direction to the end", scale=scale, axis=axis)
    colour = charts.by_name("kind", KINDS, labelLimit=300)
    base = alt.Chart(within).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    tooltip = [
        tip("kind:N", "gradients"),
        tips.BATCH_SIZE,
        tip("cosine:Q", "mean cosine", ".3f"),
        tips.INTERVAL,
        tip("searches:Q", "searches"),
    ]
    layers = charts.curve(base, y, scale, tooltip)
    return charts.sized(charts.controlled(layers, _curves(rows)), 330)


def _curves(rows: pd.DataFrame) -> tuple:
    names = sorted(set(rows.curve))
    return charts.menu("curve", names, names[0], "trained")


def along(rows: pd.DataFrame) -> alt.LayerChart:
    """What is measured along paths against the part of the path done, 10 to 90 % of searches
    shaded; a menu and a slider.

    rows: curve and the columns of `path_geometry.along`.
    """
    scale = charts.log(8, base=alt.Undefined)
    x = alt.X("part:Q", title="share of the path completed", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("value:Q", title="ratio to the median along the path", scale=scale)
    y = y.axis(format="~r")
    colour = charts.by_name("kind", QUANTITIES)
    base = alt.Chart(rows).encode(x=x.axis(format="%"), color=colour)
    tooltip = [
        tip("kind:N", "measured"),
        tip("part:Q", "share of the path", ".0%"),
        tip("value:Q", "median over searches", ".2f"),
        tip("low:Q", "10th percentile of searches", ".2f"),
        tip("high:Q", "90th percentile of searches", ".2f"),
    ]
    layers = [
        base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_line(strokeWidth=2.2).encode(y=y),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=y, tooltip=tooltip),
    ]
    sizes = sorted(map(int, rows.batch_size.unique()))
    said = "'batch size ' + format(value, ',')"
    slider = charts.slider("batch_size", sizes, None, "batch size", said)
    return charts.sized(charts.controlled(layers, _curves(rows), slider), 320)
