"""Figures of the errors that each batch size reaches within a budget."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.accuracy import fixed_budgets
from chapters.accuracy.claims import with_enough_steps
from lib.page import charts, tips
from lib.workloads import catalogue

COLOURS = [charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE]
PARTS = {"validation": "lowest validation error", "test": "test error of that trial"}


def errors(best: pd.DataFrame, column: str, title: str, caption: str) -> alt.LayerChart:
    """Validation and test errors of the chosen trials against batch size; a slider of budgets that
    opens at the largest.

    best: a row per batch size and budget (column), with validation, low, high (5 and 95 % of half
    as large a search), test, noise (the test error's standard error), trials and learning_rate.
    title: the slider's name.  caption: a Vega expression in which `value` is the budget chosen.
    Errors of zero are drawn at half the least that is not zero.
    """
    if best.empty:
        return charts.nothing("No records yet.")
    rows, budgets = _both(best), sorted(best[column].unique().tolist())
    least = rows.error[rows.error > 0].min() / 2
    rows = rows.assign(at=rows.error.clip(lower=least), lower=rows.lower.clip(lower=least))
    rows = rows.assign(upper=rows.upper.clip(lower=least, upper=1))
    kept = [
        "part",
        "batch_size",
        column,
        "error",
        "at",
        "lower",
        "upper",
        "trials",
        "learning_rate",
    ]
    scale = alt.Scale(type="log", domain=[least, rows.upper.max()], nice=False, padding=8)
    pick, faded = charts.picked("part")
    shades = alt.Scale(domain=list(PARTS.values()), range=[charts.BLUE, charts.ORANGE])
    base = alt.Chart(rows[kept]).encode(
        x=charts.batch_axis(best.batch_size),
        # two columns do not fit a phone
        color=alt.Color("part:N", title=None, sort=None, scale=shades).legend(columns=1),
        opacity=faded,
    )
    bars = (
        base.mark_rule(strokeWidth=2)
        .encode(y=alt.Y("lower:Q", scale=scale), y2="upper:Q")
        .add_params(pick)
    )
    tooltip = [
        alt.Tooltip("part:N", title="shown"),
        tips.BATCH_SIZE,
        alt.Tooltip("error:Q", title="error", format=".2%"),
        alt.Tooltip("lower:Q", title="bar from", format=".2%"),
        alt.Tooltip("upper:Q", title="bar to", format=".2%"),
        alt.Tooltip("trials:Q", title="feasible trials"),
        alt.Tooltip("learning_rate:Q", title="learning rate", format=".2g"),
    ]
    line = base.mark_line(point=alt.OverlayMarkDef(size=55)).encode(
        y=alt.Y("at:Q", title="error", scale=scale).axis(format=".2~%", values=charts.DECADES),
        tooltip=tooltip,
    )
    control = charts.slider(column, budgets, budgets[-1], title, caption)
    return charts.controlled([bars, line], control).properties(width="container", height=300)


def settled() -> alt.LayerChart:
    """Test error against batch size after budgets of their own, a line per network; bars where
    there are several searches.
    """
    several, single = with_enough_steps()
    once = single[~single.workload.isin(several.workload)]
    ends = pd.concat([several, once]).query("label_smoothing == 0")
    sizes = ends.groupby("workload").batch_size.transform("nunique")
    ends = ends[sizes > 2]  # fewer tell no trend
    titles = [catalogue.workload(name).title for name in ends.workload]
    rows = fixed_budgets.means(ends.assign(network=titles))
    if rows.empty:
        return charts.nothing("No records yet.")
    names = list(rows.network.unique())
    colour = alt.Color(
        "network:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=COLOURS[: len(names)]),
    )
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size), color=colour.legend(columns=1)
    )
    tooltip = [
        tips.NETWORK,
        tips.BATCH_SIZE,
        alt.Tooltip("test:Q", title="test error", format=".2%"),
        alt.Tooltip("low:Q", title="bar from", format=".2%"),
        alt.Tooltip("high:Q", title="bar to", format=".2%"),
        alt.Tooltip("n:Q", title="searches"),
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q")
    y = alt.Y("test:Q", title="test error").axis(format="%")
    line = base.mark_line(point=alt.OverlayMarkDef(size=55)).encode(y=y, tooltip=tooltip)
    return alt.layer(bars, line).properties(width="container", height=300)


def _both(best: pd.DataFrame) -> pd.DataFrame:
    """A row per batch size, budget and part: error with the ends of its bar."""
    low = best.assign(
        part=PARTS["validation"], error=best.validation, lower=best.low, upper=best.high
    )
    test = best.assign(
        part=PARTS["test"],
        error=best.test,
        lower=best.test - best.noise,
        upper=best.test + best.noise,
    )
    return pd.concat([low, test], ignore_index=True)
