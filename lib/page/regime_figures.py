"""Figures of steps to result against batch size in which regimes are read off."""

from __future__ import annotations

import json

import altair as alt
import pandas as pd

from lib.page import charts, tips

STEPS = "steps to result (training steps)"


def regimes_chart(
    points: pd.DataFrame, searches: pd.DataFrame, lines: pd.DataFrame, goal: tuple
) -> alt.LayerChart:
    """Means with their intervals, single searches on demand, and the two lines between which the
    curve of `lines` lies.

    points: as for `shared_figures.scaling_chart`, at every goal; searches: sparsity, batch_size,
    goal, steps, split, one a row; lines: goal, c1, c2, critical, critical_low, critical_high of one
    network (none: no guides).  goal: of `charts.goal_slider`.
    """
    pick, faded = charts.picked("sparsity")
    single = alt.param(
        name="single", value=False, bind=alt.binding_checkbox(name="show every search ")
    )
    levels, sizes = sorted(points.sparsity.unique()), sorted(points.batch_size.unique())
    within = [
        points.low.min() / 1.6,
        max(points.high.max(), searches.steps.max() if len(searches) else 0) * 1.3,
    ]
    scale = alt.Scale(type="log", base=2, domain=within, nice=False)
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    base = alt.Chart(tips.known(points)).encode(
        x=charts.batch_axis(sizes),
        color=charts.by_sparsity(levels),
        opacity=faded,
    )
    bars = (
        base.mark_rule(strokeWidth=2)
        .encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
        .add_params(pick, single)
    )
    means = base.mark_line(strokeWidth=2.2).encode(y=y)
    marks = base.mark_point(filled=True, size=64, opacity=1).encode(
        y=y, tooltip=tips.points("sparsity")
    )
    wide, goals = _by_goal(searches)
    few = (
        base.properties(data=wide)
        .mark_point(size=22, strokeWidth=1.2)
        .encode(
            y=y,
            tooltip=[
                tips.SPARSITY,
                tips.BATCH_SIZE,
                alt.Tooltip("steps:Q", title="steps of this search", format=","),
                alt.Tooltip("split:Q", title="split of the images"),
            ],
        )
        .transform_filter("single")
        .transform_fold(list(goals), as_=["rung", "steps"])
        .transform_calculate(
            goal=f"{json.dumps(goals)}[datum.rung]",
        )
        .transform_filter("isValid(datum.steps)")
    )
    guides = (
        _guides(lines.assign(first=sizes[0], last=sizes[-1], least=within[0]), scale)
        if len(lines)
        else []
    )
    return charts.controlled([*guides, bars, means, few, marks], goal).properties(
        width="container", height=350
    )


def _by_goal(searches: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    """Searches with a column of steps for every goal, and the goals by these columns' names: a page
    holds each search once.
    """
    keys = ["sparsity", "batch_size", "split"]
    goals = {f"rung{place}": goal for place, goal in enumerate(sorted(searches.goal.unique()))}
    rungs = searches.goal.map({goal: rung for rung, goal in goals.items()})
    again = searches.groupby([*keys, "goal"]).cumcount()  # several searches on one split
    wide = searches.set_index([searches[key] for key in keys] + [again, rungs]).steps.unstack()
    return wide.reset_index(keys), goals


def _guides(lines: pd.DataFrame, scale: alt.Scale) -> list[alt.Chart]:
    """c1/B and c2 as dotted lines, and the critical batch size, at which they cross, with its
    interval and in words.

    lines: also first, last (batch sizes) and least (steps), the ends of the axes.
    """
    lines = lines.assign(bottom=lines.c1 / lines.least)
    base, upright = alt.Chart(lines), {"y": alt.value(24), "y2": alt.value("height")}
    falling = pd.concat(
        [lines.assign(at=at, steps=lines.c1 / at) for at in (lines["first"], lines.bottom)]
    )
    dotted = {"strokeDash": [3, 4], "color": charts.GUIDE, "strokeWidth": 1.3, "clip": True}
    left, right = {"align": "left", "dx": 6, "dy": -8}, {"align": "right", "dx": -26, "dy": -8}
    name = "'critical batch size ' + format(datum.critical, ',.2r')"
    return [
        base.mark_rect(color=charts.GUIDE, opacity=0.18, clip=True).encode(
            x="critical_low:Q", x2="critical_high:Q", **upright
        ),
        alt.Chart(falling).mark_line(**dotted).encode(x="at:Q", y=alt.Y("steps:Q", scale=scale)),
        base.mark_rule(**dotted).encode(x="first:Q", x2="last:Q", y=alt.Y("c2:Q", scale=scale)),
        base.mark_rule(color=charts.GUIDE, strokeWidth=1.3).encode(x="critical:Q", **upright),
        base.transform_calculate(name=name)
        .mark_text(fontWeight="bold")
        .encode(x="critical:Q", y=alt.value(14), text="name:N"),
        base.mark_text(**right).encode(
            x="bottom:Q", y=alt.Y("least:Q", scale=scale), text=alt.value("perfect scaling, c₁/B")
        ),
        base.mark_text(**left).encode(
            x="first:Q", y=alt.Y("c2:Q", scale=scale), text=alt.value("floor, c₂")
        ),
    ]


def chosen_curves(curves: pd.DataFrame, colour: alt.Color, menu: tuple) -> alt.LayerChart:
    """Steps to result against batch size, the curves of one choice of a menu at a time, on axes
    that fit these.

    A method that is drawn in the colour of another has diamonds.  curves: as for
    `shared_figures.scaling_chart`.
    """
    field = colour["shorthand"].split(":")[0]
    pick, faded = charts.picked(field)
    scale = alt.Scale(type="log", base=2, nice=False, padding=10)
    floor = curves.groupby("curve").steps.transform("min") / 1.3
    base = alt.Chart(tips.known(curves.assign(guided=curves.perfect >= floor))).encode(
        x=charts.batch_axis(curves.batch_size),
        color=colour,
        opacity=faded,
    )
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    perfect = base.transform_filter("datum.guided").mark_line(strokeDash=[3, 4], strokeWidth=1)
    # The first layer's legend is the one drawn
    perfect = perfect.encode(y=alt.Y("perfect:Q", scale=scale)).add_params(pick)
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    names = colour["scale"]["domain"]
    shapes = alt.Scale(
        domain=names, range=["diamond" if name in charts.VARIANTS else "circle" for name in names]
    )
    shape = alt.Shape(colour["shorthand"], scale=shapes, legend=colour["legend"])
    marks = base.mark_point(filled=True, size=64).encode(
        y=y, shape=shape, tooltip=tips.points(field)
    )
    layers = [perfect, bars, base.mark_line(strokeWidth=2.2).encode(y=y), marks]
    return charts.controlled(layers, menu).properties(width="container", height=340)


RANGES = {"published": "momentum from 0.9 on", "whole": "momentum over its whole range"}


def ranges_chart(points: pd.DataFrame, menu: tuple) -> alt.LayerChart:
    """Steps to result of the published range of momentum and of the whole one; a menu of networks.

    points: of `scaling.across_replicates`, with `range` (of RANGES) and curve.
    """
    scale = alt.Scale(type="log", base=2, nice=False, padding=10)
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    kinds = alt.Scale(domain=list(RANGES), range=[charts.ORANGE, charts.BLUE])
    spelt = f"{json.dumps(RANGES)}[datum.label]"
    colour = alt.Color(
        "range:N",
        scale=kinds,
        legend=alt.Legend(title=None, labelExpr=spelt, labelLimit=260, columns=1),
    )
    base = alt.Chart(tips.known(points)).encode(
        x=charts.batch_axis(points.batch_size), color=colour
    )
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    marks = base.mark_point(filled=True, size=64, opacity=1).encode(
        y=y, tooltip=tips.points("range", regime=False)
    )
    layers = [bars, base.mark_line(strokeWidth=2.2).encode(y=y), marks]
    return charts.controlled(layers, menu).properties(width="container", height=340)


QUANTITIES = {
    "c1": "c₁ (examples)",
    "c2": "c₂ (steps)",
    "critical": "critical batch size (examples)",
}


def trials_chart(exact: pd.DataFrame, first: pd.DataFrame, menu: tuple) -> alt.LayerChart:
    """A quantity of QUANTITIES against the number of trials: lines from all trials of a search,
    points from first trials.

    exact: curve, count, quantity, value.  first: the same, with low and high.  menu: of quantities.
    """
    axis = alt.Axis(values=sorted(exact["count"].unique()))
    x = alt.X("count:Q", title="trials of a search", axis=axis).scale(
        type="log", nice=False, padding=16
    )
    scale = alt.Scale(type="log", base=2, nice=False, padding=12)
    y = alt.Y("value:Q", title=None, scale=scale)
    colour = alt.Color("curve:N", legend=alt.Legend(title=None, columns=1, labelLimit=260))
    tip = [
        "curve:N",
        alt.Tooltip("count:Q", title="trials"),
        alt.Tooltip("value:Q", title="value", format=",.3r"),
    ]
    ends = [alt.Tooltip(f"{end}:Q", format=",.3r") for end in ("low", "high")]
    base, own = (alt.Chart(rows).encode(x=x, color=colour) for rows in (exact, first))
    bars = own.mark_rule(strokeWidth=2).encode(
        y=alt.Y("low:Q", scale=scale, title=None), y2="high:Q"
    )
    marks = own.mark_point(filled=True, size=64, opacity=1).encode(y=y, tooltip=[*tip, *ends])
    return charts.controlled(
        [base.mark_line(strokeWidth=2).encode(y=y, tooltip=tip), bars, marks], menu
    ).properties(width="container", height=300)
