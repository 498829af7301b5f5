"""The figure that compares training methods with SGD."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.tips import tip

WORDS = {  # what is compared, as named in the menu
    "critical": "critical batch size",
    "large": "steps, two largest batches",
    "small": "steps, two smallest batches",
}
TITLES = {  # and the figure's title, of Muon's ratios
    "critical": "Muon’s critical batch size is {} times SGD’s on networks with three searches or more",
    "large": "At its two largest batch sizes, Muon takes {} times SGD’s steps",
    "small": "At its two smallest batch sizes, Muon takes {} times SGD’s steps",
}
SHADES = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.RED, charts.PURPLE)
COLUMNS = "what method network ratio ratio_low ratio_high n ends".split()
OVER = "times SGD’s"
ROW = 9  # pixels per network within a method's row


def over_sgd(measured: pd.DataFrame, muon: dict[str, str]) -> alt.LayerChart:
    """Ratios to SGD with intervals, one row per method and one colour per network; a menu chooses
    the quantity.

    Args:
        measured: from `findings.compared`; variants are left out.  Intervals end at twice the
            outermost points.
        muon: a key of WORDS -> Muon's ratios, in words.
    """
    measured = measured.assign(ends=measured.ratio_high.lt(float("inf")))
    plain = measured.loc[~measured.algorithm.isin(charts.VARIANTS), COLUMNS]
    parts = [charts.cut(rows, "ratio", 2)[0] for _, rows in plain.groupby("what", sort=False)]
    shown = pd.concat(parts, ignore_index=True).assign(what=lambda rows: rows.what.map(WORDS))
    order, networks = list(dict.fromkeys(plain.method)), list(dict.fromkeys(plain.network))
    scale = charts.log(14)
    axis = charts.fractions(labelOverlap="greedy", labelBound=True)
    x = alt.X("ratio:Q", title=OVER, scale=scale, axis=axis)
    y = alt.Y("method:N", title=None, sort=order, axis=charts.broken())
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
    low = alt.X("ratio_low:Q", scale=scale, title=OVER)
    bars, dots = charts.ranges(base, "ratio", x, low, tooltip, 50)
    hollow = base.mark_point(size=50, opacity=1).encode(x=x, tooltip=tooltip)
    filled = dots.transform_filter("datum.ends")
    words = [word for word in WORDS.values() if word in set(shown.what)]
    menu = charts.menu("what", words, shown.what.iloc[0], "show")
    drawn = alt.layer(charts.across(1, x=scale), charts.controlled([bars, hollow, filled], menu))
    title = alt.Title(alt.expr(f"{menu[0].name} + ', {OVER}'"), anchor="start")
    height = len(order) * max(30, ROW * len(networks))
    titles = {WORDS[key]: TITLES[key].format(ratios) for key, ratios in muon.items()}
    drawn = drawn.add_params(charts.title(titles, menu))
    return charts.sized(drawn, height).properties(title=title)
