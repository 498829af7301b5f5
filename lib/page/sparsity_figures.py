"""Figures on sparse networks: their cost, and where their critical batch sizes lie."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.wording import named, span

LOG = {"type": "log", "base": 2, "nice": False}


def intervals(rows: pd.DataFrame, name: str) -> list[str]:
    """The columns name_low and name_high in words, for tooltips; "—" where there is none."""
    ends = zip(rows[f"{name}_low"], rows[f"{name}_high"])
    return [span(pair) if all(map(pd.notna, pair)) else "—" for pair in ends]


def relative(rows: pd.DataFrame, *controls: tuple) -> alt.LayerChart:
    """Relative steps against batch size, a line per sparsity; rows: of
    `lib.analysis.scaling.relative`.
    """
    pick, faded = charts.picked("sparsity")
    rows = rows.assign(interval=intervals(rows, "relative"))
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_sparsity(sorted(rows.sparsity.unique())),
        opacity=faded,
    )
    scale = alt.Scale(padding=8, **LOG)
    bars = base.transform_filter("isValid(datum.relative_low)").mark_rule(
        strokeWidth=1.5, strokeOpacity=0.45
    )
    bars = bars.encode(y=alt.Y("relative_low:Q", scale=scale), y2="relative_high:Q").add_params(
        pick
    )
    y = alt.Y("relative:Q", title="relative steps", scale=scale, axis=charts.fractions())
    lines = base.mark_line(point=alt.OverlayMarkDef(size=60)).encode(
        y=y,
        tooltip=[
            tips.SPARSITY,
            tips.BATCH_SIZE,
            alt.Tooltip("relative:Q", title="relative steps", format=".2f"),
            tips.INTERVAL,
            tips.STEPS,
            tips.SEARCHES,
        ],
    )
    return charts.controlled([bars, lines], *controls).properties(width="container", height=320)


def ratios(
    rows: pd.DataFrame,
    title: str,
    colour: alt.Color,
    lines: tuple[float, ...] = (1,),
    beyond: float = 4,
) -> alt.LayerChart:
    """Ratios with their intervals, a row per `row`, side by side within it by colour; a dashed line
    at each of `lines`.

    rows: row, label, ratio, ratio_low, ratio_high, sizes (batch sizes) and the colour's field, a
    name.  The axis ends `beyond` times the outermost points at most: an interval that goes on is
    cut there.
    """
    if rows.empty:
        return charts.nothing("No two curves share three batch sizes yet.")
    field, names = colour["shorthand"].split(":")[0], list(dict.fromkeys(rows.row))
    told = rows.drop(columns="effect", errors="ignore").assign(
        interval=intervals(rows, "ratio"), estimate=rows.ratio
    )
    shown, within = charts.cut(told, "ratio", beyond)
    scale = alt.Scale(padding=12, domain=within, clamp=True, **LOG)
    letters = shown[field].astype(str).map(named).str.len().max()
    columns = 1 if letters > 12 else 2  # two longer names, side by side, are cut on a phone
    colour = colour.legend(
        title=None, labelExpr=charts.SPELT, columns=columns, labelLimit=charts.LONGEST_NAME
    )
    base = alt.Chart(shown).encode(
        y=alt.Y("row:N", title=None, sort=names, axis=charts.broken()),
        yOffset=alt.YOffset(f"{field}:N"),
        color=colour,
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("ratio_low:Q", title=title, scale=scale), x2="ratio_high:Q"
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("ratio:Q", title=title, scale=scale, axis=charts.fractions(titleAnchor="end")),
        tooltip=[
            alt.Tooltip("row:N", title="network"),
            alt.Tooltip("label:N", title="shown"),
            alt.Tooltip("estimate:Q", title="ratio", format=".2f"),
            tips.INTERVAL,
            alt.Tooltip("sizes:Q", title="batch sizes"),
        ],
    )
    return alt.layer(charts.across(*lines, x=scale), bars, dots).properties(
        width="container", height=len(names) * max(64, 20 * shown[field].nunique())
    )
