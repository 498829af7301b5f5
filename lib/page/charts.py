"""The book's charts: one theme, fixed colours, axes, sliders and menus."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from lib.methods import METHODS, method
from lib.page import vega
from lib.wording import DATA_SETS, NAMES, power_of_ten, span

# Contrast of at least 3:1 on light and dark pages (WCAG's for graphics; text has the page's ink),
# and distinguishable without red, green or blue cones: tests compute both.
GUIDE = "#778ca8"  # guide lines, and whatever has no other colour
# Networks that keep all weights, and gradients sent whole, always have this colour
BLUE = DENSE = "#2f77b8"
CATEGORIES = """
#c98100 #917df5 #259e8c #db031e #317416 #f9458b #8a5383 #959456 #b4476b #7a7c47
""".split()
ORANGE, PURPLE, TEAL, RED, GREEN, PINK, INDIGO, _, WINE, BROWN = CATEGORIES
# Drawn in the colours of these
VARIANTS = {
    "lars-warmup": "lars",
    "adam-fixed": "adam",
    "adam-half-life": "adam",
    "kfac-unclipped": "kfac",
}
# On most figures Muon is drawn beside Adam, which is red
ALGORITHM_COLOURS = dict(
    zip((name for name in METHODS if name not in VARIANTS), itertools.cycle(CATEGORIES))
) | {"muon": GREEN, "lars": WINE}
ALGORITHM_COLOURS |= {name: ALGORITHM_COLOURS[usual] for name, usual in VARIANTS.items()}
METHOD_TITLES = {METHODS[name].title: colour for name, colour in ALGORITHM_COLOURS.items()}
# In order: the sparser, the darker
RAMP = {0.5: "#b18c00", 0.7: "#c76854", 0.9: "#cf2b6a", 0.95: "#ac338e"}
SPARSITY_COLOURS = {0.0: DENSE} | RAMP
# For data sets, by size; text last
SHAPES = dict(zip(DATA_SETS.values(), ("circle", "square", "triangle-up", "diamond", "cross")))
PRUNING_COLOURS = {
    "connection-sensitivity": RED,
    "grasp": PURPLE,
    "grasp-200": GREEN,
    "synflow": TEAL,
    "magnitude": ORANGE,
    "random": INDIGO,
    "dense": DENSE,
}


@alt.theme.register("book", enable=False)
def _theme() -> alt.theme.ThemeConfig:
    """The theme; numbers read as in the prose: 8 %, and a minus, not a hyphen."""
    return json.loads(Path(__file__).with_name("theme.json").read_text(encoding="utf-8"))


def enable() -> None:
    """Call once at the top of every chapter: charts then display as pictures, without a network."""
    alt.theme.enable("book")
    alt.renderers.enable("svg")


PHONE = 400  # pixels of the plot; if narrower, two long names do not fit side by side


def sparsity_colour(level: float) -> str:
    """The colour of a share of zeros, from 0 to below 1: a separate one for dense, the others on
    one ramp, in order.
    """
    if level == 0:
        return DENSE
    ramp = np.array([list(bytes.fromhex(colour[1:])) for colour in RAMP.values()])
    return "#" + bytes(round(np.interp(level, list(RAMP), part)) for part in ramp.T).hex()


def by_sparsity(levels: list[float]) -> alt.Color:
    """Colour per sparsity; 0 reads "dense"."""
    scale = _fixed({level: sparsity_colour(level) for level in sorted(levels)})
    legend = alt.Legend(labelExpr="datum.value == 0 ? 'dense' : datum.label")
    return alt.Color("sparsity:O", scale=scale, title="sparsity", legend=legend)


def method_colour(name: str) -> str:
    """The colour of a training method, by its name or title; for a reader's own, that of guides."""
    return METHOD_TITLES.get(name, ALGORITHM_COLOURS.get(name, GUIDE))


def by_algorithm(names: list[str], columns: int = 2) -> alt.Color:
    """Colour per training method; columns: of the legend on a phone, if no title is long."""
    titles = {name: method(name).title for name in names}
    order = [*ALGORITHM_COLOURS, *titles]
    colours = {name: method_colour(name) for name in order if name in titles}
    columns = 1 if any(len(title) > 15 for title in titles.values()) else columns
    label = f"{json.dumps(titles)}[datum.label]"
    return by_name("algorithm", colours, columns, 4, labelExpr=label)


def by_pruning(names: list[str]) -> alt.Color:
    """Colour per method of pruning."""
    colours = {name: colour for name, colour in PRUNING_COLOURS.items() if name in names}
    label = f"{json.dumps(NAMES)}[datum.label] || datum.label"
    return by_name("method", colours, 1, 3, labelExpr=label)


def by_name(
    field: str, colours: dict[str, str], columns: int = 0, wide: int | None = None, **legend
) -> alt.Color:
    """Colour per value of a column, these values in this order, with a legend without a title.

    Args:
        columns: of the legend on a phone; 0: one everywhere, for long names.
        wide: columns of the legend elsewhere; None: twice as many.
        **legend: further options of the legend.
    """
    placed = {"columns": 1, "labelFontSize": alt.expr(f"width < {PHONE} ? 12 : 13")}
    if columns:
        count = alt.expr(f"width < {PHONE} ? {columns} : {wide or 2 * columns}")
        placed = {"columns": count, "columnPadding": 8}
    legend = alt.Legend(**placed, **legend)
    return alt.Color(f"{field}:N", title=None, scale=_fixed(colours), legend=legend)


def by_shape(field: str, names: Iterable[str]) -> alt.Shape:
    """Shape per data set in a column, with a legend without a title."""
    shapes = {name: shape for name, shape in SHAPES.items() if name in set(names)}
    columns = alt.expr(f"width < {PHONE} ? 2 : 4")
    legend = alt.Legend(columns=columns, columnPadding=8, symbolFillColor=GUIDE)
    return alt.Shape(f"{field}:N", title=None, scale=_fixed(shapes), legend=legend)


def _fixed(looks: dict) -> alt.Scale:
    """A scale of these values, in this order, each with its colour or shape."""
    return alt.Scale(domain=list(looks), range=list(looks.values()))


def batch_axis(sizes: pd.Series | list, title: str | None = "batch size (examples)") -> alt.X:
    """Batch size on a base-2 axis with a tick at every size measured."""
    axis = alt.Axis(values=sorted(set(map(int, sizes))), labelOverlap="parity", format=",")
    # Room for half of the last label
    return alt.X("batch_size:Q", title=title, axis=axis, scale=log(20))


def log(padding: int = alt.Undefined, base: int = 2, **options) -> alt.Scale:
    """A logarithmic scale that ends where its marks do, plus some pixels of padding."""
    return alt.Scale(type="log", nice=False, base=base, padding=padding, **options)


def curve(base: alt.Chart, y: alt.Y, scale: alt.Scale, tooltip: list) -> list[alt.Chart]:
    """The layers of a curve: bars from `low` to `high`, lines, and points with tooltips.

    Args:
        base: with x and colour.
        y: of lines and points, on this scale.
    """
    points = base.mark_point(filled=True, size=64, opacity=1)
    return [
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_line(strokeWidth=2.2).encode(y=y),
        points.encode(y=y, tooltip=tooltip),
    ]


def ranges(
    base: alt.Chart, value: str, x: alt.X, low: alt.X, tooltip: list, size: int = 70
) -> list[alt.Chart]:
    """The layers of values with horizontal ranges: bars from value_low to value_high, and points.

    Args:
        base: with y and colour.
        x, low: of the points, and of the bars' lower ends, on one scale.
        size: of a point.
    """
    bars = base.mark_rule(strokeWidth=2).encode(x=low, x2=f"{value}_high:Q")
    points = base.mark_point(filled=True, size=size, opacity=1)
    return [bars, points.encode(x=x, tooltip=tooltip)]


def dotted(base: alt.Chart, size: int, **channels) -> alt.Chart:
    """A line with a point of this size at every value."""
    return base.mark_line(point=alt.OverlayMarkDef(size=size)).encode(**channels)


# Ticks: in Vega's default ones, powers of ten do not stand out
DECADES = [digit * 10.0**n for n in range(-9, 10) for digit in (1, 2, 5)]


def fractions(**options) -> alt.Axis:
    """An axis on which 0.015625 reads 1/64."""
    # Up to the digits to which a page's numbers are rounded
    is_unit = "abs(1 / datum.value - round(1 / datum.value)) < 1e-6 / datum.value"
    words = "'1/' + format(round(1 / datum.value), ',')"
    label = f"datum.value < 1 && {is_unit} ? {words} : datum.label"
    return alt.Axis(labelExpr=label, **options)


def powers(exponents: list[int], names: dict[int, str] | None = None) -> alt.Axis:
    """An axis with ticks at these powers of ten, labelled 10⁻⁶, or as `names` says for the
    exponent.
    """
    texts = {n: power_of_ten(n) for n in exponents} | {0: "1"} | (names or {})
    label = f"{json.dumps(texts, ensure_ascii=False)}[round(log(datum.value) / LN10)]"
    return alt.Axis(values=[10.0**n for n in exponents], labelExpr=label)


def slider(
    field: str, values: list[float], start: float | None, name: str, caption: str
) -> tuple:
    """A slider over the values of a column: the parameter, the test that keeps the chosen rows, and
    its caption in a still picture (`captions`).

    Args:
        start: the value shown first; None: the least.
        caption: a Vega expression in which `value` is the chosen value.
    """
    first = min(values) if start is None else start
    chosen, value, spelt = dial(f"{field}_place", values, first, name, caption)
    near = f"abs(datum.{field} - {value}) <= {NEAR} * abs({value})"
    return chosen, near, captions([spelt])


# Titles of axes that depend on the controls of a chart, since Vega-Lite's are fixed texts
TITLE = {"fontSize": 13, "align": "center", "baseline": "bottom"}


def said(expression: str, **style: object) -> alt.Chart:
    """The value of a Vega expression, as a text in this style."""
    text = alt.Chart(pd.DataFrame({"at": [0]})).transform_calculate(shown=expression)
    return text.mark_text(**style).encode(text="shown:N")


def beside(expression: str) -> alt.Chart:
    """The title of the vertical axis, along its middle: a Vega expression of the names of controls,
    "show === 'time' ? 's' : 'price'".
    """
    text = said(expression, angle=270, **TITLE)
    return text.encode(x=alt.value(-48), y=alt.value(alt.expr("height / 2")))


def below(expression: str) -> alt.Chart:
    """The same for the horizontal axis."""
    text = said(expression, dy=42, **TITLE)
    return text.encode(x=alt.value(alt.expr("width / 2")), y=alt.value("height"))


NEAR = 3 * 10.0**-vega.DIGITS  # relative error that a page's rounding may cause


def _spoken(text: str) -> alt.Parameter:
    """The setting of a slider in words, as a parameter that charts.js recognises by the end of its
    name; text: an expression with VALUES[NAME], NAME the slider's.
    """
    return alt.param(name=re.findall(r"\]\[(\w+)\]", text)[-1] + "_text", expr=text)


def title(texts: list | dict, *controls: tuple) -> alt.Parameter:
    """The figure's title for each value of its controls (`slider`, `menu`); charts.js recognises it
    by its name.

    texts: for a slider, in the order of its values; for a menu, by value; for several controls,
        nested: those of the next control in place of a text.
    """
    places = "".join(f"[{chosen.name}]" for chosen, *_ in controls)
    return alt.param(name="title_text", expr=json.dumps(texts, ensure_ascii=False) + places)


def needed(name: str, when: str) -> alt.Parameter:
    """Shows the control of this name only when it would change something; when: a Vega expression
    of the other controls.
    """
    return alt.param(name=f"{name}_needed", expr=when)


def goal_slider(goals: list[float], start: float | None = None) -> tuple:
    """A slider over goal errors; see `slider`."""
    goal = "'goal: validation error ≤ ' + format(100 * value, '.2~r') + '\u00a0%'"
    return slider("goal", goals, start, "goal error", goal)


def dial(
    name: str, values: list[float], start: float, title: str, shown: str
) -> tuple[alt.Parameter, str, str]:
    """A slider over values that are not in the data: the parameter, an expression of its value, and
    one of its caption.

    Args:
        shown: a Vega expression in which `value` is the chosen value.
    """
    values = sorted({*values, start})
    # Browsers cannot step along an uneven list, so the slider sets an index
    bind = alt.binding_range(min=0, max=len(values) - 1, step=1, name=f"{title} ")
    chosen = alt.param(name=name, value=values.index(start), bind=bind)
    value = f"{json.dumps(values)}[{name}]"
    return chosen, value, shown.replace("value", value)


def menu(field: str, values: list[str], start: str, name: str) -> tuple:
    """A menu over the values of a column: the parameter, the test that keeps the chosen rows, and
    no label.

    Networks are listed data set by data set; other values in their order.
    """
    by_size = [*reversed(DATA_SETS.values())]
    ordered = sorted(values, key=lambda value: [title in value for title in by_size])
    bind = alt.binding_select(options=ordered, name=f"{name} ")
    chosen = alt.param(name=f"{field}_chosen", value=start, bind=bind)
    return chosen, f"datum.{field} === {field}_chosen", None


def captions(texts: list[str]) -> alt.Chart:
    """The settings of dials (`dial`), a line each, in the upper right corner of a still picture; a
    live one has the values beside its sliders, and charts.js unsets `still`.
    """
    words = " + '\\n' + ".join(texts)
    style = {"align": "right", "baseline": "top", "lineBreak": "\n", "lineHeight": 17}
    text = said(f"still ? ({words}) : ''", fontSize=12, **style)
    text = text.encode(x=alt.value("width"), y=alt.value(6))
    return text.add_params(alt.param(name="still", value=True), *map(_spoken, texts))


def picked(field: str) -> tuple:
    """A selection of one value of a field by clicking the legend, and the opacity that fades the
    rest.
    """
    pick = alt.selection_point(fields=[field], bind="legend", name="shown")
    return pick, alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.1))


def across(*values: float, x: alt.Scale | None = None, y: alt.Scale | None = None) -> alt.Chart:
    """A dashed guide line at each of these values of the axis whose scale is given."""
    lines = alt.Chart(pd.DataFrame({"at": values})).mark_rule(color=GUIDE, strokeDash=[4, 4])
    return lines.encode(alt.Y("at:Q", scale=y) if x is None else alt.X("at:Q", scale=x))


def sized(chart: alt.LayerChart, height: int) -> alt.LayerChart:
    """The chart as wide as the page, and `height` pixels high."""
    return chart.properties(width="container", height=height)


def controlled(layers: list[alt.Chart], *controls: tuple) -> alt.LayerChart:
    """The layers with only the rows that every control (`slider`, `menu`) chooses."""
    if not controls:
        return alt.layer(*layers)
    chosen, tests, labels = zip(*controls)
    passed = " && ".join(map("({})".format, tests))
    kept = alt.layer(*(layer.transform_filter(passed) for layer in layers))
    return alt.layer(kept, *filter(None, labels)).add_params(*chosen)


def nothing(why: str) -> alt.LayerChart:
    """A placeholder for a chart with nothing to show."""
    words = alt.Chart(pd.DataFrame({"why": [why]})).mark_text(fontSize=13).encode(text="why:N")
    return sized(alt.layer(words), 60)


def broken() -> alt.Axis:
    """An axis of names broken at commas and before the data set, so that a phone has room for the
    plot.
    """
    label = "split(replace(datum.label, ' on ', ', on '), ', ')"
    return alt.Axis(labelLimit=150, labelExpr=label)


def chosen_by(controls: tuple) -> list[str]:
    """The columns whose values these controls choose."""
    return [re.sub("_(place|chosen)$", "", chosen.name) for chosen, *_ in controls]


def cut(rows: pd.DataFrame, value: str, beyond: float) -> tuple[pd.DataFrame, list[float]]:
    """Rows with their ranges cut at the ends of an axis that extends `beyond` times past the
    outermost points, and these ends.

    A mark at infinity could not be drawn; `range` has the ends in words.
    """
    drawn = rows[[f"{value}_low", value, f"{value}_high"]]
    low, points, high = (values for _, values in drawn.items())
    points = points[points.between(0, np.inf, inclusive="neither")]
    ends = [max(low.min(), points.min() / beyond), min(high.max(), points.max() * beyond)]
    return rows.assign(range=list(map(span, zip(low, high))), **drawn.clip(*ends)), ends
