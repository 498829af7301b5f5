"""Figures of critical batch sizes: every network's, and what one change does to it."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.limits.limit_tables import short
from lib.page import charts, tips
from lib.wording import named

CLEAR, OPEN = "clear", "undecided"  # whether the interval leaves out one
ROOM = alt.expr(f"width < {charts.PHONE} ? 1 : 3")  # columns of a legend beside long names of rows


def ladder_of_networks(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch sizes with their intervals, the smallest on top, a row each on a logarithmic
    axis.

    rows: name (one line), algorithm, goal, critical, critical_low, critical_high, identified
    (hollow if not), sizes, replicates.
    """
    if not len(rows):
        return charts.nothing("No curve has three batch sizes yet.")
    rows, within = charts.cut(rows.sort_values("critical"), "critical", 4)
    rows = rows.assign(
        row=[f"{name}|{i}" for i, name in enumerate(rows.name)], method=rows.algorithm.map(named)
    )
    scale = alt.Scale(type="log", base=2, nice=False, padding=8, domain=within, clamp=True)
    axis = alt.Axis(
        labelExpr="split(datum.label, '|')[0]",
        labelLimit=190,
        labelFontSize=11,
        labelOverlap=False,
        ticks=False,
    )
    powers = [2.0**n for n in range(30) if within[0] <= 2**n <= within[1]]
    ticks = alt.Axis(values=powers, format=",", labelOverlap="greedy", titleAnchor="end")
    pick, faded = charts.picked("algorithm", faint=0.15)
    base = alt.Chart(rows).encode(
        y=alt.Y("row:N", title=None, sort=None, axis=axis),
        color=charts.by_algorithm(list(rows.algorithm.unique())).legend(
            title=None, labelExpr=charts.SPELT, columns=ROOM
        ),
        opacity=faded,
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("critical_low:Q", scale=scale), x2="critical_high:Q"
    )
    tooltip = [
        alt.Tooltip("name:N", title="network"),
        alt.Tooltip("method:N", title="training method"),
        alt.Tooltip("goal:Q", title="goal error", format=".0%"),
        alt.Tooltip("critical:Q", title="critical batch size", format=",.2r"),
        alt.Tooltip("range:N", title="interval"),
        alt.Tooltip("sizes:Q", title="batch sizes measured"),
        alt.Tooltip("replicates:Q", title="searches of a point, at most"),
    ]
    x = alt.X("critical:Q", title="critical batch size (examples)", scale=scale, axis=ticks)
    dots = base.encode(x=x, tooltip=tooltip)
    known = dots.transform_filter("datum.identified").mark_point(filled=True, size=65, opacity=1)
    bound = dots.transform_filter("!datum.identified").mark_point(size=65, strokeWidth=2)
    layers = [bars.add_params(pick), known, *([bound] if not rows.identified.all() else [])]
    return alt.layer(*layers).properties(width="container", height=max(80, 14 * len(rows)))


def ratios_of_families(rows: pd.DataFrame) -> alt.LayerChart:
    """What one change multiplies the critical batch size by, the largest increase on top, with
    intervals and a line at one.

    rows: of `family_curves.effects`.
    """
    if not len(rows):
        return charts.nothing("No family has two curves yet.")
    rows = rows.drop(columns="effect").sort_values("ratio", ascending=False)
    rows, within = charts.cut(rows, "ratio", 4)
    rows = rows.assign(
        change=rows.family.map(short),
        told=rows.clear.map({True: CLEAR, False: OPEN}),
        bounded=rows.inside.map({True: "a value", False: "a bound"}),
    )
    scale = alt.Scale(type="log", base=2, nice=False, padding=10, domain=within, clamp=True)
    kinds = alt.Scale(domain=[CLEAR, OPEN], range=[charts.BLUE, charts.GUIDE])
    axis = alt.Axis(labelLimit=190, labelFontSize=12, labelOverlap=False, ticks=False)
    base = alt.Chart(rows).encode(
        y=alt.Y("change:N", title=None, sort=None, axis=axis),
        color=alt.Color("told:N", title=None, scale=kinds, legend=alt.Legend(columns=2)),
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("ratio_low:Q", scale=scale), x2="ratio_high:Q"
    )
    tooltip = [
        alt.Tooltip("change:N", title="what changes"),
        alt.Tooltip("first:N", title="from"),
        alt.Tooltip("last:N", title="to"),
        alt.Tooltip("ratio:Q", title="critical batch size times", format=".2r"),
        alt.Tooltip("range:N", title="interval"),
        alt.Tooltip("bounded:N", title="known as"),
    ]
    x = alt.X(
        "ratio:Q",
        title="ratio of critical batch sizes",
        scale=scale,
        axis=charts.fractions(titleAnchor="end"),
    )
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, tooltip=tooltip)
    return alt.layer(charts.across(1, x=scale), bars, dots).properties(
        width="container", height=22 * len(rows)
    )


def curves_of_families(curves: pd.DataFrame, names: list[str], normalised: bool) -> alt.LayerChart:
    """Steps to result of the members of one family, the first of names to begin with, against batch
    size.

    curves: of `family_curves.curves`.  normalised: divided by the steps at the smallest batch size
    that all members have.
    """
    if not len(curves):
        return charts.nothing("No records yet.")
    curves, names = curves.assign(family=curves.family.map(short)), list(map(short, names))
    column = "relative" if normalised else "steps"
    scale = alt.Scale(type="log", base=2, nice=False, padding=10)
    pick, faded = charts.picked("member")
    least = curves.groupby("family")[column].transform("min") / 1.3
    base = alt.Chart(curves.assign(guided=curves[f"{column}_perfect"] >= least)).encode(
        x=charts.batch_axis(curves.batch_size),
        color=alt.Color(
            "member:N", title=None, sort=None, legend=alt.Legend(columns=2, labelLimit=150)
        ),
        opacity=faded,
    )
    title = (
        "steps over those at the smallest batch"
        if normalised
        else "steps to result (training steps)"
    )
    y = alt.Y(f"{column}:Q", title=title, scale=scale, axis=charts.fractions())
    bars = base.mark_rule(strokeWidth=2).encode(
        y=alt.Y(f"{column}_low:Q", scale=scale), y2=f"{column}_high:Q"
    )
    tooltip = [
        alt.Tooltip("member:N", title="network"),
        tips.BATCH_SIZE,
        tips.STEPS,
        *tips.ends(),
        tips.SEARCHES,
        tips.TRIALS,
    ]
    line = base.mark_line(point=alt.OverlayMarkDef(size=55)).encode(y=y, tooltip=tooltip)
    guide = (
        base.transform_filter("datum.guided")
        .mark_line(strokeDash=[3, 4], strokeWidth=1)
        .encode(
            y=alt.Y(f"{column}_perfect:Q", scale=scale),
            color=alt.value(charts.GUIDE),
            detail="member:N",
        )
    )
    control = charts.menu("family", names, names[0], "what changes")
    return charts.controlled([guide.add_params(pick), bars, line], control).properties(
        width="container", height=320
    )
