"""The figures of the page on the geometry of paths."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.wording import span

COLOURS = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE, charts.RED)


def _coloured(kinds: list[str], **options) -> alt.Color:
    scale = alt.Scale(domain=kinds, range=list(COLOURS[: len(kinds)]))
    return alt.Color(
        "kind:N", title=None, scale=scale, legend=alt.Legend(columns=1, labelLimit=300, **options)
    )


def cosines(rows: pd.DataFrame, kinds: list[str], start: str) -> alt.LayerChart:
    """Cosines against the batch size, a line for each kind with its interval; a menu of curves.

    rows: curve, batch_size, kind (in words), cosine, low, high, searches.  kinds: in the order of
    the legend.
    """
    # A logarithm has no place for less
    least = rows.cosine.where(rows.cosine > 0).groupby(rows.curve).transform("min") / 1.6
    within = rows.assign(
        interval=[span((round(low, 3), round(high, 3))) for low, high in zip(rows.low, rows.high)],
        low=rows.low.clip(lower=least),
        high=rows.high.clip(lower=least),
        cosine=rows.cosine.where(rows.cosine > 0),
    )
    scale = alt.Scale(type="log", base=2, nice=False, padding=12)
    axis = alt.Axis(values=[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], format="~r")
    y = alt.Y("cosine:Q", title="cosine with the direction to the end", scale=scale, axis=axis)
    colour = _coloured(kinds, symbolType="circle", symbolOpacity=1)
    base = alt.Chart(within).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    tip = [
        alt.Tooltip("kind:N", title="gradients"),
        tips.BATCH_SIZE,
        alt.Tooltip("cosine:Q", title="mean cosine", format=".3f"),
        alt.Tooltip("interval:N", title="5–95 %"),
        alt.Tooltip("searches:Q", title="searches"),
    ]
    dots = base.transform_filter("isValid(datum.cosine)")
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, opacity=0.6)
    layers = [
        bars.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        dots.mark_line(strokeWidth=2.2).encode(y=y),
        dots.mark_point(filled=True, size=70, opacity=1).encode(y=y, tooltip=tip),
    ]
    menu = charts.menu("curve", sorted(set(rows.curve)), start, "trained")
    return charts.controlled(layers, menu).properties(width="container", height=330)


def along(rows: pd.DataFrame, kinds: list[str], start: str, size: int) -> alt.LayerChart:
    """What is measured along paths against the part of the path done, 10 to 90 % of searches
    shaded; a menu and a slider.

    rows: curve, batch_size, kind (in words), part (0 to 1), value, low, high, all positive.
    """
    scale = alt.Scale(type="log", nice=False, padding=8)
    x = alt.X(
        "part:Q",
        title="share of the path completed",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
    y = alt.Y(
        "value:Q",
        title="ratio to the median along the path",
        scale=scale,
        axis=alt.Axis(format="~r"),
    )
    base = alt.Chart(rows).encode(x=x, color=_coloured(kinds))
    tip = [
        alt.Tooltip("kind:N", title="measured"),
        alt.Tooltip("part:Q", title="share of the path", format=".0%"),
        alt.Tooltip("value:Q", title="median over searches", format=".2f"),
        alt.Tooltip("low:Q", title="10th percentile of searches", format=".2f"),
        alt.Tooltip("high:Q", title="90th percentile of searches", format=".2f"),
    ]
    layers = [
        base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_line(strokeWidth=2.2).encode(y=y),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=y, tooltip=tip),
    ]
    menu = charts.menu("curve", sorted(set(rows.curve)), start, "trained")
    sizes = sorted(map(int, rows.batch_size.unique()))
    slider = charts.slider(
        "batch_size", sizes, size, "batch size", "'batch size ' + format(value, ',')"
    )
    return charts.controlled(layers, menu, slider).properties(width="container", height=320)


def scales(rows: pd.DataFrame, kinds: list[str], start: str) -> alt.LayerChart:
    """Critical batch sizes by cosines, noise and searches, with their ranges, a row per network; a
    menu of training methods.

    rows: row (its name), method, kind (in words), scale, scale_low, scale_high.
    """
    tip = [
        alt.Tooltip("row:N", title="network"),
        alt.Tooltip("kind:N", title="estimated from"),
        alt.Tooltip("scale:Q", title="examples", format=",.2r"),
        alt.Tooltip("range:N", title="5–95 %"),
    ]
    menu = charts.menu("method", list(dict.fromkeys(rows.method)), start, "trained with")
    return shared_figures.range_chart(
        rows.sort_values("scale", ascending=False),
        "scale",
        "critical batch size (examples)",
        _coloured(kinds),
        menu,
        tooltip=tip,
        beyond=16,
    )
