"""Figures of training methods side by side: where their curves lie to SGD's, and where a model says
that they should.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.page.tips import tip
from lib.wording import brief, named, span

WORDS = {  # what is compared, as the menu has it
    "critical": "critical batch size",
    "large": "steps, two largest batches",
    "small": "steps, two smallest batches",
}
COLUMNS = {"critical": "critical", "large": "c2", "small": "c1"}  # the model's limits near these
SHADES = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.RED, charts.PURPLE)
OVER = "times SGD’s"
HIGHLIGHTED = {  # methods drawn in colour beside all others
    "momentum": charts.ORANGE,
    "adam": charts.RED,
    "muon": charts.GREEN,
    "kfac": charts.BLUE,
}
ROW = 9  # pixels of a network within a method's row


def beside_prediction(measured: pd.DataFrame, predicted: pd.DataFrame) -> alt.LayerChart:
    """Ratios to SGD with intervals, a row per method and a colour per network, and the model's
    ratio as a hollow diamond; a menu chooses what.

    Args:
        measured: what (of WORDS), method, network, ratio, ratio_low, ratio_high and n (searches).
            Intervals end at eight times the outermost points.
        predicted: what, method and ratio.
    """
    if measured.empty:
        return charts.nothing("No method but SGD has a curve of three batch sizes yet.")
    plain = measured[["what", "method", "network", "ratio", "ratio_low", "ratio_high", "n"]]
    parts = [charts.cut(rows, "ratio", 8)[0] for _, rows in plain.groupby("what", sort=False)]
    shown = pd.concat(parts, ignore_index=True).assign(what=lambda rows: rows.what.map(WORDS))
    order, networks = list(dict.fromkeys(measured.method)), list(dict.fromkeys(measured.network))
    model = predicted[predicted.method.isin(order)].assign(what=predicted.what.map(WORDS))
    scale = charts.log(14)
    axis = charts.fractions(labelOverlap="greedy", labelBound=True)
    x = alt.X("ratio:Q", title=OVER, scale=scale, axis=axis)
    y = alt.Y("method:N", title=None, sort=order)
    short = "replace(datum.label, ', easier goal', '')"  # for a phone
    colour = charts.by_name("network", dict(zip(networks, SHADES)))
    colour = colour.legend(columns=1, labelLimit=260, labelExpr=short)
    base = alt.Chart(shown).encode(
        y=y, yOffset=alt.YOffset("network:N", sort=networks), color=colour
    )
    tooltip = [
        tip("method:N", "training method"),
        tips.NETWORK,
        tip("ratio:Q", OVER, ".2f"),
        tip("range:N", "5–95 %"),
        tip("n:Q", "searches of both"),
    ]
    diamonds = alt.Chart(model).mark_point(
        shape="diamond", size=90, strokeWidth=2, color=charts.GUIDE
    )
    told = [tip("method:N", "training method"), tip("ratio:Q", "the model’s ratio", ".2r")]
    layers = [
        *charts.ranges(
            base, "ratio", x, alt.X("ratio_low:Q", scale=scale, title=OVER), tooltip, 50
        ),
        diamonds.encode(y=y, x=x, tooltip=told),
    ]
    words = [word for word in WORDS.values() if word in set(shown.what)]
    what = charts.menu("what", words, shown.what.iloc[0], "show")
    drawn = alt.layer(charts.across(1, x=scale), charts.controlled(layers, what))
    title = alt.Title(alt.expr(f"{what[0].name} + ', {OVER}'"), anchor="start")
    height = len(order) * max(30, ROW * len(networks))
    return charts.sized(drawn, height).properties(title=title)


def over_sgd(rows: pd.DataFrame, kind: str) -> alt.LayerChart:
    """Steps or time over SGD's against batch size, a line per method with its name beside it: those
    of HIGHLIGHTED in colour, the others grey; a menu of networks.

    Args:
        rows: network, algorithm, batch_size, kind ("steps" or "time"), ratio, ratio_low,
            ratio_high and dearer (empty for steps).
        kind: of the rows that are drawn.
    """
    rows = rows[rows.kind == kind]
    if rows.empty:
        return charts.nothing("No step of these methods was timed yet.")
    ends = zip(map(_rounded, rows.ratio_low), map(_rounded, rows.ratio_high))
    rows = rows.assign(interval=list(map(span, ends)), method=rows.algorithm.map(named))
    rows = rows.assign(group=rows.method.where(rows.algorithm.isin(HIGHLIGHTED), "other"))
    within = [rows.ratio.min() / 1.2, rows.ratio.max() * 1.2]
    scale = charts.log(domain=within)
    colours = {named(name): colour for name, colour in HIGHLIGHTED.items()}
    title = f"{kind}, {OVER}"
    y = alt.Y("ratio:Q", title=title, scale=scale, axis=charts.fractions())
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        y=y,
        color=charts.by_name("group", colours | {"other": charts.GUIDE}, 3),
        detail="algorithm:N",
    )
    tooltip = [
        tip("method:N", "training method"),
        tips.BATCH_SIZE,
        tip("ratio:Q", title, ".2f"),
        tips.INTERVAL,
        tip("dearer:Q", "a step’s time over SGD’s", ".2f"),
    ]
    width = alt.when(alt.datum.group == "other").then(alt.value(1)).otherwise(alt.value(2.4))
    lines = base.mark_line().encode(strokeWidth=width)
    dots = base.mark_point(filled=True, size=40, opacity=1).encode(tooltip=tooltip)
    network = charts.menu("network", list(rows.network.unique()), rows.network.iloc[0], "network")
    placed = rows.rename(columns={"ratio": "steps"})
    names = shared_figures.line_labels(placed, "algorithm", network, within=within, height=320)
    drawn = charts.controlled([lines, dots, names], network)
    return charts.sized(alt.layer(charts.across(1, y=scale), drawn), 320)


def _rounded(value: float) -> float:
    return float(brief(value).replace(",", ""))
