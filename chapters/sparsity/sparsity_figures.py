"""The figures of what sparse networks cost at every batch size."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, panels, tips
from lib.page.shared_figures import intervals
from lib.page.tips import tip

TICKS = {
    "batch_size": ("batch size (examples)", [4.0, 64.0, 1024.0]),
    "steps": ("steps to result (training steps)", [10.0, 100.0, 1000.0, 10_000.0]),
}


def grid(marks: pd.DataFrame, networks: list[str], methods: list[str]) -> alt.LayerChart:
    """Steps to result against batch size, a row of panels per network and a column per method.

    Args:
        marks, networks, methods: of `sparsity_tables.panels`.
    """
    layout = panels.layout(marks, networks, methods, *TICKS)
    tooltip = [
        tip("panel_row:N", "network"),
        tip("panel_column:N", "training method"),
        tips.SPARSITY,
        tip("batch_size:Q", "batch size", ",.0f"),
        tips.STEPS,
    ]
    colour = charts.by_sparsity(sorted(marks.sparsity.unique()))
    return panels.draw(marks, layout, TICKS, colour, ["sparsity:N"], tooltip)


def relative(rows: pd.DataFrame, *controls: tuple) -> alt.LayerChart:
    """Relative steps against batch size, a line per sparsity.

    Args:
        rows: of `sparsity_tables.relative_steps`.
    """
    pick, faded = charts.picked("sparsity")
    base = alt.Chart(rows.assign(interval=intervals(rows, "relative"))).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_sparsity(sorted(rows.sparsity.unique())),
        opacity=faded,
    )
    scale = charts.log(8)
    y = alt.Y(
        "relative:Q", title="steps over the dense network’s", scale=scale, axis=charts.fractions()
    )
    bars = base.transform_filter("isValid(datum.relative_low)")
    bars = bars.mark_rule(strokeWidth=1.5, strokeOpacity=0.8).add_params(pick)
    bars = bars.encode(y=alt.Y("relative_low:Q", scale=scale), y2="relative_high:Q")
    tooltip = [
        tips.SPARSITY,
        tips.BATCH_SIZE,
        tip("relative:Q", "steps over dense", ".2f"),
        tips.INTERVAL,
        tips.STEPS,
        tips.SEARCHES,
    ]
    lines = charts.dotted(base, 60, y=y, tooltip=tooltip)
    return charts.sized(charts.controlled([bars, lines], *controls), 320)
