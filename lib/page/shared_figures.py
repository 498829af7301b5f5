"""Charts that several pages draw: steps to result against batch size, and ratios with ranges."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips
from lib.page.tips import tip
from lib.wording import named, span

STEPS = "steps to result (training steps)"
NAME_HEIGHT, RANGE_HEIGHT = 20, 14  # pixels of a name's line, and of each range below it


def _field(colour: alt.Color) -> str:
    """The column that a colour stands for."""
    return colour["shorthand"].split(":")[0]


# --- ranges ---------------------------------------------------------------------------------------


def range_chart(
    rows: pd.DataFrame,
    value: str,
    title: str,
    colour: alt.Color,
    *controls: tuple,
    tooltip: list,
    one: bool = False,
) -> alt.LayerChart:
    """Points with ranges on a logarithmic axis, the largest effects first.

    A row's name stands in one line above its ranges, where a phone has room for it.  The axis ends
    at sixteen times the outermost points at most: a bar that goes on is cut at the edge.

    Args:
        rows: row (its name), value, value_low and value_high.
        colour: clicking its legend singles out a value.
        tooltip: may name what `charts.cut` adds.
        one: whether to draw a line at 1, for ratios.
    """
    if rows.empty:
        return charts.nothing("No curve has three batch sizes yet.")
    field = _field(colour)
    pick, faded = charts.picked(field)
    order, kinds = by_effect(rows, value), rows[field].nunique()
    rows, within = charts.cut(rows, value, 16)
    scale = charts.log(12, domain=within, clamp=True)
    # Two names of over 12, side by side, are cut on a phone
    longest = rows[field].astype(str).str.len().max()
    columns = 1 if longest > 12 else 2 if longest > 4 else 5
    places = {"sort": order, "axis": None, "scale": alt.Scale(paddingInner=0, paddingOuter=0)}
    lines = alt.Scale(range=[NAME_HEIGHT + 7, NAME_HEIGHT + RANGE_HEIGHT * kinds - 7])
    base = alt.Chart(rows).encode(
        y=alt.Y("row:N", title=None, **places),
        yOffset=alt.YOffset(f"{field}:O", scale=lines),
        color=colour.legend(titleOrient="top", columns=columns),
        opacity=faded,
    )
    axis = charts.fractions(titleAnchor="end")
    x = alt.X(
        f"{value}:Q",
        title=title,
        scale=scale,
        axis=axis,
    )
    low = alt.X(f"{value}_low:Q", scale=scale)
    bars, dots = charts.ranges(
        base,
        value,
        x,
        low,
        tooltip,
    )
    chosen = charts.chosen_by(controls)
    size = alt.expr("width < 400 ? 11 : 12")
    names = alt.Chart(rows.drop_duplicates(["row", *chosen])).mark_text(
        align="left", baseline="top", dy=4, fontSize=size, limit=alt.expr("width")
    )
    y = alt.Y("row:N", bandPosition=0, **places)
    names = names.encode(
        x=alt.value(0),
        y=y,
        text="row:N",
    )
    chart = charts.controlled([bars.add_params(pick), dots, names], *controls)
    if one:
        chart = alt.layer(charts.across(1, x=scale), chart)
    shown = rows.groupby(chosen).row.nunique().max() if chosen else len(order)
    return charts.sized(chart, int(shown) * (NAME_HEIGHT + RANGE_HEIGHT * kinds))


def by_effect(rows: pd.DataFrame, value: str) -> list[str]:
    """Names of rows, the largest value (geometric mean over a row's kinds) first; those without a
    value last.
    """
    finite = rows[value].where(rows[value].between(0, np.inf, inclusive="neither"))
    means = np.log(finite.astype(float)).groupby(rows.row).mean()
    return list(means.sort_values(ascending=False, kind="stable").index)


def intervals(rows: pd.DataFrame, name: str) -> list[str]:
    """The columns name_low and name_high in words, for tooltips; "—" where there is none."""
    ends = zip(rows[f"{name}_low"], rows[f"{name}_high"])
    return [span(pair) if all(map(pd.notna, pair)) else "—" for pair in ends]


def ratios(
    rows: pd.DataFrame, title: str, colour: alt.Color, lines: tuple = (1,), beyond: float = 4
) -> alt.LayerChart:
    """Ratios with their intervals, a row per `row`, side by side within it by colour.

    Args:
        rows: row, label, ratio, ratio_low, ratio_high, sizes (batch sizes) and the colour's field,
            a name.
        lines: where to draw a dashed line.
        beyond: the axis ends at so many times the outermost points at most: an interval that goes
            on is cut there.
    """
    if rows.empty:
        return charts.nothing("No two curves share three batch sizes yet.")
    field, names = _field(colour), list(dict.fromkeys(rows.row))
    told = rows.drop(columns="effect", errors="ignore")
    told = told.assign(interval=intervals(rows, "ratio"), estimate=rows.ratio)
    shown, within = charts.cut(told, "ratio", beyond)
    scale = charts.log(12, domain=within, clamp=True)
    letters = shown[field].astype(str).map(named).str.len().max()
    columns = 1 if letters > 12 else 2  # two longer names, side by side, are cut on a phone
    small = alt.expr(f"width < {charts.PHONE} ? 12 : 13")  # else a network's name is cut
    legend = {"labelExpr": charts.SPELT, "labelFontSize": small}
    base = alt.Chart(shown).encode(
        y=alt.Y(
            "row:N",
            title=None,
            sort=names,
            axis=charts.broken(),
        ),
        yOffset=alt.YOffset(f"{field}:N"),
        color=colour.legend(
            title=None,
            columns=columns,
            **legend,
        ),
    )
    x = alt.X(
        "ratio:Q",
        title=title,
        scale=scale,
        axis=charts.fractions(titleAnchor="end"),
    )
    tooltip = [
        tip("row:N", "network"),
        tip("label:N", "shown"),
        tip("estimate:Q", "ratio", ".2f"),
        tips.INTERVAL,
        tip("sizes:Q", "batch sizes"),
    ]
    low = alt.X("ratio_low:Q", title=title, scale=scale)
    layers = charts.ranges(
        base,
        "ratio",
        x,
        low,
        tooltip,
    )
    height = len(names) * max(64, 20 * shown[field].nunique())
    return charts.sized(alt.layer(charts.across(*lines, x=scale), *layers), height)


# --- steps to result ------------------------------------------------------------------------------


def scaling_chart(
    curve: pd.DataFrame, colour: alt.Color, *controls: tuple, height: int = 380, title: str = STEPS
) -> alt.LayerChart:
    """Steps to result against batch size: lines, 5-95 % bars, a line of perfect scaling per curve,
    legend selection.

    Args:
        curve: a row per cell (and goal) with batch_size, steps, low, high, replicates, missed,
            borrowed, trials and the colour's field, and `perfect` (steps under perfect scaling
            from the first size) where wanted.
        controls: what `charts.slider` and `charts.menu` return, for a table with several values of
            their columns.
        height: in pixels.
    """
    field = _field(colour)
    # One range for all: the slider moves marks, not axes
    within = [curve.low.min() / 1.3, curve.high.max() * 1.3]
    pick, faded = charts.picked(field)
    base = alt.Chart(tips.known(curve)).encode(
        x=charts.batch_axis(curve.batch_size), color=colour, opacity=faded
    )
    scale = alt.Scale(
        type="log",
        base=2,
        domain=within,
        nice=False,
    )
    y = alt.Y(
        "steps:Q",
        title=title,
        scale=scale,
        axis=charts.fractions(),
    )
    layers = charts.curve(base, y, scale, tips.points(field, "regime" in curve))
    if "perfect" in curve:
        perfect = base.mark_line(
            strokeDash=[3, 4],
            strokeWidth=1,
            clip=True,
        )
        layers.insert(0, perfect.encode(y=alt.Y("perfect:Q", scale=scale)))
    short = curve[field].map(_line_name).str.len().max() <= LONGEST_LABEL
    if short and 1 < curve[field].nunique() <= MOST_LABELS:
        layers.append(
            line_labels(
                curve,
                field,
                *controls,
                within=within,
                height=height,
            )
        )
    layers[0] = layers[0].add_params(pick)
    return charts.sized(charts.controlled(layers, *controls), height)


# --- names beside lines ---------------------------------------------------------------------------

LABEL_GAP = 15  # pixels from line to line of names
MOST_LABELS = 6  # lines; more are told apart by pointing at them, or by the legend
LONGEST_LABEL = 12  # characters; longer ones would take the plot's room
WIDE = 480  # pixels of a plot that has room for names beside its lines


def line_labels(
    rows: pd.DataFrame,
    field: str,
    *controls: tuple,
    within: list[float] | None = None,
    height: int,
) -> alt.Chart:
    """The names of lines at their right ends, on plots that are at least WIDE; a legend serves the
    others.

    Args:
        rows: batch_size, steps, the field and what the controls choose by.
        controls: those of the chart; the caller keeps the rows that they choose.
        within, height: of the axis of steps, as for `line_ends`.
    """
    ends = line_ends(rows, field, charts.chosen_by(controls), within, height)
    text = alt.when(f"width < {WIDE}").then(alt.value("")).otherwise("words:N")
    labels = alt.Chart(ends).mark_text(align="left", dx=9, fontSize=12)
    return labels.encode(x="batch_size:Q", y="steps:Q", text=text)


def line_ends(
    rows: pd.DataFrame, field: str, by: list[str], within: list[float] | None, height: int
) -> pd.DataFrame:
    """Where the names of lines go: a row per line (and value of `by`) with batch_size, steps and
    `words`, moved apart where they meet.

    A name moves no further than the axis's ends while there is room.

    Args:
        within: the ends of the logarithmic axis of steps; None where it fits each choice, from the
            least `low` to the largest `high`.
        height: its length in pixels.
    """
    # Tables that were joined may name rows twice
    seen = rows[rows.steps.notna()].reset_index(drop=True)
    last = seen.groupby([*by, field]).batch_size.idxmax()
    ends = seen.loc[last, [*by, field, "batch_size", "steps"]]
    ends["words"] = list(map(_line_name, ends[field]))
    if not by:
        return _moved(ends, *_axis(seen, within), height)
    parts = []
    for key, part in ends.groupby(by):
        own = seen[(seen[by] == list(key)).all(axis=1)]
        parts.append(_moved(part, *_axis(own, within), height))
    return pd.concat(parts)


def _axis(rows: pd.DataFrame, within: list[float] | None) -> list[float]:
    """The ends of an axis, if they are given, or else of one that fits these rows."""
    return within or [rows.low.min(), rows.high.max()]


def _moved(ends: pd.DataFrame, low: float, high: float, height: float) -> pd.DataFrame:
    """The ends of lines with their names' places on an axis from low to high."""
    pixels = height / np.log(high / low)  # a natural logarithm
    depth = np.log(high / ends.steps.to_numpy())
    moved = _spread(depth * pixels, height) / pixels
    return ends.assign(steps=high / np.exp(moved))


def _spread(places: np.ndarray, height: float) -> np.ndarray:
    """Places [n] on a line, in pixels, moved so that neighbours are LABEL_GAP apart, the middle of
    a crowd where it was.
    """
    order = np.argsort(places, kind="stable")
    steps = LABEL_GAP * np.arange(len(places))
    crowds = []  # as in isotonic regression: neighbours that meet move as one
    for place in places[order] - steps:
        crowds.append([place])
        while len(crowds) > 1 and np.mean(crowds[-2]) > np.mean(crowds[-1]):
            last = crowds.pop()
            crowds[-1] += last
    moved = np.concatenate([np.full(len(crowd), np.mean(crowd)) for crowd in crowds]) + steps
    moved += max(0, -moved[0]) - max(0, moved[-1] - height)
    placed = np.empty(len(places))
    placed[order] = moved
    return placed


def _line_name(value: object) -> str:
    if isinstance(value, float) and value:
        return f"{value:g}"
    return named(str(value)) if value else "dense"
