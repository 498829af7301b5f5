"""Charts that several pages draw: steps to result against batch size, and values with ranges."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from lib.page import charts, tips
from lib.wording import named

STEPS = "steps to result (training steps)"


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
    lines: tuple = (),
    beyond: float = 4,
) -> alt.LayerChart:
    """Points with ranges on a logarithmic axis, a row per `row`, side by side within it by colour.

    Args:
        rows: row, value, value_low, value_high and the colour's field, a name, in the order in
            which they are drawn.
        controls: what `charts.menu` and `charts.slider` return.
        tooltip: may name what `charts.cut` adds.
        lines: where to draw a dashed line.
        beyond: the axis ends at this many times the outermost points at most: an interval that
            goes on is cut there.
    """
    if rows.empty:
        return charts.nothing("No curve has three batch sizes yet.")
    field = _field(colour)
    pick, faded = charts.picked(field)
    shown, within = charts.cut(rows, value, beyond)
    scale = charts.log(12, domain=within, clamp=True)
    base = alt.Chart(shown).encode(
        y=alt.Y("row:N", title=None, sort=list(dict.fromkeys(rows.row)), axis=charts.broken()),
        yOffset=f"{field}:N",
        color=colour,
        opacity=faded,
    )
    axis = charts.fractions(titleAnchor="end")
    x = alt.X(f"{value}:Q", title=title, scale=scale, axis=axis)
    low = alt.X(f"{value}_low:Q", title=title, scale=scale)
    bars, dots = charts.ranges(base, value, x, low, tooltip)
    drawn = charts.controlled([bars.add_params(pick), dots], *controls)
    names = shown.groupby(charts.chosen_by(controls) or (lambda _: 0)).row.nunique().max()
    height = int(names) * max(64, 20 * shown[field].nunique())
    return charts.sized(alt.layer(charts.across(*lines, x=scale), drawn), height)


def ratios(
    rows: pd.DataFrame, title: str, colour: alt.Color, lines: tuple = (1,), beyond: float = 4
) -> alt.LayerChart:
    """Ratios with their intervals.

    Args:
        rows: as for `range_chart`, of ratio; also label and sizes (batch sizes).
        lines, beyond: as for `range_chart`.
    """
    tooltip = tips.listed(
        {
            "row:N": "network",
            "label:N": "shown",
            "estimate:Q|.2f": "ratio",
            "range:N": "5–95 %",
            "sizes:Q": "batch sizes",
        }
    )
    told = rows.drop(columns="effect", errors="ignore").assign(estimate=rows.ratio)
    return range_chart(told, "ratio", title, colour, tooltip=tooltip, lines=lines, beyond=beyond)


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
    x = charts.batch_axis(curve.batch_size)
    base = alt.Chart(tips.known(curve)).encode(x=x, color=colour, opacity=faded)
    scale = charts.log(domain=within)
    y = alt.Y("steps:Q", title=title, scale=scale, axis=charts.fractions())
    tooltip = tips.points(field, "regime" in curve)
    layers = charts.curve(base, y, scale, tooltip)
    if "perfect" in curve:
        perfect = base.mark_line(strokeDash=[3, 4], strokeWidth=1, clip=True)
        y = alt.Y("perfect:Q", scale=scale)
        layers.insert(0, perfect.encode(y=y))
    names = curve[field].map(_line_name)
    short = names.str.len().max() <= LONGEST_LABEL
    if short and 1 < names.nunique() <= MOST_LABELS:
        labels = line_labels(curve, field, *controls, within=within, height=height)
        layers.append(labels)
    layers[0] = layers[0].add_params(pick)
    drawn = charts.controlled(layers, *controls)
    return charts.sized(drawn, height)


# --- names beside lines ---------------------------------------------------------------------------

LABEL_GAP = 15  # pixels from line to line of names
MOST_LABELS = 6  # lines; more are told apart by pointing at them, or by the legend
LONGEST_LABEL = 12  # characters; longer ones would take the plot's room
WIDE = 480  # pixels of a plot that has room for names beside its lines


def line_labels(
    rows: pd.DataFrame, field: str, *controls: tuple, within: list[float], height: int
) -> alt.Chart:
    """The names of lines at their right ends, on plots that are at least WIDE; a legend serves the
    others.

    Args:
        rows: batch_size, steps, the field and what the controls choose by.
        controls: those of the chart; the caller keeps the rows that they choose.
        within, height: the ends of the logarithmic axis of steps, and its pixels.
    """
    ends = line_ends(rows, field, charts.chosen_by(controls), within, height)
    text = alt.when(f"width < {WIDE}").then(alt.value("")).otherwise("words:N")
    labels = alt.Chart(ends).mark_text(align="left", dx=9, fontSize=12)
    return labels.encode(x="batch_size:Q", y="steps:Q", text=text)


def line_ends(
    rows: pd.DataFrame, field: str, by: list[str], within: list[float], height: int
) -> pd.DataFrame:
    """Where the names of lines go: a row per line (and value of `by`) with batch_size, steps and
    `words`, moved apart where they meet, the middle of a crowd where it was, but not below the
    axis.
    """
    seen = rows.dropna(subset="steps").sort_values("batch_size")
    lines = seen.groupby([*by, field], as_index=False)
    last = lines[["batch_size", "steps"]].last()
    low, high = np.log(within)
    gap = LABEL_GAP / height * (high - low)

    def spread(steps: pd.Series) -> pd.Series:
        order = steps.sort_values(kind="stable")
        gaps = gap * np.arange(len(order))
        found = isotonic_regression(np.log(order) - gaps)
        places = found.x + gaps
        places += max(0, low - places[0])
        return pd.Series(np.exp(places), order.index)

    choices = last.groupby(by or (lambda _: 0))
    apart = choices.steps.transform(spread)
    words = last[field].map(_line_name)
    return last.assign(steps=apart, words=words)


def _line_name(value: object) -> str:
    if isinstance(value, float) and value:
        return f"{value:g}"
    return named(str(value)) if value else "dense"
