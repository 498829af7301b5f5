"""The figure of what sparse networks cost at every batch size."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import intervals
from lib.page.tips import tip


def relative(rows: pd.DataFrame, *controls: tuple) -> alt.LayerChart:
    """Relative steps against batch size, a line per sparsity.

    Args:
        rows: of `lib.analysis.scaling.relative`.
    """
    pick, faded = charts.picked("sparsity")
    base = alt.Chart(rows.assign(interval=intervals(rows, "relative"))).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_sparsity(sorted(rows.sparsity.unique())),
        opacity=faded,
    )
    scale = charts.log(8)
    y = alt.Y("relative:Q", title="relative steps", scale=scale, axis=charts.fractions())
    bars = base.transform_filter("isValid(datum.relative_low)")
    bars = bars.mark_rule(strokeWidth=1.5, strokeOpacity=0.45).add_params(pick)
    bars = bars.encode(y=alt.Y("relative_low:Q", scale=scale), y2="relative_high:Q")
    tooltip = [
        tips.SPARSITY,
        tips.BATCH_SIZE,
        tip("relative:Q", "relative steps", ".2f"),
        tips.INTERVAL,
        tips.STEPS,
        tips.SEARCHES,
    ]
    lines = charts.dotted(base, 60, y=y, tooltip=tooltip)
    return charts.sized(charts.controlled([bars, lines], *controls), 320)
