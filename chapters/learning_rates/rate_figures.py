"""Figures of the learning rate against batch size; rows come from `measured.with_curves`."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from chapters.learning_rates.measured import FORMS, LINEAR, ONE, ROOT, name_of, times
from lib.page import charts, tips
from lib.wording import brief, named

NOTHING = "No curve is complete yet."
DENSE, PRUNED = "dense", "90 % pruned"
SHAPES = alt.Shape(
    "pruning:N",
    title=None,
    scale=alt.Scale(domain=[DENSE, PRUNED], range=["circle", "triangle-up"]),
    legend=alt.Legend(columns=2),
)
REGIMES = {"far below C": charts.BLUE, "around C": charts.TEAL, "far above C": charts.ORANGE}
RULES = {ONE: charts.BLUE, ROOT: charts.ORANGE, LINEAR: charts.RED, "no change": charts.PURPLE}
SHADES = dict(zip(FORMS, (charts.BLUE, charts.TEAL, charts.RED)))
SIZE = {"batch_size:Q|,": "batch size"}
TIMES = alt.Axis(format="~g", values=charts.DECADES, labelOverlap="parity")


def labelled(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with names of their curve: network, method, both (curve), pruning (as in SHAPES)."""
    pruned = np.where(rows.sparsity > 0, PRUNED, DENSE)
    networks = pd.Series([name_of(row) for row in rows.to_dict("records")], rows.index)
    methods = rows.algorithm.map(named)
    curves = networks + ", " + methods
    # The page is close to its limit in bytes
    rows = rows.drop(columns="workload")
    return rows.assign(network=networks, method=methods, curve=curves, pruning=pruned)


def by_curve(
    layers: list[alt.Chart], rows: pd.DataFrame, said: Mapping[str, str]
) -> alt.LayerChart:
    """The layers with a menu of the curves of `labelled` rows; the first is shown initially.

    said: the title's words for every curve.
    """
    titles = {name: f"{name}: {said[name]}" for name in rows.curve}
    menu = charts.menu("curve", [*titles], [*titles][0], "curve")
    title = charts.title(titles, menu)
    return charts.sized(charts.controlled(layers, menu).add_params(title), 360)


def law(points: pd.DataFrame) -> alt.LayerChart:
    """Best rates over eta_inf against batch sizes over B_eta, of all curves, with the form."""
    if points.empty:
        return charts.nothing(NOTHING)
    rows = labelled(points).assign(
        x=points.batch_size / points.b_eta, y=points.rate / points.eta_inf
    )
    x = alt.X("x:Q", title="batch size over Bη", scale=charts.log(8), axis=charts.fractions())
    up = charts.log(8, base=10)
    y = alt.Y("y:Q", title="best learning rate over η∞", scale=up, axis=TIMES)
    sizes = np.geomspace(rows.x.min() / 1.5, rows.x.max() * 1.5, 80)
    form = alt.Chart(pd.DataFrame({"x": sizes, "y": 1 / (1 + 1 / sizes)}))
    form = form.mark_line(color=charts.GUIDE, strokeWidth=2.5).encode(x=x, y=y)
    about = {"network:N": "network", "method:N": "training method", **SIZE}
    dots = alt.Chart(rows).mark_point(filled=True, size=58, opacity=0.85)
    dots = dots.encode(
        x=x,
        y=y,
        color=charts.by_algorithm(list(dict.fromkeys(rows.algorithm))),
        shape=SHAPES,
        tooltip=tips.listed({**about, "rate:Q|.2g": "best learning rate"}),
    )
    return charts.sized(alt.layer(form, dots), 380)


def tuning(rows: pd.DataFrame, costs: pd.DataFrame) -> alt.LayerChart:
    """Steps times rate against the rate over the best, one line per batch size; a menu of curves.

    costs: the same curves' costs at half and twice the best rate.
    """
    if rows.empty:
        return charts.nothing(NOTHING)
    shown = labelled(rows)
    ratio = shown.batch_size / shown.critical
    low, middle, high = REGIMES
    shown["regime"] = np.select([ratio < 0.25, ratio <= 4], [low, middle], high)
    x = alt.X("over:Q", title="learning rate over the best", scale=charts.log(8))
    y = alt.Y("distance:Q", title="steps × rate, over K*η*", scale=charts.log(8))
    about = {"over:Q|.2f": "rate over the best", "distance:Q|.2f": "steps × rate, over K*η*"}
    drawn = shown[["curve", "batch_size", "over", "distance", "regime"]]
    base = alt.Chart(drawn).encode(
        x=x.axis(charts.fractions(values=[1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8])),
        y=y.axis(charts.fractions()),
        color=charts.by_name("regime", REGIMES, 1, 3),
        detail="batch_size:N",
        tooltip=tips.listed({**SIZE, **about}),
    )
    lines = base.mark_line(strokeWidth=1.6, opacity=0.7)
    words = "half the best rate costs {half} times the steps, twice the best {twice}"
    layers = lines, base.mark_point(filled=True, size=36)
    return by_curve(layers, shown, _found(words, labelled(costs)))


def _found(words: str, rows: pd.DataFrame) -> dict[str, str]:
    """The words for every curve, with its `measured.times` in their braces."""
    return {curve: words.format_map(times(costs)) for curve, costs in rows.groupby("curve")}


def product(points: pd.DataFrame) -> alt.LayerChart:
    """K* times the best rate against the batch size, a line per curve of a method."""
    if points.empty:
        return charts.nothing(NOTHING)
    rows = labelled(points).assign(product=points.rate * points.steps)
    rows["title"] = rows.network.str.replace(r", \d+\s%.*", "", regex=True)
    colours = {DENSE: charts.DENSE, PRUNED: charts.sparsity_colour(0.9)}
    about = {"network:N": "network", **SIZE, "steps:Q|,.0f": "K*"}
    # Room above and below, so that what is flat looks so
    room = [rows["product"].min() / 3, rows["product"].max() * 3]
    scale = charts.log(base=10, domain=room)
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        y=alt.Y("product:Q", title="steps × best rate", scale=scale, axis=TIMES),
        color=charts.by_name("pruning", colours, 2),
        detail="network:N",
        tooltip=tips.listed({**about, "product:Q|.3r": "steps × best rate"}),
    )
    legend = alt.Legend(columns=alt.expr("width < 480 ? 1 : 4"), symbolFillColor=charts.GUIDE)
    dots = base.mark_point(filled=True, size=60)
    layers = base.mark_line(), dots.encode(shape=alt.Shape("title:N", title=None, legend=legend))
    return charts.sized(alt.layer(*layers), 360)


def costs(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps at the rates of rules from one size over those at the best rate; a menu of curves."""
    rows = rows[rows.rule.isin(RULES)] if len(rows) else rows
    if rows.empty:
        return charts.nothing(NOTHING)
    bounds = {False: "as measured", True: "a lower bound"}
    shown = labelled(rows).assign(
        times=np.exp(rows.cost), **{"at least": rows.bound.map(bounds)}
    )
    about = {"rule:N": "rule", **SIZE, "times:Q|.2f": "times the steps"}
    drawn = shown[["curve", "batch_size", "rule", "times", "at least"]]
    base = alt.Chart(drawn).encode(
        x=charts.batch_axis(shown.batch_size),
        y=alt.Y("times:Q", title="steps over those at the best rate", scale=charts.log(8)),
        color=charts.by_name("rule", RULES, 1, 2),
        tooltip=tips.listed({**about, "at least:N": "measured or bound"}),
    )
    marks = alt.Scale(domain=[*bounds.values()], range=["circle", "triangle-up"])
    dots = base.mark_point(filled=True, size=64, opacity=1)
    dots = dots.encode(shape=alt.Shape("at least:N", title=None, scale=marks))
    words = (
        "the law costs {the law, from one size} times the tuned steps, the linear rule "
        "{linear from one size}, the square-root rule {square root from one size}"
    )
    return by_curve([base.mark_line(strokeWidth=1.6), dots], shown, _found(words, shown))


def forms(points: pd.DataFrame) -> alt.LayerChart:
    """Best rates with the forms fitted to them, with a menu of curves."""
    if points.empty:
        return charts.nothing(NOTHING)
    shown = labelled(points)
    lines = shown.melt(["curve", "batch_size"], FORMS, "form", "fitted")
    x = charts.batch_axis(shown.batch_size)
    up = charts.log(10, base=10)
    y = alt.Y("rate:Q", title="best learning rate", scale=up, axis=TIMES)
    about = tips.listed({**SIZE, "rate:Q|.2g": "best learning rate"})
    curves = alt.Chart(lines).mark_line(strokeWidth=1.8).encode(x=x, y=alt.Y("fitted:Q"))
    dots = alt.Chart(shown).mark_point(filled=True, size=64, opacity=1, color=charts.GUIDE)
    dots = dots.encode(x=x, y=y, tooltip=about)
    curves = curves.encode(color=charts.by_name("form", SHADES, 1, 3))
    said = dict(zip(shown.curve, "a free exponent of " + shown.exponent.map(brief)))
    return by_curve([dots, curves], shown, said)
