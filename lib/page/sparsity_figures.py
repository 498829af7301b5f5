"""Figures on sparse networks: their cost, their common form, and where their critical batch sizes lie."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.wording import span

LOG = {"type": "log", "base": 2, "nice": False}


def intervals(rows: pd.DataFrame, name: str) -> list[str]:
    """The columns name_low and name_high in words, for tooltips; "—" where there is none."""
    ends = zip(rows[f"{name}_low"], rows[f"{name}_high"])
    return [span(pair) if all(map(pd.notna, pair)) else "—" for pair in ends]


def relative(rows: pd.DataFrame, *controls: tuple) -> alt.LayerChart:
    """Relative steps against batch size, a line per sparsity; rows: of `lib.analysis.scaling.relative`."""
    pick, faded = charts.picked("sparsity")
    rows = rows.assign(interval=intervals(rows, "relative"))
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_sparsity(sorted(rows.sparsity.unique())),
        opacity=faded,
    )
    scale = alt.Scale(padding=8, **LOG)
    bars = base.transform_filter("isValid(datum.relative_low)").mark_rule(strokeWidth=1.5, strokeOpacity=0.45)
    bars = bars.encode(y=alt.Y("relative_low:Q", scale=scale), y2="relative_high:Q").add_params(pick)
    y = alt.Y("relative:Q", title="relative steps", scale=scale, axis=charts.fractions())
    lines = base.mark_line(point=alt.OverlayMarkDef(size=60)).encode(y=y, tooltip=[
        tips.SPARSITY,
        tips.BATCH_SIZE,
        alt.Tooltip("relative:Q", title="relative steps", format=".2f"),
        tips.INTERVAL,
        tips.STEPS,
        tips.SEARCHES,
    ])  # fmt: skip
    return charts.controlled([bars, lines], *controls).properties(width="container", height=320)


def on_one_line(points: pd.DataFrame, law: pd.DataFrame) -> alt.LayerChart:
    """Points over their curve's floor (y) and critical batch size (x), and the law [x, y] that they should lie on.

    points: of `lib.analysis.scaling.on_one_line`, with `curve`, its name.
    """
    pick, faded = charts.picked("sparsity", 0.9, 0.05)
    scale = alt.Scale(padding=8, **LOG)
    x = alt.X("x:Q", title="batch size over the critical batch size", scale=scale, axis=charts.fractions())
    line = alt.Chart(law).mark_line(color=charts.GUIDE, strokeWidth=3)
    line = line.encode(x=x, y=alt.Y("y:Q", title="steps over the curve's floor", scale=scale))
    marks = alt.Chart(points).mark_point(size=36).encode(
        x="x:Q",
        y="y:Q",
        color=charts.by_sparsity(sorted(points.sparsity.unique())),
        opacity=faded,
        tooltip=[
            alt.Tooltip("curve:N", title="network"),
            tips.SPARSITY,
            tips.BATCH_SIZE,
            tips.STEPS,
            tips.SEARCHES,
        ],
    )  # fmt: skip
    return (line + marks.add_params(pick)).properties(width="container", height=380)


def ratios(
    rows: pd.DataFrame,
    title: str,
    colour: alt.Color,
    lines: tuple[float, ...] = (1,),
    band: tuple[float, float, float] | None = None,
    beyond: float = 4,
) -> alt.LayerChart:
    """Ratios with their intervals, a row per `row`, side by side within it by colour; a dashed line at each of `lines`.

    rows: row, label, ratio, ratio_low, ratio_high, sizes (batch sizes) and the colour's field, a name.  band: low, middle and
    high of what is drawn behind them all.  The axis ends `beyond` times the outermost points at most: an interval that goes
    on is cut there.
    """
    if rows.empty:
        return charts.nothing("No two curves share three batch sizes yet.")
    field, names = colour["shorthand"].split(":")[0], list(dict.fromkeys(rows.row))
    told = rows.assign(interval=intervals(rows, "ratio"), estimate=rows.ratio)
    shown, within = charts.cut(told, "ratio", beyond)
    scale = alt.Scale(padding=12, domain=within, clamp=True, **LOG)
    behind = [charts.across(*lines, x=scale)]
    if band is not None:
        behind = [*_band(band, scale), *behind]
    wide = shown[field].astype(str).str.len().max() > 12  # two such names, side by side, are cut on a phone
    colour = colour.legend(title=None, labelExpr=charts.SPELT, columns=1 if wide else 2)
    base = alt.Chart(shown).encode(
        y=alt.Y("row:N", title=None, sort=names, axis=charts.broken()), yOffset=alt.YOffset(f"{field}:N"), color=colour
    )
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("ratio_low:Q", title=title, scale=scale), x2="ratio_high:Q")
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
    return alt.layer(*behind, bars, dots).properties(
        width="container", height=len(names) * max(64, 20 * shown[field].nunique())
    )


def _band(band: tuple[float, float, float], scale: alt.Scale) -> list[alt.Chart]:
    low, middle, high = band
    wide = alt.Chart(pd.DataFrame({"low": [low], "high": [high]})).mark_rect(color=charts.GUIDE, opacity=0.2)
    wide = wide.encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    line = alt.Chart(pd.DataFrame({"at": [middle]})).mark_rule(color=charts.GUIDE, strokeWidth=2)
    return [wide, line.encode(x=alt.X("at:Q", scale=scale))]
