"""The front page's figure: all curves as measured, and moved onto one.

A curve is value = level (1 + at / batch size) ** power, with its values of `level` and `at`.  A
slider moves it in logarithms, until batch sizes are divided by `at` and values by `level`.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from lib.analysis.scaling import CURVE
from lib.claims import front
from lib.page import charts, tips
from lib.wording import named, percent
from lib.workloads.catalogue import workload

WITHIN = {"tenth": 1.1, "fifth": 1.2, "half": 1.5}  # factors
LAYERWISE = ("LARS", "CLARS")
EDGES = (0.25, 4.0)  # between the zones, in critical batch sizes
OVER = (1.01, 1.1, 1.5, 2, 3, 5, 11, 51)  # labels of the top axis: examples over the fewest
STRIP = (0.5, 2.5)  # ends of the axis of residuals
HEIGHT, ROOM, LOW = 400, 58, 84  # pixels: the plot, the words at its top, the strip
MORE = 0.1  # share of time by which batches in the reader's range may be slower than the best
INK = "#24292f"
# An axis of powers of ten, 0.01 to 10,000
POWERS = {
    "values": [10.0**n for n in range(-4, 6)],
    "labelExpr": "format(datum.value, datum.value < 1 ? '~g' : ',')",
}
ABOUT = {
    "network:N": "network",
    "way:N": "method",
    "pruned:N": "weights",
    "batch_size:Q|,": "batch size",
    "value:Q|,.3~r": "measured",
    "at:Q|,.2~r": "C or Bη of this curve",
    "off:Q|.2f": "over the curve",
    "replicates:Q": "searches",
}
DRAWN = [column.split(":")[0] for column in ABOUT]
DRAWN += ["data", "curve", "method", "sparsity", "level", "what"]


class Kind(NamedTuple):
    """A quantity to move: its power, the titles of its axis before and after, what batch sizes are
    divided by, and the words in the three zones.
    """

    power: int
    raw: str
    moved: str
    over: str
    zones: tuple[str, str, str]


FREE, PAID = "free:|a doubling|saves 40–50\u00a0%", "paid for|nothing:|under 10\u00a0%"
TRADE, BENDS = (FREE, "a trade", PAID), ("grows with|the batch", "bends", "constant")
KINDS = {
    "steps": Kind(1, "steps to result", "steps, over the fewest", "the critical one", TRADE),
    "learning rates": Kind(
        -1, "best learning rate", "learning rate, over the largest", "Bη", BENDS
    ),
}


def steps(points: pd.DataFrame) -> pd.DataFrame:
    """The data of the figure for steps to result, a row per point: DRAWN.

    Args:
        points: from `lib.claims.front.collapsed`.
    """
    works = points.workload.map(workload)
    pruned = points.sparsity.map(percent) + " pruned by " + points.pruning.map(named)
    rows = points.assign(
        network=[work.title for work in works],
        data=[work.dataset for work in works],
        curve=points[CURVE].astype(str).agg(" ".join, axis=1),
    )
    return _drawn(rows, "steps", pruned)


def rates(points: pd.DataFrame) -> pd.DataFrame:
    """The same for best learning rates.

    Args:
        points: workload, algorithm, sparsity, batch_size, rate, eta_inf, b_eta (in examples), n
            (searches), network.
    """
    names = {"rate": "value", "eta_inf": "level", "b_eta": "at", "n": "replicates"}
    rows = points.rename(columns=names)
    rows["data"] = [workload(name).dataset for name in rows.workload]
    rows["curve"] = rows[["workload", "algorithm", "sparsity"]].astype(str).agg(" ".join, axis=1)
    return _drawn(rows, "learning rates", rows.sparsity.map(percent) + " pruned")


def _drawn(rows: pd.DataFrame, what: str, pruned: pd.Series) -> pd.DataFrame:
    shape = (1 + rows["at"] / rows.batch_size) ** KINDS[what].power
    rows = rows.assign(
        what=what,
        data=rows.data.map(front.data_set),
        way=rows.algorithm.map(named),
        method=rows.algorithm.replace(charts.VARIANTS).map(named),
        pruned=pruned.where(rows.sparsity > 0, "dense"),
        off=rows.value / rows.level / shape,
    )
    return rows[DRAWN]


def findings(rows: pd.DataFrame) -> dict[str, object]:
    """For dense networks, and for all (`all_`): the number of curves and points, and the share of
    points within a factor of 1.1, 1.2 and 1.5 of their curve (tenth, fifth, half), in words.  far:
    by what factors LARS and CLARS lie above their curves at batch size 1.

    Args:
        rows: from `steps`.
    """
    values = {"far": rows.off[rows.method.isin(LAYERWISE) & (rows.batch_size == 1)].tolist()}
    for prefix, points in {"": rows[rows.sparsity == 0], "all_": rows}.items():
        values |= {f"{prefix}curves": points.curve.nunique(), f"{prefix}points": len(points)}
        for word, factor in WITHIN.items():
            near = np.abs(np.log(points.off)) <= np.log(factor)
            values[prefix + word] = percent(near.mean(), 0)
    return values


# --- the chart ------------------------------------------------------------------------------------

# Marks that hold only for the moved curves appear at the end of the slide: earlier they would lie
# outside the plot and shrink it
MOVED = 0.96
THERE = f"datum.what === quantity && together > {MOVED}"
FADE = f"clamp((together - {MOVED}) / (1 - {MOVED}), 0, 1)"
GIVEN = "(C > 0 && a > 0 && b > 0)"
# As in `chapters.sheet.decide`; the fields hold strings
HALF = f"(1 + {MORE} * ((+a) + b * C + 2 * sqrt(a * b * C)) / sqrt(a * b * C) / 2)"
REACH = f"({HALF} + sqrt({HALF} * {HALF} - 1))"
SHORT = "format(+format({0}, '.2r'), ',')"  # two digits


def one_curve(rows: pd.DataFrame) -> alt.LayerChart:
    """All curves, which a slider moves onto one, above a strip of their residuals.

    A checkbox shows pruned networks, three fields set the reader's diamond, and a menu chooses
    between KINDS if there are rows of both.

    Args:
        rows: from `steps`, from `rates`, or from both.
    """
    kinds = list(dict.fromkeys(rows["what"]))
    x, y = _scale(rows, "batch_size", "at"), _scale(rows, "value", "level")
    y.range = [HEIGHT - LOW - 16, ROOM]
    plot = alt.layer(*_zones(kinds, x), *_curves(rows, x, y), _line(rows, x, y), _reader(x, y))
    strip = alt.layer(*_strip(rows, x))
    chart = alt.layer(plot, strip, *_titles(kinds)).resolve_scale(y="independent")
    shown = alt.Undefined
    if len(kinds) > 1:
        shown = alt.binding_select(options=kinds, name="show ")
    quantity = alt.param(name="quantity", value=kinds[0], bind=shown)
    chart = chart.add_params(quantity, *_controls(rows))
    chart = chart.properties(usermeta={"slides": "together", "job": ["C", "a", "b"]})
    chart = chart.configure_legend(offset=44)
    return charts.sized(chart, HEIGHT)


def _controls(rows: pd.DataFrame) -> list[alt.Parameter]:
    """The reader's controls, and the parameters computed from them."""
    together = alt.binding_range(min=0, max=1, step=0.01, name="slide the curves together ")
    pruned = alt.binding_checkbox(name="pruned networks, too ")
    fields = {"C": "your C (examples) ", "a": "a (s a step) ", "b": "b (s an example) "}
    numbers = {name: alt.binding(input="number", name=words) for name, words in fields.items()}
    return [
        alt.param(name="together", value=1, bind=together),
        alt.param(name="together_text", expr=_follows("'as measured'", "'one curve'")),
        alt.param(name="pruned", value=False, bind=pruned),
        *(alt.param(name=name, value="", bind=bind) for name, bind in numbers.items()),
        alt.param(name="best", expr=f"{GIVEN} ? sqrt(C * a / b) : 0"),
        alt.param(name="reach", expr=f"{GIVEN} ? {REACH} : 1"),
        alt.param(name="title_text", expr=_title(rows)),
    ]


def _title(rows: pd.DataFrame) -> str:
    """An expression for the figure's title, which follows the controls."""
    curves = rows.groupby("what").curve.nunique().to_dict()
    dense = rows[rows.sparsity == 0].groupby("what").curve.nunique().to_dict()
    count = f"(pruned ? {json.dumps(curves)} : {json.dumps(dense)})[quantity]"
    low, best, high = map(SHORT.format, ("(best / reach)", "best", "(best * reach)"))
    advice = f"'Your batch: ' + {best} + ' (' + {low} + '–' + {high} + ' cost at most '"
    advice += f" + '{MORE:.0%} more time)'".replace("%", "\u00a0%")
    end = _follows("' curves, as measured'", "' curves, one shape'", "' curves, moving'")
    return f"best > 0 ? {advice} : {count} + ({end})"


def _follows(before: str, after: str, between: str = "'… moving'") -> str:
    """An expression that follows the slider; the arguments are expressions, too."""
    return f"together < 0.02 ? {before} : together > 0.98 ? {after} : {between}"


def _scale(rows: pd.DataFrame, column: str, by: str) -> alt.Scale:
    """A logarithmic scale whose ends move with the slider, from the ends of `column` to the ends of
    `column` over `by`.
    """
    ends = {}
    for what, points in rows.groupby("what"):
        raw, moved = points[column], points[column] / points[by]
        ends[what] = [[float(values.min()), float(values.max())] for values in (raw, moved)]
    moving = "pow({0}[0][{1}], 1 - together) * pow({0}[1][{1}], together)"
    moving = [{"expr": moving.format(f"{json.dumps(ends)}[quantity]", n)} for n in (0, 1)]
    return alt.Scale(type="log", nice=False, domain=moving, padding=6)


def _curves(rows: pd.DataFrame, x: alt.Scale, y: alt.Scale) -> list[alt.Chart]:
    pick, _ = charts.picked("method")
    events = {"on": "pointerover", "clear": "pointerout", "name": "curve_at"}
    pointed = alt.selection_point(fields=["curve"], **events)
    base = _moved(rows).encode(
        x=alt.X("x:Q", scale=x, title=None).axis(grid=False, **POWERS),
        y=alt.Y("y:Q", scale=y, title=None).axis(**POWERS),
        color=_colour(rows),
        opacity=alt.when(pick & pointed).then(alt.value(0.85)).otherwise(alt.value(0.1)),
    )
    lines = base.mark_line(strokeWidth=1.2, clip=True).encode(detail="curve:N")
    shape = charts.by_shape("data", rows.data)
    dots = base.mark_point(filled=True, size=34)
    dots = dots.encode(shape=shape, tooltip=tips.listed(ABOUT))
    return [lines.add_params(pick, pointed), dots]


def _colour(rows: pd.DataFrame) -> alt.Color:
    ordered = [name for name in charts.METHOD_TITLES if name in set(rows.method)]
    return charts.by_name("method", {m: charts.method_colour(m) for m in ordered}, 2, 5)


def _moved(rows: pd.DataFrame) -> alt.Chart:
    """A chart of the rows that are shown, with x and y."""
    shown = "datum.what === quantity && (pruned || datum.sparsity === 0)"
    return (
        alt.Chart(rows)
        .transform_filter(shown)
        .transform_calculate(
            x="datum.batch_size / pow(datum.at, together)",
            y="datum.value / pow(datum.level, together)",
        )
    )


def _strip(rows: pd.DataFrame, x: alt.Scale) -> list[alt.Chart]:
    """Every point over its curve; points beyond the axis are drawn at its end."""
    scale = alt.Scale(type="log", domain=list(STRIP), clamp=True, nice=False)
    scale.range = [HEIGHT, HEIGHT - LOW]
    y = alt.Y("off:Q", scale=scale, title=None).axis(
        orient="left", values=[0.5, 1, 2], grid=False, format="~g"
    )
    near = pd.DataFrame({"low": [1 / WITHIN["fifth"]], "high": [WITHIN["fifth"]]})
    band = alt.Chart(near).mark_rect(color=charts.GUIDE, opacity=0.2)
    band = band.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    dots = _moved(rows).mark_circle(size=12, opacity=0.7)
    return [band, dots.encode(x=alt.X("x:Q", scale=x), y=y, color=_colour(rows))]


def _line(rows: pd.DataFrame, x: alt.Scale, y: alt.Scale) -> alt.Chart:
    """The curve onto which all are moved."""
    moved = rows.batch_size / rows["at"]
    places = pd.DataFrame({"x": np.geomspace(moved.min(), moved.max(), 121)})
    line = places.merge(rows[["what"]].drop_duplicates(), "cross")
    line["y"] = (1 + 1 / line.x) ** line["what"].map(lambda what: KINDS[what].power)
    chart = alt.Chart(line).transform_filter(THERE)
    chart = chart.mark_line(color=INK, strokeWidth=1.8, clip=True)
    return chart.encode(
        x=alt.X("x:Q", scale=x),
        y=alt.Y("y:Q", scale=y),
        opacity=_faded(),
    )


def _faded(most: float = 1) -> alt.OpacityValue:
    return alt.value(alt.expr(f"{most} * {FADE}"))


def _zones(kinds: list[str], x: alt.Scale) -> list[alt.Chart]:
    """The outer zones shaded, words in all three, and at the top the examples over the fewest."""
    left, right = EDGES
    places = pd.DataFrame({"low": [1e-6, left, right], "high": [left, right, 1e6]})
    places = places.assign(place=[left, 1.0, right])
    zones = [places.assign(what=k, words=KINDS[k].zones, side=[-1, 0, 1]) for k in kinds]
    columns = ["what", "low", "high", "place", "words", "side"]
    base = alt.Chart(pd.concat(zones)[columns]).transform_filter(THERE)
    shade = base.transform_filter("datum.side !== 0").mark_rect(color=charts.GUIDE, clip=True)
    low, place = alt.X("low:Q", scale=x), alt.X("place:Q", scale=x)
    shade = shade.encode(x=low, x2="high:Q", opacity=_faded(0.1))
    words = []
    style = {"baseline": "top", "lineHeight": 14, "fontSize": 12}
    for side, align in zip((-1, 0, 1), ("right", "center", "left")):
        text = base.transform_filter(f"datum.side === {side}")
        text = text.transform_calculate(lines="split(datum.words, '|')")
        text = text.mark_text(align=align, dx=6 * side, **style)
        words.append(text.encode(x=place, y=alt.value(2), text="lines:N", opacity=_faded()))
    ratios = pd.DataFrame({"told": OVER, "what": "steps"}).eval("x = told - 1")
    ratios = alt.Chart(ratios).transform_filter(THERE).mark_text(dy=-8, fontSize=12)
    ratios = ratios.encode(x=alt.X("x:Q", scale=x), y=alt.value(0), text="told:Q")
    return [shade, *words, ratios.encode(opacity=_faded())]


def _reader(x: alt.Scale, y: alt.Scale) -> alt.LayerChart:
    """The reader's batch on the curve, with the range that costs little."""
    chart = alt.Chart(pd.DataFrame({"own": ["your batch"], "what": ["steps"]}))
    chart = chart.transform_filter(f"best > 0 && {THERE}").transform_calculate(
        x="best / C", low="best / reach / C", high="best * reach / C", y="1 + C / best"
    )
    chart = chart.encode(y=alt.Y("y:Q", scale=y), opacity=_faded())
    best, low = alt.X("x:Q", scale=x), alt.X("low:Q", scale=x)
    bar = chart.mark_rule(strokeWidth=4, color=INK, clip=True).encode(x=low, x2="high:Q")
    dot = chart.mark_point(shape="diamond", size=260, filled=True, color=INK).encode(x=best)
    words = chart.mark_text(align="left", dx=12, dy=-10, fontWeight="bold")
    return alt.layer(bar, dot, words.encode(x=best, text="own:N"))


def _titles(kinds: list[str]) -> list[alt.Chart]:
    """Titles of the axes, which follow the slider."""
    raw, moved = ({k: getattr(KINDS[k], name) for k in kinds} for name in ("raw", "moved"))
    up = _follows(*(f"{json.dumps(words)}[quantity]" for words in (raw, moved)))
    sizes = {k: f"batch size, over {KINDS[k].over}" for k in kinds}
    sizes = json.dumps(sizes, ensure_ascii=False)
    across = _follows("'batch size (examples)'", f"{sizes}[quantity]")
    titles = [charts.beside(up), charts.below(across)]
    strip = charts.said("'measured, over its curve'", align="left", fontSize=12)
    strip = strip.encode(x=alt.value(70), y=alt.value(HEIGHT - LOW + 4))
    top = f"quantity === 'steps' && {FADE} > 0.5 ? 'examples processed, over the fewest' : ''"
    top = charts.below(top).encode(y=alt.value(-66))
    return [*titles, top, strip]
