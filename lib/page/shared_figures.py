"""Charts that several pages draw: steps to result against batch size, values with ranges, and small
multiples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import altair as alt
import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from lib.page import charts, tips
from lib.wording import named

STEPS = "steps to result (training steps)"


def _field(colour: alt.Color) -> str:
    """The column that a colour encodes."""
    return colour["shorthand"].split(":")[0]


# --- ranges ---------------------------------------------------------------------------------------


def ratios(
    rows: pd.DataFrame, title: str, colour: alt.Color, lines: tuple = (1,), beyond: float = 4
) -> alt.LayerChart:
    """Ratios with intervals on a logarithmic axis, a row per `row`, with colours side by side
    within it.

    Args:
        rows: row, ratio, ratio_low, ratio_high, label, sizes (batch sizes) and the colour's field,
            a name, in the order in which they are drawn.
        lines: where to draw dashed lines.
        beyond: the axis extends to at most this many times the outermost points; longer intervals
            are cut there.
    """
    if rows.empty:
        return charts.nothing("No curve has three batch sizes yet.")
    field = _field(colour)
    pick, faded = charts.picked(field)
    rows = rows.drop(columns="effect", errors="ignore").assign(estimate=rows.ratio)
    cut, ends = charts.cut(rows, "ratio", beyond)
    scale = charts.log(12, domain=ends, clamp=True)
    base = alt.Chart(cut).encode(
        y=alt.Y("row:N", title=None, sort=list(dict.fromkeys(rows.row)), axis=charts.broken()),
        yOffset=f"{field}:N",
        color=colour,
        opacity=faded,
    )
    about = {
        "row:N": "network",
        "label:N": "shown",
        "estimate:Q|.2f": "ratio",
        "range:N": "5–95 %",
        "sizes:Q": "batch sizes",
    }
    x = alt.X("ratio:Q", title=title, scale=scale, axis=charts.fractions(titleAnchor="end"))
    low = alt.X("ratio_low:Q", title=title, scale=scale)
    bars, dots = charts.ranges(base, "ratio", x, low, tips.listed(about))
    drawn = alt.layer(bars.add_params(pick), dots)
    height = cut.row.nunique() * max(64, 20 * cut[field].nunique())
    return charts.sized(alt.layer(charts.across(*lines, x=scale), drawn), height)


# The colour of a network's verdict
VERDICTS = {"yes": charts.TEAL, "no": charts.RED, "not clear": charts.GUIDE}


def repeated(claim) -> list:
    """The networks of a claim that `forest` shows: with three searches or more, and both ends of an
    interval.
    """
    return [g for g in claim.measured if g.repeated and np.isfinite([g.low, g.high]).all()]


def forest(judged: Mapping[str, object], title: str, *lines: float) -> alt.LayerChart:
    """The effect on every network in `repeated` with its interval, a row each, sorted by size, in
    the verdict's colour.

    Args:
        judged: maps a prefix for the names of a claim's networks to the claim; all on one scale.
        title: of the axis.
        lines: where to draw dashed lines.
    """
    rows = pd.DataFrame(
        {
            "row": f"{'★ ' * g.theirs}{words}{g.name}",
            "effect": g.effect,
            "effect_low": g.low,
            "effect_high": g.high,
            "verdict": g.verdict if g.clear else "not clear",
            "n": g.n,
        }
        for words, claim in judged.items()
        for g in sorted(repeated(claim), key=lambda group: group.effect)
    )
    shades = {word: shade for word, shade in VERDICTS.items() if word in set(rows.verdict)}
    two_lines = "split(replace(datum.label, ', ', ',|'), '|')"
    names = alt.Axis(labelExpr=two_lines, labelFontSize=10, labelLimit=205, labelOverlap=False)
    ratio = all(claim.scale == "ratio" for claim in judged.values())
    scale = charts.log(12) if ratio else alt.Scale(type="symlog", constant=1)
    ticks = charts.DECADES if ratio else [0, 1, 2, 5, 10, 20, 50]
    axis = alt.Axis(values=ticks, titleAnchor="end", format="~g")
    base = alt.Chart(rows).encode(
        y=alt.Y("row:N", title=None, sort=list(rows.row), axis=names),
        color=charts.by_name("verdict", shades, 1, 3, labelExpr="'the rule: ' + datum.label"),
    )
    about = {
        "row:N": "network",
        "effect:Q|.2~r": title,
        "n:Q": "searches",
        "verdict:N": "verdict",
    }
    x, low = (
        alt.X(f"{c}:Q", title=title, scale=scale, axis=axis) for c in ("effect", "effect_low")
    )
    marks = charts.ranges(base, "effect", x, low, tips.listed(about), 50)
    return charts.sized(alt.layer(charts.across(*lines, x=scale), *marks), 34 * len(rows))


# --- steps to result ------------------------------------------------------------------------------


def scaling_chart(
    curve: pd.DataFrame,
    colour: alt.Color,
    *controls: tuple,
    height: int = 380,
    units: str = "examples",
) -> alt.LayerChart:
    """Steps to result against batch size: lines, 5-95 % bars, a line of perfect scaling per curve,
    legend selection.

    Args:
        curve: a row per point (and goal) with batch_size, steps, low, high, replicates, missed,
            borrowed, trials and the colour's field, and optionally `perfect` (steps under perfect
            scaling from the first size).
        controls: what `charts.slider` and `charts.menu` return, if the table has several values of
            their columns.
        height: in pixels.
        units: of a batch.
    """
    field = _field(colour)
    # One range for all, so that the slider moves marks, not axes
    ends = [curve.low.min() / 1.3, curve.high.max() * 1.3]
    pick, faded = charts.picked(field)
    x = charts.batch_axis(curve.batch_size, f"batch size ({units})")
    base = alt.Chart(tips.with_sources(curve)).encode(x=x, color=colour, opacity=faded)
    scale = charts.log(domain=ends)
    y = alt.Y("steps:Q", title=STEPS, scale=scale, axis=charts.fractions())
    layers = charts.curve(base, y, scale, tips.points(field))
    if "perfect" in curve:
        perfect = base.mark_line(strokeDash=[3, 4], strokeWidth=1, clip=True)
        layers.insert(0, perfect.encode(y=alt.Y("perfect:Q", scale=scale)))
    names = curve[field].map(_line_name)
    # More or longer names would take the plot's room; a legend or tooltips identify those
    if names.str.len().max() <= 12 and 1 < names.nunique() <= 6:
        by = charts.chosen_by(controls)
        places = line_ends(curve, field, by, ends, height)
        text = alt.when("width < 480").then(alt.value("")).otherwise("words:N")
        labels = alt.Chart(places).mark_text(align="left", dx=9, fontSize=12)
        layers.append(labels.encode(x="batch_size:Q", y="steps:Q", text=text))
    layers[0] = layers[0].add_params(pick)
    return charts.sized(charts.controlled(layers, *controls), height)


# --- names beside lines ---------------------------------------------------------------------------

LABEL_GAP = 15  # pixels between lines of names


def line_ends(
    rows: pd.DataFrame, field: str, by: list[str], axis: list[float], height: int
) -> pd.DataFrame:
    """Positions of the names of lines, on plots with room for them; others have a legend.

    A row per line (and value of `by`) with batch_size, steps and `words`, moved apart where they
    overlap, keeping the middle of a group, but not below the axis; axis: the ends of the axis of
    steps, height: its pixels.
    """
    points = rows.dropna(subset="steps").sort_values("batch_size")
    lines = points.groupby([*by, field], as_index=False)
    last = lines[["batch_size", "steps"]].last()
    low, high = np.log(axis)

    def spread(steps: pd.Series) -> pd.Series:
        order = steps.sort_values(kind="stable")
        gaps = LABEL_GAP / height * (high - low) * np.arange(len(order))
        places = isotonic_regression(np.log(order) - gaps).x + gaps
        places += max(0, low - places[0])
        return pd.Series(np.exp(places), order.index)

    apart = last.groupby(by or (lambda _: 0)).steps.transform(spread)
    return last.assign(steps=apart, words=last[field].map(_line_name))


def _line_name(value: object) -> str:
    if isinstance(value, float) and value:
        return f"{value:g}"
    return named(str(value)) if value else "dense"


# --- small multiples: a small plot for each of several networks, all on the same axes -------------

PANEL_EDGE = 54  # pixels of a panel's axis and of the gap to the next one
MEASURE = "isFinite(containerSize()[0]) ? containerSize()[0] : 640"
# A phone has room for two short names side by side
SIGNED = "replace(replace(replace(datum.label, ' on ', '|on '), ', ', '|'), ' → ', '|→ ')"
BROKEN = f"split({SIGNED}, '|')"

Layers = Callable[[alt.Chart], list[alt.Chart]]


def panels(
    rows: pd.DataFrame,
    layers: Layers,
    title: str,
    height: int = 110,
    most: int = 4,
    least: int = 220,
) -> alt.FacetChart:
    """A panel per value of `panel`, in the order of the rows.

    Args:
        rows: `panel`, broken before " on " and " → " and after a comma, and what the layers draw.
        layers: makes the layers of each panel from a chart without data; axes have no titles.  It
            must not add parameters.
        title: names both axes, since panels have no room for titles of axes.
        height: of a panel, in pixels.
        most: panels side by side.
        least: pixels for a panel with its axis, if more than two are side by side.
    """
    inner = alt.layer(*layers(alt.Chart()), data=rows)
    facet = alt.Facet("panel:N", title=None, sort=list(dict.fromkeys(rows.panel)))
    facet = facet.header(
        labelExpr=BROKEN, labelLimit=150, labelFontSize=11, labelAnchor="start"
    )
    # Width in a still picture; on a page, panels share the page's width
    panel = inner.properties(width=150, height=height)
    chart = panel.facet(facet=facet, columns=min(3, most), spacing=12)
    chart = chart.resolve_axis(x="independent", y="independent")
    chart = chart.configure_axis(title=None, labelFontSize=10, labelSeparation=2, tickSize=3)
    words = alt.Title(title, fontSize=12, anchor="start")
    return chart.properties(title=words, usermeta=_sharing(most, least))


def arranged(rows: pd.DataFrame, names: dict[tuple[str, str], str]) -> pd.DataFrame:
    """The rows of these panels in this order, with `panel`.

    Args:
        rows: with workload and algorithm.
        names: (workload, algorithm) -> the name of its panel; some may have no rows.
    """
    curves = dict(list(rows.groupby(["workload", "algorithm"])))
    return pd.concat(curves[key].assign(panel=names[key]) for key in names if key in curves)


def _sharing(most: int, least: int) -> dict:
    """Lets panels share the width of a page, two to `most` side by side: Vega-Lite gives them a
    fixed width, so its output is changed by a JSON Patch.
    """
    abreast = f"clamp(floor(page_width / {least}), 2, {most})"
    width = {"name": "child_width", "update": f"floor(page_width / abreast) - {PANEL_EDGE}"}
    resized = {"events": "window:resize", "update": MEASURE}
    page = {"name": "page_width", "init": MEASURE, "on": [resized]}
    patch = [
        {"op": "replace", "path": "/layout/columns", "value": {"signal": "abreast"}},
        {"op": "replace", "path": "/signals/0", "value": width},
        {"op": "add", "path": "/signals/0", "value": {"name": "abreast", "update": abreast}},
        {"op": "add", "path": "/signals/0", "value": page},
    ]
    return {"embedOptions": {"patch": patch}}


def small_curve(lines: alt.Chart, tooltip: list) -> list[alt.Chart]:
    """The layers of a curve in a panel: a line, and points with this tooltip.

    lines: with both axes and the colour.
    """
    points = lines.mark_point(filled=True, size=22, opacity=1)
    return [lines.mark_line(strokeWidth=1.8), points.encode(tooltip=tooltip)]
