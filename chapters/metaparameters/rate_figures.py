"""Figures of how the best hyperparameters move with the batch size, and of what a rule that moves
them costs.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.page.multiples import LARGE, fan, panels
from lib.page.tips import tip

RULES = {
    "linear rule": charts.RED,
    "square-root rule": charts.ORANGE,
    "no change": charts.PURPLE,
}
OUTCOMES = {
    "reached the goal": charts.BLUE,
    "did not": charts.ORANGE,
    "diverged or died": charts.GUIDE,
}
KINDS = {"fixed steps": charts.BLUE, "fixed epochs": charts.RED}
LEGEND = "network"  # what every menu of workloads is called


def best_rates(rates: pd.DataFrame, slopes: pd.DataFrame, method: str) -> alt.FacetChart:
    """The best effective learning rate against batch size, a panel per network, with the line of
    its growth, the band of that growth's interval, and both rules from the smallest batch size.

    Args:
        rates: of `rate_rules.best_rates`, with network; one training method.
        slopes: network, method, effect, low and high: growth per doubling of the batch.
        method: that of the rates, as `slopes` names it.
    """
    if rates.empty:
        return charts.nothing("No records yet.")
    known = slopes[slopes.method == method].set_index("network")
    parts = [rates]
    for network, own in rates.groupby("network", sort=False):
        first, ends = own.iloc[0], own.batch_size.iloc[[0, -1]]
        for rule, power in (("linear", 1.0), ("square root", 0.5)):
            moved = first.rate * (ends / first.batch_size) ** power
            parts.append(pd.DataFrame({"batch_size": ends, "value": moved, "rule": rule}))
            parts[-1]["network"] = network
        if network in known.index:
            growth = np.log(known.loc[network, ["effect", "low", "high"]].astype(float))
            lines = fan(own.batch_size, np.log(own.rate), list(growth))
            lines[["middle", "low", "high"]] = np.exp(lines[["middle", "low", "high"]])
            parts.append(lines.assign(network=network))
    rows = pd.concat(parts).rename(columns={"network": "panel"})
    return panels(rows, _rates, "best effective learning rate against batch size", LARGE)


def _rates(base: alt.Chart) -> list[alt.Chart]:
    y = alt.Y("rate:Q", scale=charts.log(6, base=10))
    y = y.axis(values=[10.0**n for n in range(-6, 4)], format="~g")
    axes = {"x": charts.batch_axis([1, 8, 64, 512, 4096], None), "y": y}
    points = base.transform_filter("isValid(datum.rate)").encode(**axes)
    fitted = base.transform_filter("isValid(datum.middle)").encode(x="batch_size:Q")
    dash = alt.Scale(domain=["linear", "square root"], range=[[6, 4], [2, 3]])
    dashed = alt.StrokeDash("rule:N", title="rule", scale=dash)
    rules = base.transform_filter("isValid(datum.rule)").mark_line(color=charts.GUIDE, clip=True)
    told = tips.listed(
        {
            "batch_size:Q|,": "batch size",
            "rate:Q|.2g": "best effective learning rate",
            "searches:Q": "searches",
        }
    )
    return [
        fitted.mark_area(color=charts.BLUE, opacity=0.2).encode(y="low:Q", y2="high:Q"),
        fitted.mark_line(color=charts.BLUE, strokeWidth=1.5).encode(y="middle:Q"),
        rules.encode(x="batch_size:Q", y="value:Q", strokeDash=dashed),
        points.mark_rule(color=charts.BLUE).encode(y="low:Q", y2="high:Q"),
        points.mark_point(filled=True, size=30, opacity=1, color=charts.BLUE).encode(tooltip=told),
    ]


def rule_costs(costs: pd.DataFrame, first: str, most: float) -> alt.LayerChart:
    """Steps under each rule over the tuned ones, against batch size; a menu of networks.

    costs: a row per rule, batch size and network, with least, middle, most (steps; infinite:
    missed) and beyond (the middle over the tuned steps, retraining apart).  most: steps at which
    bars of trials that missed the goal end.
    """
    if costs.empty:
        return charts.nothing("No rule was retrained with these parameters.")
    per = costs.beyond / costs.middle
    known = costs.assign(low=costs.least * per, high=costs.most.clip(upper=most) * per)
    met = known[np.isfinite(known.middle) & np.isfinite(known.beyond)]
    if met.empty:
        return charts.nothing("No records yet.")
    top = met.beyond.max() * 1.5
    met = met.assign(high=met.high.clip(upper=top))
    named = [rule for rule in RULES if rule in set(known.rule)]
    missed = known[np.isinf(known.middle)][["network", "rule", "batch_size"]]
    places = missed.rule.map(named.index)
    missed = missed.assign(at=top * 1.2**places, told="missed the goal")
    scale = charts.log(domain=[min(0.5, met.low.min()), top * 1.2 ** len(named)])
    x, y = charts.batch_axis(costs.batch_size), alt.Y("beyond:Q", title="times the tuned steps")
    y = y.scale(scale).axis(charts.fractions())
    colour = charts.by_name("rule", {rule: RULES[rule] for rule in named})
    shown = met.drop(columns=["workload", "least", "most", "base"])
    base = alt.Chart(shown).encode(x=x, color=colour)
    told = [tip("rule:N", "rule"), tips.BATCH_SIZE]
    times = tip("over:Q", "times the tuned steps", ".2f")
    alone = tip("beyond:Q", "the same, without the luck of the winner", ".2f")
    tooltip = [*told, tip("middle:Q", "median steps", ",.0f"), times, alone]
    layers = charts.curve(base, y, scale, tooltip)
    crosses = alt.Chart(missed).mark_point(shape="cross", filled=True, size=90, angle=45)
    told = [*told, tip("told:N", "outcome")]
    crosses = crosses.encode(x=x, y=alt.Y("at:Q", scale=scale), color=colour, tooltip=told)
    network = charts.menu("network", list(costs.network.unique()), first, LEGEND)
    shown = charts.controlled([*layers, crosses], network)
    return charts.sized(alt.layer(charts.across(1, 2, y=scale), shown), 340)


def growths(rows: pd.DataFrame) -> alt.LayerChart:
    """The best rate's growth per doubling of the batch, with its interval, a line per network and
    method.

    rows: network, method, effect, low, high, n (searches).  Guide lines stand where the rules lie.
    """
    ends = {"low": "growth_low", "high": "growth_high"}
    shown = rows.rename(columns={"network": "row", "effect": "growth", **ends})
    shades = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE, charts.RED)
    colour = charts.by_name("method", dict(zip(dict.fromkeys(shown.method), shades)))
    about = {"row:N": "network", "method:N": "method", "growth:Q|.3r": "growth per doubling"}
    tooltip = tips.listed({**about, "range:N": "90 % interval", "n:Q": "searches"})
    return shared_figures.range_chart(
        shown.sort_values("growth", ascending=False),
        "growth",
        "growth of the best rate per doubling",
        colour,
        tooltip=tooltip,
        lines=(2**0.5, 2),
        beyond=16,
    )


def good_shares(shares: pd.DataFrame, first: str) -> alt.LayerChart:
    """Share of trials that reach the goal within fixed steps, and epochs, against batch size; a
    menu of networks.

    shares: a row per network, kind and batch size, with share, low, high (90 %) and trials.
    """
    if shares.empty:
        return charts.nothing("No records yet.")
    base = alt.Chart(shares).encode(
        x=charts.batch_axis(shares.batch_size), color=charts.by_name("kind", KINDS, 2)
    )
    tooltip = tips.listed(
        {
            "kind:N": "budget",
            "batch_size:Q|,": "batch size",
            "share:Q|.0%": "reach the goal",
            "low:Q|.0%": "from (90 %)",
            "high:Q|.0%": "to",
            "trials:Q": "trials",
        }
    )
    y = alt.Y("share:Q", title="trials that reach the goal").axis(format="%")
    layers = charts.curve(base, y, alt.Scale(), tooltip)
    network = charts.menu("network", list(shares.network.unique()), first, LEGEND)
    return charts.sized(charts.controlled(layers, network), 280)


def outcomes(rows: pd.DataFrame) -> alt.LayerChart:
    """All trials by learning rate and 1 - momentum, coloured by what became of them; a menu of
    budgets, a slider of sizes.

    rows: a trial and kind of budget each, with batch_size, learning_rate, slowness (1 - momentum),
    outcome, steps (to the goal), within (the budget's) and kind.  The largest size is shown first.
    """
    if rows.empty:
        return charts.nothing("No records yet.")
    steps = rows.steps.astype(float)
    told = steps.map("{:,.0f}".format).where(np.isfinite(steps), "not reached")
    shown = rows.drop(columns=["steps"]).assign(told=told, momentum=1 - rows.slowness)
    sizes = sorted(map(int, rows.batch_size.unique()))
    kind = charts.menu("kind", list(KINDS), "fixed steps", "budget")
    size = charts.slider(
        "batch_size", sizes, sizes[-1], "batch size", "'batch size ' + format(value, ',')"
    )
    rate = alt.X("learning_rate:Q", title="learning rate")
    names = list(OUTCOMES)
    shapes = alt.Scale(domain=names, range=["circle", "square", "cross"])
    points = alt.Chart(shown).mark_point(filled=True, size=70, opacity=0.85)
    points = points.encode(
        x=rate.scale(type="log", nice=True),
        y=alt.Y("slowness:Q", title="1 − momentum", scale=charts.log(10, base=10)),
        color=charts.by_name("outcome", OUTCOMES, 2),
        shape=alt.Shape("outcome:N", title=None, scale=shapes),
        tooltip=tips.listed(
            {
                "outcome:N": "outcome",
                "learning_rate:Q|.2g": "learning rate",
                "momentum:Q|.4g": "momentum",
                "told:N": "steps to the goal",
                "within:Q|,": "budget in steps",
            }
        ),
    )
    return charts.sized(charts.controlled([points], kind, size), 360)
