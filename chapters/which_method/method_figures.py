"""Figures of training methods beside SGD, in steps and in time."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.page.tips import tip
from lib.wording import named, span

WORDS = {  # what is compared, as the menu has it
    "critical": "critical batch size",
    "large": "steps, two largest batches",
    "small": "steps, two smallest batches",
}
SHADES = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.RED, charts.PURPLE)
COLUMNS = ["what", "method", "network", "ratio", "ratio_low", "ratio_high", "n"]
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
        measured: of `method_tables.compared`; variants are left out.  Intervals end at eight times
            the outermost points.
        predicted: of `quadratic_methods.predictions`.
    """
    plain = measured.loc[~measured.algorithm.isin(charts.VARIANTS), COLUMNS]
    parts = [charts.cut(rows, "ratio", 8)[0] for _, rows in plain.groupby("what", sort=False)]
    shown = pd.concat(parts, ignore_index=True).assign(what=lambda rows: rows.what.map(WORDS))
    order, networks = list(dict.fromkeys(plain.method)), list(dict.fromkeys(plain.network))
    model = predicted.rename(columns=WORDS).melt("algorithm", [*WORDS.values()], "what", "ratio")
    model = model.assign(method=model.algorithm.map(named))
    model = model[model.method.isin(order)].drop(columns="algorithm")
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


def in_time(timed: pd.DataFrame) -> alt.LayerChart:
    """Time over SGD's against batch size, a line per method with its name beside it: those of
    HIGHLIGHTED in colour, the others grey; a menu of networks; timed: of `method_tables.in_time`.
    """
    ends = [timed[name].map("{:.2g}".format).astype(float) for name in ("time_low", "time_high")]
    group = timed.method.where(timed.algorithm.isin(HIGHLIGHTED), "other")
    shown = timed[["network", "method", "batch_size", "time", "dearer"]]
    rows = shown.assign(interval=list(map(span, zip(*ends))), group=group)
    within = [rows.time.min() / 1.2, rows.time.max() * 1.2]
    scale = charts.log(domain=within)
    colours = {named(name): colour for name, colour in HIGHLIGHTED.items()}
    title = f"time, {OVER}"
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        y=alt.Y("time:Q", title=title, scale=scale, axis=charts.fractions()),
        color=charts.by_name("group", colours | {"other": charts.GUIDE}, 3),
        detail="method:N",
    )
    tooltip = [
        tip("method:N", "training method"),
        tips.BATCH_SIZE,
        tip("time:Q", title, ".2f"),
        tips.INTERVAL,
        tip("dearer:Q", "a step’s time over SGD’s", ".2f"),
    ]
    width = alt.when(alt.datum.group == "other").then(alt.value(1)).otherwise(alt.value(2.4))
    lines = base.mark_line().encode(strokeWidth=width)
    dots = base.mark_point(filled=True, size=40, opacity=1).encode(tooltip=tooltip)
    network = charts.menu("network", list(rows.network.unique()), rows.network.iloc[0], "network")
    placed = rows.rename(columns={"time": "steps"})
    names = shared_figures.line_labels(placed, "method", network, within=within, height=320)
    drawn = charts.controlled([lines, dots, names], network)
    return charts.sized(alt.layer(charts.across(1, y=scale), drawn), 320)
