"""Figures of the learning rate against the batch size."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.learning_rates.measured import FORMS, ONE, name_of
from lib.page import charts, tips
from lib.wording import named

NOTHING = "No curve is complete yet."
SHAPES = alt.Shape(
    "pruning:N",
    title=None,
    scale=alt.Scale(domain=["dense", "90 % pruned"], range=["circle", "triangle-up"]),
    legend=alt.Legend(columns=2),
)
REGIMES = ("far below C", "around C", "far above C")
RULES = {
    ONE: charts.BLUE,
    "square root from one size": charts.ORANGE,
    "linear from one size": charts.RED,
    "no change": charts.PURPLE,
}
SHADES = dict(zip(FORMS, (charts.BLUE, charts.TEAL, charts.RED)))


def told(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what names their curve: network, method, both (curve), pruning (as SHAPES)."""
    pruned = np.where(rows.sparsity > 0, "90 % pruned", "dense")
    networks = pd.Series([name_of(row) for row in rows.to_dict("records")], rows.index)
    methods = rows.algorithm.map(named)
    curves = networks + ", " + methods
    return rows.assign(network=networks, method=methods, curve=curves, pruning=pruned)


def by_curve(layers: list[alt.Chart], rows: pd.DataFrame) -> alt.LayerChart:
    """The layers under a menu of the curves that the rows, as `told`, have; the first is shown."""
    names = list(dict.fromkeys(rows.curve))
    return charts.sized(
        charts.controlled(layers, charts.menu("curve", names, names[0], "curve")), 360
    )


def law(points: pd.DataFrame) -> alt.LayerChart:
    """Best rates over eta_inf against batch sizes over B_eta, of all curves, about the form.

    points: of `measured.tables`, with eta_inf and b_eta.
    """
    if points.empty:
        return charts.nothing(NOTHING)
    rows = told(points).assign(
        x=points.batch_size / points.b_eta, y=points.rate / points.eta_inf
    )
    x = np.geomspace(rows.x.min() / 1.5, rows.x.max() * 1.5, 80)
    up = charts.log(8, base=10)
    axis = alt.X(
        "x:Q", title="batch size over Bη", scale=charts.log(8), axis=charts.fractions()
    )
    y = alt.Y("y:Q", title="best learning rate over η∞", scale=up, axis=alt.Axis(format="~g"))
    form = alt.Chart(pd.DataFrame({"x": x, "y": 1 / (1 + 1 / x)}))
    form = form.mark_line(color=charts.GUIDE, strokeWidth=2.5).encode(x=axis, y=y)
    about = {
        "network:N": "network",
        "method:N": "training method",
        "batch_size:Q|,": "batch size",
    }
    dots = alt.Chart(rows).mark_point(filled=True, size=58, opacity=0.85)
    dots = dots.encode(
        x=axis,
        y=y,
        color=charts.by_algorithm(list(dict.fromkeys(rows.algorithm))),
        shape=SHAPES,
        tooltip=tips.listed({**about, "rate:Q|.2g": "best learning rate"}),
    )
    return charts.sized(alt.layer(form, dots), 380)


def tuning(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps times rate against the rate over the best, a line per batch size; a menu of curves.

    rows: `measured.tables`' tuning, with critical.
    """
    if rows.empty:
        return charts.nothing(NOTHING)
    shown = told(rows)
    ratio = shown.batch_size / shown.critical
    shown["regime"] = np.select([ratio < 0.25, ratio <= 4], REGIMES[:2], REGIMES[2])
    colours = dict(zip(REGIMES, (charts.BLUE, charts.TEAL, charts.ORANGE)))
    about = {"batch_size:Q|,": "batch size", "over:Q|.2f": "rate over the best"}
    x = alt.X("over:Q", title="learning rate over the best", scale=charts.log(8))
    y = alt.Y("distance:Q", title="steps × rate, over K*η*", scale=charts.log(8))
    base = alt.Chart(shown).encode(
        x=x.axis(charts.fractions(values=[1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8])),
        y=y.axis(charts.fractions()),
        color=charts.by_name("regime", colours, 1, 3),
        detail="batch_size:N",
        tooltip=tips.listed({**about, "distance:Q|.2f": "steps × rate, over K*η*"}),
    )
    lines = base.mark_line(strokeWidth=1.6, opacity=0.7)
    return by_curve([lines, base.mark_point(filled=True, size=36)], shown)


def product(points: pd.DataFrame) -> alt.LayerChart:
    """K* times the best rate against the batch size, a line per curve of a method."""
    if points.empty:
        return charts.nothing(NOTHING)
    rows = told(points).assign(product=points.rate * points.steps)
    colours = {"dense": charts.DENSE, "90 % pruned": charts.sparsity_colour(0.9)}
    about = {"network:N": "network", "batch_size:Q|,": "batch size", "steps:Q|,.0f": "K*"}
    # Room above and below, so that what is flat looks so
    ends = [rows["product"].min() / 3, rows["product"].max() * 3]
    scale = charts.log(base=10, domain=ends)
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        y=alt.Y(
            "product:Q", title="steps × best rate", scale=scale, axis=alt.Axis(format="~g")
        ),
        color=charts.by_name("pruning", colours, 2),
        detail="network:N",
        tooltip=tips.listed({**about, "product:Q|.3r": "steps × best rate"}),
    )
    ends = rows.sort_values("batch_size").groupby("network", as_index=False).last()
    names = alt.Chart(ends).mark_text(align="right", dy=-11, fontSize=11)
    wide = alt.when("width < 480").then(alt.value("")).otherwise("network:N")
    words = names.encode(x="batch_size:Q", y=alt.Y("product:Q", scale=scale), text=wide)
    return charts.sized(
        alt.layer(base.mark_line(), base.mark_point(filled=True, size=44), words), 360
    )


def costs(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps at the rates of rules from one size over those at the best rate; a menu of curves."""
    rows = rows[rows.rule.isin(RULES)] if len(rows) else rows
    if rows.empty:
        return charts.nothing(NOTHING)
    shown = told(rows)
    shown["times"] = np.exp(shown.cost)
    shown["at least"] = np.where(shown.bound, "a bound from below", "as measured")
    about = {"rule:N": "rule", "batch_size:Q|,": "batch size", "times:Q|.2f": "times the steps"}
    marks = alt.Scale(
        domain=["as measured", "a bound from below"], range=["circle", "triangle-up"]
    )
    base = alt.Chart(shown).encode(
        x=charts.batch_axis(shown.batch_size),
        y=alt.Y(
            "times:Q", title="steps over those at the best rate", scale=charts.log(8, base=2)
        ),
        color=charts.by_name(
            "rule", {name: RULES[name] for name in RULES if name in set(shown.rule)}, 1, 2
        ),
        tooltip=tips.listed({**about, "at least:N": "how it is known"}),
    )
    dots = base.mark_point(filled=True, size=64, opacity=1)
    dots = dots.encode(shape=alt.Shape("at least:N", title=None, scale=marks))
    return by_curve([base.mark_line(strokeWidth=1.6), dots], shown)


def forms(points: pd.DataFrame) -> alt.LayerChart:
    """Best rates (`measured.tables`' points) with the forms fitted to them; a menu of curves."""
    if points.empty:
        return charts.nothing(NOTHING)
    shown = told(points)
    lines = shown.melt(["curve", "batch_size"], FORMS, "form", "fitted")
    x = charts.batch_axis(shown.batch_size)
    scale, axis = charts.log(10, base=10), alt.Axis(format="~g")
    y = alt.Y("rate:Q", title="best learning rate", scale=scale, axis=axis)
    about = {"batch_size:Q|,": "batch size", "rate:Q|.2g": "best learning rate"}
    curves = alt.Chart(lines).mark_line(strokeWidth=1.8).encode(x=x, y=alt.Y("fitted:Q"))
    dots = alt.Chart(shown).mark_point(filled=True, size=64, opacity=1, color=charts.GUIDE)
    dots = dots.encode(x=x, y=y, tooltip=tips.listed(about))
    return by_curve([dots, curves.encode(color=charts.by_name("form", SHADES, 1, 3))], shown)
