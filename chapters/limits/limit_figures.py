"""Figures of critical batch sizes: every network's, and what one change does to it."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import panels, small_curve
from lib.page.tips import tip
from lib.wording import named

NAMES = {"labelFontSize": 11, "labelOverlap": False, "ticks": False}  # an axis of names


def ladder_of_networks(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch sizes with their intervals on a logarithmic axis, a row each: the methods one
    below the other, and of each its networks, the smallest critical batch size first.

    rows: of `findings.networks`; hollow if not identified.
    """
    rows, within = charts.cut(rows.sort_values(["algorithm", "critical"]), "critical", 4)
    rows = rows.assign(method=rows.algorithm.map(named), row=rows.name + "|" + rows.algorithm)
    easier = "replace(split(datum.label, '|')[0], 'easier goal', 'easier')"
    axis = alt.Axis(labelExpr=easier, labelLimit=200, **NAMES)
    first = 2.0 ** np.floor(np.log2(within[0]))
    scale = charts.log(8, domain=[first, within[1]], clamp=True)
    powers = [first * 4**n for n in range(12) if first * 4**n <= within[1]]
    base = alt.Chart(rows).encode(
        y=alt.Y("row:N", title=None, sort=None, axis=axis),
        color=charts.by_algorithm(list(rows.algorithm), columns=1),
    )
    x = alt.X("critical:Q", title="critical batch size (examples)", scale=scale)
    x = x.axis(values=powers, format=",", titleAnchor="end")
    tooltip = [
        tip("name:N", "network"),
        tip("method:N", "training method"),
        tip("goal:Q", "goal error", ".0%"),
        tip("critical:Q", "critical batch size", ",.2r"),
        tip("range:N", "interval"),
        tip("sizes:Q", "batch sizes measured"),
        tip("replicates:Q", "searches of a point, at most"),
    ]
    bars, dots = charts.ranges(base, "critical", x, alt.X("critical_low:Q", scale=scale), tooltip)
    hollow = base.mark_point(size=70, opacity=1).encode(x=x, tooltip=tooltip)
    filled = dots.transform_filter("datum.identified")
    return charts.sized(alt.layer(bars, hollow, filled), 15 * len(rows))


def ratios_of_families(rows: pd.DataFrame) -> alt.LayerChart:
    """What one change multiplies the critical batch size by, the largest increase on top, with
    intervals and a line at one.

    rows: of `families.effects`.
    """
    rows = rows.drop(columns="effect").sort_values("ratio", ascending=False)
    rows, within = charts.cut(rows, "ratio", 4)
    rows = rows.assign(
        told=np.where(rows.clear, "clear", "undecided"),
        bounded=np.where(rows.inside, "a value", "a bound"),
    )
    scale = charts.log(10, domain=within, clamp=True)
    kinds = {"clear": charts.BLUE, "undecided": charts.GUIDE}
    # Two lines for a long name: on a phone the plot would have no room beside one
    lines = {"labelExpr": "split(datum.label, ', ')", "labelLineHeight": 11}
    axis = alt.Axis(**lines, labelLimit=190, **NAMES)
    base = alt.Chart(rows).encode(
        y=alt.Y("family:N", title=None, sort=None, axis=axis),
        color=charts.by_name("told", kinds, 2),
    )
    tooltip = [
        tip("family:N", "what changes"),
        tip("first:N", "from"),
        tip("last:N", "to"),
        tip("goal:Q", "goal error", ".0%"),
        tip("ratio:Q", "critical batch size times", ".2r"),
        tip("range:N", "interval"),
        tip("bounded:N", "known as"),
        tip("n:Q", "searches"),
    ]
    x = alt.X("ratio:Q", title="ratio of critical batch sizes", scale=scale)
    x = x.axis(charts.fractions(titleAnchor="end"))
    low = alt.X("ratio_low:Q", scale=scale)
    layers = charts.ranges(base, "ratio", x, low, tooltip, 80)
    return charts.sized(alt.layer(charts.across(1, x=scale), *layers), 28 * len(rows))


# The paper's comparisons of figures 3, 5 and 6 that are not measured here
LARGE = (
    "ImageNet, ResNet-50 → VGG-11",
    "LM1B, Transformer → LSTM",
    "LM1B, wide → shallow Transformer",
    "ResNet-50, ImageNet → Open Images",
    "Transformer, LM1B → Common Crawl",
    "ImageNet, half the images → all",
)


def curves_of_families(curves: pd.DataFrame, names: list[str]) -> alt.FacetChart:
    """Steps to result over those at the smallest batch size that all members have, a panel per
    family, a line per member.

    curves: of `families.curves`.  names: the families, in the order of their panels.
    """
    by = curves.groupby("family").member
    ends = by.agg(["first", "last"]).replace(", goal", " at", regex=True)
    words = {name: f"{name}, {first} → {last}" for name, first, last in ends.itertuples()}
    place = by.transform(lambda own: pd.factorize(own)[0])  # 0 for the first member, 1 for the last
    place /= place.groupby(curves.family).transform("max")
    rows = curves.assign(place=place, panel=curves.family.map(words))
    rows = rows.set_index("family").loc[names]
    kept = ["panel", "member", "place", "batch_size", "steps", "low", "high", "replicates"]
    kept += [name for name in rows if name.startswith("relative")]
    title = "steps over those at the smallest batch, against batch size"
    return panels(rows[kept].reset_index(drop=True), _members, title, LARGE)


def _members(base: alt.Chart) -> list[alt.Chart]:
    axis = charts.fractions(values=[4.0**n for n in range(-9, 12)])
    y = alt.Y("relative:Q", scale=charts.log(4), axis=axis)
    shades = alt.Scale(domain=[0, 0.5, 1], range=[charts.BLUE, charts.PURPLE, charts.ORANGE])
    lines = base.encode(
        color=alt.Color("place:Q", scale=shades, legend=None),
        detail="member:N",
        x=charts.batch_axis([1, 8, 64, 512, 4096], None),
        y=y,
    )
    perfect = base.mark_line(strokeDash=[3, 4], strokeWidth=1, color=charts.GUIDE, clip=True)
    told = [tip("member:N", "network"), tips.BATCH_SIZE, tips.STEPS, *tips.ends(), tips.SEARCHES]
    guide = perfect.encode(x="batch_size:Q", y="relative_perfect:Q", detail="member:N")
    return [guide, *small_curve(lines, told, ("relative_low", "relative_high"))]
