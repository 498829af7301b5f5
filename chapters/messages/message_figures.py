"""The figure of training with sparse messages."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.tips import tip
from lib.workloads import catalogue

# In the published figures; Rand-k without feedback, as there
METHODS = {
    "dense": charts.DENSE,
    "Top-k": charts.RED,
    "Gaussian-k": charts.GREEN,
    "Rand-k": charts.PURPLE,
}


def lines(shown: pd.DataFrame, density: float) -> pd.DataFrame:
    """Test error (mean over seeds) and epochs per network, method and budget, at one density and of
    dense messages.

    shown: of `message_results.best`.
    """
    sizes = shown.workload.map(lambda name: catalogue.workload(name).train_size)
    drawn = (shown.method == "dense") | (shown.density == density)
    rows = shown.assign(epochs=shown.examples / sizes)[drawn & (shown.budget >= 16)]
    found = rows.groupby(["network", "method", "budget"])
    return found.agg(epochs=("epochs", "first"), error=("test", "mean")).reset_index()


def errors(rows: pd.DataFrame, titles: dict[str, str]) -> alt.LayerChart:
    """Test error against epochs, a line a method, both axes logarithmic; a menu of networks.

    Args:
        rows: of `lines`.
        titles: of the figure, by network, in the order of the menu.
    """
    colours = {name: colour for name, colour in METHODS.items() if name in set(rows.method)}
    y = alt.Y("error:Q", title="test error", scale=charts.log(8, base=10))
    base = alt.Chart(rows[rows.method.isin(METHODS)]).encode(
        x=alt.X("epochs:Q", title="epochs", scale=charts.log(8)).axis(format="~g"),
        y=y.axis(format=".2~p", values=charts.DECADES),
        color=charts.by_name("method", colours, columns=2),
    )
    tooltip = [
        tip("method:N", "messages"),
        tips.NETWORK,
        tip("budget:Q", "steps", ","),
        tip("error:Q", "test error", ".2%"),
    ]
    networks = list(titles)
    menu = charts.menu("network", networks, networks[0], "network")
    chart = charts.controlled([charts.dotted(base, 30, tooltip=tooltip)], menu)
    return charts.sized(chart.add_params(charts.title(titles, menu)), 320)
