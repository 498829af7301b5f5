"""Figures of how the best hyperparameters move with the batch size, and of those that work."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.metaparameters.fixed_budgets import EPOCHS, STEPS
from lib.page import charts, shared_figures, tips
from lib.page.shared_figures import LARGE, panels

RULES = {"linear": 1.0, "square root": 0.5}  # powers of the batch size
OUTCOMES = {
    "reached the goal": charts.BLUE,
    "did not": charts.ORANGE,
    "diverged or died": charts.GUIDE,
}


def best_rates(rates: pd.DataFrame) -> alt.FacetChart:
    """The best effective learning rate (`findings.best_rates`) against batch size, a panel per
    network, with both rules from the smallest batch size.
    """
    first = rates.groupby("network", sort=False)[["batch_size", "rate"]].transform("first")
    ratio = rates.batch_size / first.batch_size
    rows = rates.rename(columns={"network": "panel"})
    for rule, power in RULES.items():
        rows[rule] = first.rate * ratio**power
    return panels(rows, _rates, "best effective learning rate against batch size", LARGE)


def _rates(base: alt.Chart) -> list[alt.Chart]:
    y = alt.Y("rate:Q", scale=charts.log(6, base=10))
    y = y.axis(values=[10.0**n for n in range(-6, 4)], format="~g")
    points = base.encode(x=charts.batch_axis([1, 8, 64, 512, 4096], None), y=y)
    dash = alt.Scale(domain=list(RULES), range=[[6, 4], [2, 3]])
    dashed = alt.StrokeDash("rule:N", title="rule", scale=dash)
    rules = points.transform_fold(list(RULES), as_=["rule", "ruled"])
    told = tips.listed(
        {
            "batch_size:Q|,": "batch size",
            "rate:Q|.2g": "best effective learning rate",
            "searches:Q": "searches",
        }
    )
    return [
        rules.mark_line(color=charts.GUIDE, clip=True).encode(y="ruled:Q", strokeDash=dashed),
        points.mark_rule(color=charts.BLUE).encode(y="low:Q", y2="high:Q"),
        points.mark_point(filled=True, size=30, opacity=1, color=charts.BLUE).encode(
            tooltip=told
        ),
    ]


def growths(rows: pd.DataFrame) -> alt.LayerChart:
    """The best rate's growth per doubling of the batch (`findings.growths`), with its interval, a
    line per network and method.  Guide lines stand where the rules lie.
    """
    colours = {method: charts.method_colour(method) for method in dict.fromkeys(rows.method)}
    colour = charts.by_name("method", colours)
    about = {"row:N": "network", "method:N": "method", "growth:Q|.3r": "growth per doubling"}
    tooltip = tips.listed({**about, "range:N": "90 % interval", "n:Q": "searches"})
    return shared_figures.range_chart(
        rows.sort_values("growth", ascending=False),
        "growth",
        "growth of the best rate per doubling",
        colour,
        tooltip=tooltip,
        lines=(2**0.5, 2),
        beyond=16,
    )


def outcomes(rows: pd.DataFrame) -> alt.LayerChart:
    """All trials of `fixed_budgets.maps` by learning rate and 1 - momentum, coloured by what became
    of them; a menu of budgets, a slider of sizes.
    """
    if rows.empty:
        return charts.nothing("No records yet.")
    shown = rows.assign(momentum=1 - rows.slowness)
    sizes = sorted(map(int, rows.batch_size.unique()))
    kind = charts.menu("kind", [STEPS, EPOCHS], STEPS, "budget")
    size = charts.slider(
        "batch_size", sizes, sizes[-1], "batch size", "'batch size ' + format(value, ',')"
    )
    shapes = alt.Scale(domain=list(OUTCOMES), range=["circle", "square", "cross"])
    points = alt.Chart(shown).mark_point(filled=True, size=70, opacity=0.85)
    points = points.encode(
        x=alt.X("learning_rate:Q", title="learning rate").scale(type="log", nice=True),
        y=alt.Y("slowness:Q", title="1 − momentum", scale=charts.log(10, base=10)),
        color=charts.by_name("outcome", OUTCOMES, 2),
        shape=alt.Shape("outcome:N", title=None, scale=shapes),
        tooltip=tips.listed(
            {
                "outcome:N": "outcome",
                "learning_rate:Q|.2g": "learning rate",
                "momentum:Q|.4g": "momentum",
            }
        ),
    )
    return charts.sized(charts.controlled([points], kind, size), 360)
