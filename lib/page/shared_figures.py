"""Charts that several pages draw: steps to result, ratios with their ranges, all trials of a
search, curves on one line.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips
from lib.wording import named


def range_chart(
    rows: pd.DataFrame,
    value: str,
    title: str,
    colour: alt.Color,
    *controls: tuple,
    tooltip: list,
    one: bool = False,
) -> alt.LayerChart:
    """Points with ranges on a logarithmic axis, the largest effects first; rows: `row` (its name),
    value, value_low, value_high.

    A row's name stands in one line above its ranges, where a phone has room for it.  The axis ends
    at sixteen times the outermost points at most: a bar that goes on is cut at the edge.  tooltip:
    may name what `cut` adds.  one: draws a line at 1, for ratios.  Colour: clicking its legend
    singles out a value.
    """
    if rows.empty:
        return charts.nothing("No curve has three batch sizes yet.")
    field = colour["shorthand"].split(":")[0]
    pick, faded = charts.picked(field)
    order = by_effect(rows, value)
    rows, within = charts.cut(rows, value, 16)
    scale = alt.Scale(type="log", base=2, nice=False, padding=12, domain=within, clamp=True)
    kinds = rows[field].nunique()
    bands = alt.Scale(paddingInner=0, paddingOuter=0)
    y = alt.Y("row:N", title=None, sort=order, axis=None, scale=bands)
    offset = alt.YOffset(
        f"{field}:O",
        scale=alt.Scale(range=[NAME_HEIGHT + 7, NAME_HEIGHT + RANGE_HEIGHT * kinds - 7]),
    )
    # Two names of over 12, side by side, are cut on a phone
    longest = rows[field].astype(str).str.len().max()
    colour = colour.legend(
        titleOrient="top", columns=1 if longest > 12 else 2 if longest > 4 else 5
    )
    base = alt.Chart(rows).encode(y=y, yOffset=offset, color=colour, opacity=faded)
    bars = (
        base.mark_rule(strokeWidth=2)
        .encode(x=alt.X(f"{value}_low:Q", scale=scale), x2=f"{value}_high:Q")
        .add_params(pick)
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X(f"{value}:Q", title=title, scale=scale, axis=charts.fractions(titleAnchor="end")),
        tooltip=tooltip,
    )
    names = (
        alt.Chart(rows.drop_duplicates(["row", *charts.chosen_by(controls)]))
        .mark_text(
            align="left",
            baseline="top",
            dy=4,
            fontSize=alt.expr("width < 400 ? 11 : 12"),
            limit=alt.expr("width"),
        )
        .encode(
            x=alt.value(0),
            y=alt.Y("row:N", sort=order, axis=None, scale=bands, bandPosition=0),
            text="row:N",
        )
    )
    chart = (
        charts.controlled([bars, dots, names], *controls)
        if controls
        else alt.layer(bars, dots, names)
    )
    if one:
        chart = alt.layer(charts.across(1, x=scale), chart)
    shown = (
        rows.groupby(charts.chosen_by(controls)).row.nunique().max()
        if charts.chosen_by(controls)
        else len(order)
    )
    return chart.properties(
        width="container", height=int(shown) * (NAME_HEIGHT + RANGE_HEIGHT * kinds)
    )


NAME_HEIGHT, RANGE_HEIGHT = 20, 14  # pixels of a name's line, and of each range below it


def by_effect(rows: pd.DataFrame, value: str) -> list[str]:
    """Names of rows, the largest value (geometric mean over a row's kinds) first; those without a
    value last.
    """
    finite = rows[value].where(rows[value].between(0, float("inf"), inclusive="neither"))
    return list(
        np.log(finite.astype(float))
        .groupby(rows.row)
        .mean()
        .sort_values(ascending=False, kind="stable")
        .index
    )


def trial_map(trials: pd.DataFrame, start: int, height: int = 380) -> tuple[alt.LayerChart, str]:
    """All trials of several cells by learning rate and 1 - momentum, a slider over batch sizes;
    chart, description.

    trials: a row per trial with learning_rate, slowness (1 - momentum), steps, status, cause and
    batch_size.
    """
    columns = [
        "batch_size",
        "trial",
        "learning_rate",
        "slowness",
        "steps",
        "status",
        "cause",
        "last_step",
    ]
    shown = trials[columns].assign(met=trials.steps.notna(), cause=trials.cause.fillna(""))
    best = trials.groupby("batch_size").steps.transform("min")
    shown["behind"] = shown.steps / best  # 1 for the winner
    chosen, keep, label = charts.slider(
        "batch_size",
        sorted(map(int, shown.batch_size.unique())),
        start,
        "batch size",
        "'batch size ' + format(value, ',')",
    )
    tooltip = [
        alt.Tooltip("trial:Q", title="trial"),
        alt.Tooltip("learning_rate:Q", title="learning rate", format=".3g"),
        alt.Tooltip("slowness:Q", title="1 − momentum", format=".2g"),
        alt.Tooltip("status:N", title="how it ended"),
        alt.Tooltip("cause:N", title="because"),
        alt.Tooltip("steps:Q", title="steps to the goal", format=","),
        alt.Tooltip("last_step:Q", title="trained for", format=","),
    ]
    base = (
        alt.Chart(shown)
        .transform_filter(keep)
        .encode(
            x=alt.X("learning_rate:Q", title="learning rate")
            .scale(type="log", domain=[1e-4, 1])
            .axis(values=charts.DECADES[::3]),
            y=alt.Y("slowness:Q", title="1 − momentum")
            .scale(type="log", nice=False, padding=10)
            .axis(values=charts.DECADES),
            tooltip=tooltip,
        )
    )
    scale = alt.Scale(
        type="log", domain=[1, 3], clamp=True, range=[charts.RED, charts.ORANGE, charts.BLUE]
    )
    shade = alt.Color("behind:Q", title="steps over the winner's", scale=scale).legend(
        titleOrient="top"
    )
    met = (
        base.transform_filter("datum.met")
        .mark_point(filled=True, size=130, opacity=1)
        .encode(color=shade)
    )
    missed = base.transform_filter("!datum.met").mark_point(
        size=40, color=charts.GUIDE, opacity=0.6
    )
    chart = (
        alt.layer(missed, met, label)
        .add_params(chosen)
        .properties(width="container", height=height)
    )
    return chart, (
        "Trials by learning rate and one minus momentum, both logarithmic, one batch size at a time: filled and "
        "coloured by steps to the goal if they met it, open grey circles if not."
    )


LABEL_GAP = 15  # pixels from line to line of names
MOST_LABELS = 6  # lines; more are told apart by pointing at them, or by the legend
LONGEST_LABEL = 12  # characters; longer ones would take the plot's room
WIDE = 480  # pixels of a plot that has room for names beside its lines


def line_ends(
    rows: pd.DataFrame, x: str, y: str, field: str, by: list[str], within: list[float], height: int
) -> pd.DataFrame:
    """Where the names of lines go: a row per line (and value of `by`) with x, y and `words`, moved
    apart where they meet.

    within: the ends of the logarithmic axis of y; height: its length in pixels.  A name moves no
    further than the axis's ends while there is room.
    """
    # Tables that were joined may name rows twice
    seen = rows[rows[y].notna()].reset_index(drop=True)
    ends = seen.loc[seen.groupby([*by, field])[x].idxmax(), [*by, field, x, y]]
    each = height / np.log(within[1] / within[0])
    parts = [
        part.assign(
            **{
                y: within[1]
                / np.exp(_apart(np.log(within[1] / part[y].to_numpy()) * each, height) / each)
            }
        )
        for _, part in (ends.groupby(by) if by else [((), ends)])
    ]
    return pd.concat(parts).assign(words=[_line_name(v) for part in parts for v in part[field]])


def _apart(at: np.ndarray, height: float) -> np.ndarray:
    """Places [n] on a line, in pixels, moved so that neighbours are LABEL_GAP apart, the middle of
    a crowd where it was.
    """
    order = np.argsort(at, kind="stable")
    steps = LABEL_GAP * np.arange(len(at))
    crowds = []  # as in isotonic regression: neighbours that meet move as one
    for place in at[order] - steps:
        crowds.append([place])
        while len(crowds) > 1 and np.mean(crowds[-2]) > np.mean(crowds[-1]):
            last = crowds.pop()
            crowds[-1] += last
    moved = np.concatenate([np.full(len(c), np.mean(c)) for c in crowds]) + steps
    moved += max(0, -moved[0]) - max(0, moved[-1] - height)
    placed = np.empty(len(at))
    placed[order] = moved
    return placed


def _line_name(value: object) -> str:
    return (
        "dense" if value == 0 else f"{value:g}" if isinstance(value, float) else named(str(value))
    )


def line_labels(
    rows: pd.DataFrame,
    x: str,
    y: str,
    field: str,
    *controls: tuple,
    within: list[float],
    height: int,
) -> alt.Chart:
    """The names of lines at their right ends (`line_ends`), on plots that are at least WIDE; a
    legend serves the others.

    controls: those of the chart; the caller keeps the rows that they choose.
    """
    ends = line_ends(rows, x, y, field, charts.chosen_by(controls), within, height)
    return (
        alt.Chart(ends)
        .mark_text(align="left", dx=9, fontSize=12)
        .encode(
            x=f"{x}:Q",
            y=f"{y}:Q",
            text=alt.when(f"width < {WIDE}").then(alt.value("")).otherwise("words:N"),
        )
    )


def scaling_chart(
    curve: pd.DataFrame,
    colour: alt.Color,
    *controls: tuple,
    height: int = 380,
    title: str = "steps to result (training steps)",
) -> alt.LayerChart:
    """Steps to result against batch size: lines, 5-95 % bars, a line of perfect scaling per curve,
    legend selection.

    curve: a row per cell (and goal) with batch_size, steps, low, high, replicates, missed,
    borrowed, trials and the colour's field, and `perfect` (steps under perfect scaling from the
    first size) where wanted.  controls: what `slider` and `menu` return, for a table with several
    values of their columns.
    """
    field = colour["shorthand"].split(":")[0]
    # One range for all: the slider moves marks, not axes
    within = [
        curve.low.min() / 1.3,
        curve.high.max() * 1.3,
    ]
    pick, faded = charts.picked(field)
    base = alt.Chart(tips.known(curve)).encode(
        x=charts.batch_axis(curve.batch_size), color=colour, opacity=faded
    )
    scale = alt.Scale(type="log", base=2, domain=within, nice=False)
    y = alt.Y("steps:Q", title=title, scale=scale, axis=charts.fractions())
    perfect = base.mark_line(strokeDash=[3, 4], strokeWidth=1, clip=True).encode(
        y=alt.Y("perfect:Q", scale=scale)
    )
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    lines = base.mark_line(strokeWidth=2.2).encode(y=y)
    points = base.mark_point(filled=True, size=64, opacity=1).encode(
        y=y, tooltip=tips.points(field, "regime" in curve)
    )
    layers = [*([perfect] if "perfect" in curve else []), bars, lines, points]
    short = curve[field].map(_line_name).str.len().max() <= LONGEST_LABEL
    if short and 1 < curve[field].nunique() <= MOST_LABELS:
        layers.append(
            line_labels(
                curve, "batch_size", "steps", field, *controls, within=within, height=height
            )
        )
    layers[0] = layers[0].add_params(pick)
    chart = charts.controlled(layers, *controls) if controls else alt.layer(*layers)
    return chart.properties(width="container", height=height)
