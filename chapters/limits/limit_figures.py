"""Figures of critical batch sizes: every network's, and what one change does to it."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.limits.limit_tables import short
from lib.page import charts, tips
from lib.page.panels import panels, small_axes, small_curve
from lib.page.tips import tip
from lib.wording import named

CLEAR, OPEN = "clear", "undecided"  # whether the interval leaves out one


def ladder_of_networks(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch sizes with their intervals on a logarithmic axis, a row each: the methods one
    below the other, and below each its networks, the smallest critical batch size first.

    Args:
        rows: name (one line), algorithm, goal, critical, critical_low, critical_high, identified
            (hollow if not), sizes, replicates.
    """
    if not len(rows):
        return charts.nothing("No curve has three batch sizes yet.")
    rows, within = charts.cut(rows.sort_values(["algorithm", "critical"]), "critical", 4)
    rows = rows.assign(method=rows.algorithm.map(named))
    heads = rows[["method"]].drop_duplicates().assign(name=lambda own: own.method)
    rows = pd.concat([heads, rows]).sort_values("method", kind="stable")
    rows = rows.assign(row=[f"{name}|{i}" for i, name in enumerate(rows.name)])
    head = f"indexof({list(heads.name)!r}, split(datum.label, '|')[0]) >= 0"
    axis = alt.Axis(
        labelExpr="split(datum.label, '|')[0]",
        labelFontWeight=alt.condition(head, alt.value("bold"), alt.value("normal")),
        labelLimit=190,
        labelFontSize=11,
        labelOverlap=False,
        ticks=False,
    )
    first = 2.0 ** np.floor(np.log2(within[0]))
    scale = charts.log(8, domain=[first, within[1]], clamp=True)
    powers = [first * 4**n for n in range(12) if first * 4**n <= within[1]]
    base = alt.Chart(rows).encode(y=alt.Y("row:N", title=None, sort=list(rows.row), axis=axis))
    known = base.transform_filter("isValid(datum.critical)")
    x = alt.X("critical:Q", title="critical batch size (examples)", scale=scale)
    x = x.axis(values=powers, format=",", titleAnchor="end")
    bars = known.mark_rule(strokeWidth=2, color=charts.BLUE)
    bars = bars.encode(x=alt.X("critical_low:Q", scale=scale), x2="critical_high:Q")
    tooltip = [
        tip("name:N", "network"),
        tip("method:N", "training method"),
        tip("goal:Q", "goal error", ".0%"),
        tip("critical:Q", "critical batch size", ",.2r"),
        tip("range:N", "interval"),
        tip("sizes:Q", "batch sizes measured"),
        tip("replicates:Q", "searches of a point, at most"),
    ]
    fill = (
        alt.when("datum.identified")
        .then(alt.value(charts.BLUE))
        .otherwise(alt.value("transparent"))
    )
    dots = known.mark_point(size=55, color=charts.BLUE, opacity=1)
    dots = dots.encode(x=x, fill=fill, tooltip=tooltip)
    every = base.mark_point(opacity=0)  # so that the axis has the methods' own rows
    return charts.sized(alt.layer(every, bars, dots), max(80, 15 * len(rows)))


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


# The paper's comparisons of figures 3, 5 and 6 that are not measured here
LARGE = (
    "ImageNet, ResNet-50 → VGG-11",
    "LM1B, Transformer → LSTM",
    "LM1B, wide → shallow Transformer",
    "ResNet-50, ImageNet → Open Images",
    "Transformer, LM1B → Common Crawl",
    "ImageNet, half the images → all",
)


def curves_of_families(curves: pd.DataFrame, names: list[str], normalised: bool) -> alt.FacetChart:
    """Steps to result against batch size, a panel per family, a line per member.

    Args:
        curves: of `family_curves.curves`.
        names: the order of the families.
        normalised: whether steps are divided by those at the smallest batch size that all members
            have.
    """
    if not len(curves):
        return charts.nothing("No records yet.")
    column = "relative" if normalised else "steps"
    renamed = {f"{column}_{end}": f"drawn_{end}" for end in ("low", "high", "perfect")}
    rows = curves.rename(columns={column: "drawn", **renamed})
    ends = rows.groupby("family").member.agg(["first", "last"])
    ends = ends.apply(lambda names: names.str.replace(", goal", " at", regex=False))
    words = {name: f"{short(name)}, {first} → {last}" for name, first, last in ends.itertuples()}
    rows = rows.assign(place=_places(rows), panel=rows.family.map(words))
    rows = rows.set_index("family").loc[[name for name in names if name in set(curves.family)]]
    kept = ["panel", "member", "place", "batch_size", "steps", "low", "high", "replicates"]
    rows = rows[[*kept, "drawn", "drawn_low", "drawn_high", "drawn_perfect"]].reset_index(drop=True)
    what = "steps over those at the smallest batch" if normalised else "steps to result"
    return panels(rows, _members, f"{what}, against batch size", LARGE)


def _places(rows: pd.DataFrame) -> pd.Series:
    """0 for a family's first member, 1 for its last."""
    order = rows.groupby("family").member.transform(lambda names: pd.factorize(names)[0])
    return order / order.groupby(rows.family).transform("max")


def _members(base: alt.Chart) -> list[alt.Chart]:
    scale = charts.log(4)
    y = alt.Y("drawn:Q", scale=scale, axis=charts.fractions(values=[4.0**n for n in range(-9, 12)]))
    shades = alt.Scale(domain=[0, 0.5, 1], range=[charts.BLUE, charts.PURPLE, charts.ORANGE])
    lines = base.encode(
        color=alt.Color("place:Q", scale=shades, legend=None),
        detail="member:N",
        **small_axes(charts.batch_axis([1, 8, 64, 512, 4096]), y),
    )
    perfect = base.mark_line(strokeDash=[3, 4], strokeWidth=1, color=charts.GUIDE, clip=True)
    network = tip("member:N", "network")
    told = [network, tips.BATCH_SIZE, tips.STEPS, *tips.ends(), tips.SEARCHES]
    guide = perfect.encode(x="batch_size:Q", y="drawn_perfect:Q", detail="member:N")
    return [guide, *small_curve(lines, told, "drawn_low", "drawn_high")]
