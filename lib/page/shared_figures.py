"""Charts that several pages draw: steps to result against batch size, and values with ranges."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from lib.page import charts, tips
from lib.page.tips import tip
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
    letters = shown[field].astype(str).map(named).str.len().max()
    legend = colour.legend(
        title=None,
        labelExpr=charts.SPELT,
        labelFontSize=alt.expr(f"width < {charts.PHONE} ? 12 : 13"),
        columns=1 if letters > 12 else 2,  # two longer names, side by side, are cut on a phone
    )
    base = alt.Chart(shown).encode(
        y=alt.Y("row:N", title=None, sort=list(dict.fromkeys(rows.row)), axis=charts.broken()),
        yOffset=f"{field}:N",
        color=legend,
        opacity=faded,
    )
    axis = charts.fractions(titleAnchor="end")
    x = alt.X(f"{value}:Q", title=title, scale=scale, axis=axis)
    low = alt.X(f"{value}_low:Q", title=title, scale=scale)
    bars, dots = charts.ranges(base, value, x, low, tooltip)
    drawn = charts.controlled([bars.add_params(pick), dots], *controls)
    chosen = charts.chosen_by(controls)
    names = shown.groupby(chosen).row.nunique().max() if chosen else shown.row.nunique()
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
    tooltip = [
        tip("row:N", "network"),
        tip("label:N", "shown"),
        tip("estimate:Q", "ratio", ".2f"),
        tip("range:N", "5–95 %"),
        tip("sizes:Q", "batch sizes"),
    ]
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
    base = alt.Chart(tips.known(curve)).encode(
        x=charts.batch_axis(curve.batch_size), color=colour, opacity=faded
    )
    scale = charts.log(domain=within)
    y = alt.Y("steps:Q", title=title, scale=scale, axis=charts.fractions())
    layers = charts.curve(base, y, scale, tips.points(field, "regime" in curve))
    if "perfect" in curve:
        perfect = base.mark_line(strokeDash=[3, 4], strokeWidth=1, clip=True)
        layers.insert(0, perfect.encode(y=alt.Y("perfect:Q", scale=scale)))
    short = curve[field].map(_line_name).str.len().max() <= LONGEST_LABEL
    if short and 1 < curve[field].nunique() <= MOST_LABELS:
        layers.append(line_labels(curve, field, *controls, within=within, height=height))
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
    choices = seen.groupby(by or (lambda _: 0))
    if within:
        low, high = within
    else:
        low = choices.low.transform("min")
        high = choices.high.transform("max")
    pixels = height / np.log(high / low)
    depth = pixels * np.log(high / seen.steps)
    last = seen.groupby([*by, field]).batch_size.idxmax()
    moved = depth[last].groupby(choices.ngroup())
    moved = moved.transform(_spread, height)
    steps = high / np.exp(moved / pixels)
    ends = seen.loc[last, [*by, field, "batch_size"]]
    words = list(map(_line_name, ends[field]))
    return ends.assign(steps=steps, words=words)


def _spread(places: pd.Series, height: float) -> np.ndarray:
    """Places [n] on a line, in pixels, moved so that neighbours are LABEL_GAP apart, the middle of
    a crowd where it was.
    """
    order = np.argsort(places, kind="stable")
    gaps = LABEL_GAP * np.arange(len(places))
    moved = isotonic_regression(places.to_numpy()[order] - gaps).x + gaps
    moved += max(0, -moved[0]) - max(0, moved[-1] - height)
    return moved[np.argsort(order)]


def _line_name(value: object) -> str:
    if isinstance(value, float) and value:
        return f"{value:g}"
    return named(str(value)) if value else "dense"
