"""Figures of a reader's own workload."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.wording import brief


def with_critical(points: pd.DataFrame, lines: pd.DataFrame, start: float) -> alt.LayerChart:
    """Steps to result against batch size, a line per sparsity, with a dashed line at each critical
    batch size.

    points: of `lib.analysis.scaling.label`, for every goal; lines: goal, sparsity, critical,
    critical_low and critical_high, those of curves whose critical batch size lies within the sizes
    measured; start: the goal shown first.
    """
    colour = charts.by_sparsity(sorted(points.sparsity.unique()))
    slider = charts.goal_slider(sorted(points.goal.unique()), start)
    figure = shared_figures.scaling_chart(points, colour, slider)
    if lines.empty:
        return figure
    about = lines.assign(
        batch_size=lines.critical,
        told=[brief(value) for value in lines.critical],
        interval=[between(*ends) for ends in zip(lines.critical_low, lines.critical_high)],
    )
    rules = (
        alt.Chart(about)
        .transform_filter(slider[1])
        .mark_rule(strokeDash=[6, 4], strokeWidth=2)
        .encode(
            x=alt.X("batch_size:Q"),
            color=colour,
            tooltip=[
                tips.SPARSITY,
                alt.Tooltip("told:N", title="critical batch size"),
                tips.INTERVAL,
            ],
        )
    )
    return alt.layer(figure, rules)


def between(low: float, high: float) -> str:
    """An interval to two digits; a dash where there is none."""
    return f"{brief(low)}–{brief(high)}" if low == low else "—"
