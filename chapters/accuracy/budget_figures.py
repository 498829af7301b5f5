"""Figures of the errors that each batch size reaches within a budget."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.accuracy import fixed_budgets
from lib.page import charts, tips
from lib.page.shared_figures import panels
from lib.page.tips import tip
from lib.workloads import catalogue

MARKED = [digit * 10.0**n for n in range(-3, 4) for digit in (1, 3)]
SHARE = alt.Axis(format=".2~%")


def by_budget(ladders: dict[str, tuple[pd.DataFrame, pd.DataFrame]]) -> alt.FacetChart:
    """Best validation error against batch size, one line per budget and one row per network:
    budgets of steps on the left, of epochs on the right.

    Args:
        ladders: from `fixed_budgets.ladders`, by workload. Every second budget is drawn. Errors of
            zero are drawn as half a validation example.
    """
    parts = []
    for name, (steps, epochs) in ladders.items():
        work = catalogue.workload(name)
        least = fixed_budgets.validation_example(name) / 2
        budgets = {"steps": steps.budget, "epochs": epochs.examples / work.train_size}
        for best, (kind, budget) in zip((steps, epochs), budgets.items()):
            errors = best[["batch_size", "validation"]].assign(
                within=budget,
                at=best.validation.clip(lower=least),
                panel=f"{work.title}: {kind}",
            )
            parts.append(errors[budget.isin(sorted(budget.unique())[::-2])])
    rows = pd.concat(parts)
    if rows.empty:
        return charts.nothing("No records yet.")
    rank = rows.groupby("panel").within.rank("dense", ascending=False)
    title = "best validation error against batch size"
    return panels(rows.assign(rank=rank), _budgets, title, most=2)


def _budgets(base: alt.Chart) -> list[alt.Chart]:
    up = charts.log(6, base=10)
    shades = alt.Scale(domain=[1, 5], range=[charts.BLUE, charts.ORANGE])
    lines = base.encode(
        color=alt.Color("rank:Q", scale=shades, legend=None),
        detail="within:Q",
        x=charts.batch_axis([1, 4, 16, 64, 256, 1024], None),
        y=alt.Y("at:Q", scale=up, axis=alt.Axis(format=".2~%", values=MARKED)),
    )
    tooltip = [
        tips.BATCH_SIZE,
        tip("within:Q", "budget", ",.3~r"),
        tip("validation:Q", "best validation error", ".2%"),
    ]
    points = lines.mark_point(filled=True, size=22, opacity=1, tooltip=True)
    return [lines.mark_line(strokeWidth=1.8), points.encode(tooltip=tooltip)]


def settled(ends: pd.DataFrame) -> alt.FacetChart:
    """Test error against batch size after each size's longest budget, with the fitted line and the
    band of its slope's interval, one panel per network.

    Args:
        ends: from `fixed_budgets.longest`, without label smoothing.
    """
    parts, slopes = [], fixed_budgets.risen(ends)
    for name, searches in ends.groupby("workload", sort=False):
        means = fixed_budgets.means(searches)
        fan = _fan(means, list(slopes[name].row(log=False).values()))
        parts.append(pd.concat([means, fan]).assign(panel=catalogue.workload(name).title))
    title = "test error against batch size"
    return panels(pd.concat(parts), _settled, title, height=150, most=2)


def _fan(means: pd.DataFrame, slopes: list[float]) -> pd.DataFrame:
    """Ends, at the smallest and largest batch size, of the lines through the centre of the means
    with these slopes per doubling (middle, low, high).
    """
    places = np.log2(means.batch_size)
    ends = np.array([places.min(), places.max()])
    lines = means.test.mean() + np.outer(ends - places.mean(), slopes)
    return pd.DataFrame(lines, columns=["middle", "low", "high"]).assign(batch_size=2**ends)


def _settled(base: alt.Chart) -> list[alt.Chart]:
    y = alt.Y("test:Q", scale=alt.Scale(zero=True), axis=SHARE)
    plain = base.encode(x=charts.batch_axis([4, 16, 64, 256, 1024], None), y=y)
    tooltip = [
        tips.BATCH_SIZE,
        tip("test:Q", "test error", ".2%"),
        tip("n:Q", "searches"),
    ]
    fitted = base.transform_filter("isValid(datum.middle)").encode(x="batch_size:Q")
    points = plain.transform_filter("isValid(datum.test)")
    marks = points.mark_point(filled=True, size=50, opacity=1, color=charts.BLUE)
    return [
        fitted.mark_area(color=charts.GUIDE, opacity=0.25).encode(y="low:Q", y2="high:Q"),
        fitted.mark_line(color=charts.GUIDE).encode(y="middle:Q"),
        points.mark_rule(color=charts.BLUE, strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        marks.encode(tooltip=tooltip),
    ]
