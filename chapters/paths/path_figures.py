"""The figures of the page on the geometry of paths."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.page.tips import tip
from lib.wording import span

COLOURS = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE, charts.RED)


def _coloured(kinds: list[str], **options) -> alt.Color:
    scale = alt.Scale(domain=kinds, range=list(COLOURS[: len(kinds)]))
    legend = alt.Legend(columns=1, labelLimit=300, **options)
    return alt.Color("kind:N", title=None, scale=scale, legend=legend)


def cosines(rows: pd.DataFrame, kinds: list[str], start: str) -> alt.LayerChart:
    """Cosines against the batch size, a line for each kind with its interval; a menu of curves.

    rows: curve, batch_size, kind (in words), cosine, low, high, searches.  kinds: in the order of
    the legend.
    """
    # A logarithm has no place for less
    positive = rows.cosine.where(rows.cosine > 0)
    least = positive.groupby(rows.curve).transform("min") / 1.6
    ends = rows[["low", "high"]]
    told = [span((round(low, 3), round(high, 3))) for low, high in ends.to_numpy()]
    within = rows.assign(interval=told, cosine=positive, **ends.clip(lower=least, axis=0))
    scale = charts.log(12)
    axis = alt.Axis(values=[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], format="~r")
    y = alt.Y("cosine:Q", title="cosine with the direction to the end", scale=scale, axis=axis)
    colour = _coloured(kinds, symbolType="circle", symbolOpacity=1)
    base = alt.Chart(within).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    tooltip = [
        tip("kind:N", "gradients"),
        tips.BATCH_SIZE,
        tip("cosine:Q", "mean cosine", ".3f"),
        tips.INTERVAL,
        tip("searches:Q", "searches"),
    ]
    dots = base.transform_filter("isValid(datum.cosine)")
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, opacity=0.6)
    layers = [
        bars.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        dots.mark_line(strokeWidth=2.2).encode(y=y),
        dots.mark_point(filled=True, size=70, opacity=1).encode(y=y, tooltip=tooltip),
    ]
    return charts.sized(charts.controlled(layers, _curves(rows, start)), 330)


def _curves(rows: pd.DataFrame, start: str) -> tuple:
    return charts.menu("curve", sorted(set(rows.curve)), start, "trained")


def along(rows: pd.DataFrame, kinds: list[str], start: str, size: int) -> alt.LayerChart:
    """What is measured along paths against the part of the path done, 10 to 90 % of searches
    shaded; a menu and a slider.

    rows: curve, batch_size, kind (in words), part (0 to 1), value, low, high, all positive.
    """
    scale = charts.log(8, base=alt.Undefined)
    x = alt.X("part:Q", title="share of the path completed", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("value:Q", title="ratio to the median along the path", scale=scale)
    y = y.axis(format="~r")
    base = alt.Chart(rows).encode(x=x.axis(format="%"), color=_coloured(kinds))
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
    slider = charts.slider("batch_size", sizes, size, "batch size", said)
    return charts.sized(charts.controlled(layers, _curves(rows, start), slider), 320)


def scales(rows: pd.DataFrame, kinds: list[str], start: str) -> alt.LayerChart:
    """Critical batch sizes by cosines, noise and searches, with their ranges, a row per network; a
    menu of training methods.

    rows: row (its name), method, kind (in words), scale, scale_low, scale_high.
    """
    tooltip = [
        tip("row:N", "network"),
        tip("kind:N", "estimated from"),
        tip("scale:Q", "examples", ",.2r"),
        tip("range:N", "5–95 %"),
    ]
    menu = charts.menu("method", list(dict.fromkeys(rows.method)), start, "trained with")
    ordered = rows.sort_values("scale", ascending=False)
    title = "critical batch size (examples)"
    about = {"tooltip": tooltip, "beyond": 16}
    return shared_figures.range_chart(ordered, "scale", title, _coloured(kinds), menu, **about)
