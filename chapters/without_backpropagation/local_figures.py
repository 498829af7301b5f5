"""Figures of training without backpropagation: steps of networks, and of readouts whose weights are
flipped.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips

STEPS = "steps to result (training steps)"
ARMS = {
    "backpropagation": charts.ORANGE,
    "feedback alignment": charts.PURPLE,
    "alignment, β = 0.1": charts.TEAL,
    "alignment, β = 1": charts.GREEN,
}
TAKES = {
    "every": ("keep every flip that helps", charts.TEAL),
    "best": ("keep the best one", charts.PURPLE),
}
LEAST, MOST_VISITS = 0.01, 8  # of the excess, and of visits to each weight, that are drawn


def curves(points: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, a line per way to pass errors back.

    points: arm (of ARMS), batch_size, steps, low, high, replicates (searches), trials; NaN ends
    where there is one search.
    """
    pick, faded = charts.picked("arm")
    known = [arm for arm in ARMS if arm in set(points.arm)]
    colour = _colour("arm:N", {arm: ARMS[arm] for arm in known})
    base = alt.Chart(points).encode(
        x=charts.batch_axis(points.batch_size), color=colour, opacity=faded
    )
    y = alt.Y("steps:Q", title=STEPS).scale(type="log", base=2, nice=False, padding=12)
    tooltip = [
        alt.Tooltip("arm:N", title="errors by"),
        tips.BATCH_SIZE,
        tips.STEPS,
        *tips.ends(),
        tips.SEARCHES,
        tips.TRIALS,
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q").add_params(pick)
    lines, dots = (
        base.mark_line(strokeWidth=2.2).encode(y=y),
        base.mark_point(filled=True, size=64).encode(y=y, tooltip=tooltip),
    )
    return alt.layer(bars, lines, dots).properties(width="container", height=330)


def _colour(field: str, colours: dict[str, str]) -> alt.Color:
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(field, scale=scale, legend=alt.Legend(title=None, columns=1, labelLimit=260))


def falling(rows: pd.DataFrame, start: str) -> alt.LayerChart:
    """The excess error of readouts against visits per weight, a line per number of features, one
    kind of features at a time.

    rows: kind, features, visits (steps over features), excess (a share of that at the start).
    start: the kind shown at first. Dashed: exp(-visits).
    """
    menu = charts.menu("kind", list(rows.kind.unique()), start, "features")
    shown = rows[(rows.excess >= LEAST) & (rows.visits <= MOST_VISITS)]
    shown = shown.assign(name=shown.features.map("{:,}".format))
    counts = [f"{n:,}" for n in sorted(shown.features.unique())]
    scale = alt.Scale(domain=counts, range=list(charts.CATEGORIES[: len(counts)]))
    colour = alt.Color("name:N", scale=scale, title="features", legend=alt.Legend(columns=3))
    x = alt.X("visits:Q", title="visits per weight (steps over features)").scale(
        domain=[0, MOST_VISITS], nice=False
    )
    y = alt.Y(
        "excess:Q",
        title="error above its floor (share of that at the start)",
        axis=alt.Axis(format="~p"),
    )
    y = y.scale(type="log", domain=[LEAST, 1], nice=False, clamp=True)
    tooltip = [
        alt.Tooltip("name:N", title="features"),
        alt.Tooltip("visits:Q", title="visits per weight", format=".2f"),
        alt.Tooltip("excess:Q", title="error above its floor", format=".1%"),
    ]
    base = alt.Chart(shown).transform_filter(menu[1]).encode(x=x, y=y, color=colour)
    visits = np.linspace(0, -np.log(LEAST), 40)
    guide = alt.Chart(pd.DataFrame({"visits": visits, "excess": np.exp(-visits)})).mark_line(
        color=charts.GUIDE, strokeDash=[4, 4], strokeWidth=1.6
    )
    drawn = [
        base.mark_line(strokeWidth=2.2),
        base.mark_point(size=90, opacity=0).encode(tooltip=tooltip),
    ]
    return (
        alt.layer(*drawn, guide.encode(x=x, y=y))
        .add_params(menu[0])
        .properties(width="container", height=320)
    )


def flips(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps of a readout against flips tried a step, for either rule; dotted: perfect scaling from
    one flip.

    rows: take, flips, steps, low, high, runs; those without steps are left out.
    """
    rows = rows.dropna(subset="steps")
    rows = rows.assign(rule=[TAKES[take][0] for take in rows["take"]])
    if not len(rows):
        return charts.nothing("No setting met this goal in all runs.")
    sizes = sorted(map(int, rows.flips.unique()))
    axis = alt.X(
        "flips:Q",
        title="flips tried in a step",
        axis=alt.Axis(values=sizes, labelOverlap="parity", format=","),
    )
    axis = axis.scale(type="log", base=2, nice=False, padding=12)
    y = alt.Y("steps:Q", title="steps to the goal").scale(
        type="log", base=2, nice=False, padding=12
    )
    one = float(rows.steps[rows.flips == sizes[0]].iloc[0]) * sizes[0]
    least = rows.steps.min() / 1.2
    perfect = pd.DataFrame({"flips": [m for m in sizes if one / m >= least]}).assign(
        steps=lambda own: one / own.flips
    )
    guide = (
        alt.Chart(perfect)
        .mark_line(color=charts.GUIDE, strokeDash=[3, 4], strokeWidth=1.6)
        .encode(x=axis, y=y)
    )
    base = alt.Chart(rows).encode(x=axis, color=_colour("rule:N", dict(TAKES.values())))
    tooltip = [
        alt.Tooltip("rule:N", title="rule"),
        alt.Tooltip("flips:Q", title="flips tried in a step", format=","),
        tips.STEPS,
        *tips.ends(),
        alt.Tooltip("runs:Q", title="runs"),
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q")
    lines, dots = (
        base.mark_line(strokeWidth=2.2).encode(y=y),
        base.mark_point(filled=True, size=64).encode(y=y, tooltip=tooltip),
    )
    return alt.layer(guide, bars, lines, dots).properties(width="container", height=300)
