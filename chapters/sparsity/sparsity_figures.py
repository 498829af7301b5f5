"""The figures of what sparse networks cost at every batch size."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import STEPS, panels, small_curve
from lib.page.tips import tip
from lib.wording import span


def grid(marks: pd.DataFrame) -> alt.FacetChart:
    """Steps to result against batch size, a panel per network and method.

    Args:
        marks: of `findings.panels`.
    """
    y = alt.Y("steps:Q", scale=charts.log(4, base=10))
    y = y.axis(values=[10.0**n for n in range(6)], format="~s")
    axes = {"x": charts.batch_axis([1, 8, 64, 512, 4096], None), "y": y}
    colour = charts.by_sparsity(sorted(marks.sparsity.unique()))
    tooltip = [tips.SPARSITY, tip("batch_size:Q", "batch size", ",.0f"), tips.STEPS]

    def layers(base: alt.Chart) -> list[alt.Chart]:
        base = base.encode(**axes, color=colour)
        points = base.transform_filter("datum.kind === 'point'")
        bends = base.transform_filter("datum.kind === 'mark'")
        diamonds = bends.mark_point(shape="diamond", size=90, strokeWidth=2)
        return [*small_curve(points, tooltip, ()), diamonds.encode(tooltip=tooltip)]

    columns = ["panel", "sparsity", "batch_size", "steps", "kind"]
    return panels(marks[columns], layers, f"{STEPS} against batch size", most=3)


def relative(rows: pd.DataFrame, start: str) -> alt.LayerChart:
    """Relative steps against batch size, a menu of curves, a line per sparsity.

    Args:
        rows: of `findings.relative_steps`.
        start: the curve shown at first.
    """
    if rows.empty:
        return charts.nothing("No network has both a dense and a pruned curve yet.")
    pick, faded = charts.picked("sparsity")
    ends = map(span, zip(rows.relative_low, rows.relative_high))
    base = alt.Chart(rows.assign(interval=list(ends))).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_sparsity(sorted(rows.sparsity.unique())),
        opacity=faded,
    )
    scale = charts.log(8)
    title = "steps over the dense network’s"
    y = alt.Y("relative:Q", title=title, scale=scale, axis=charts.fractions())
    bars = base.mark_rule(strokeWidth=1.5, strokeOpacity=0.8).add_params(pick)
    bars = bars.encode(y=alt.Y("relative_low:Q", scale=scale), y2="relative_high:Q")
    over = tip("relative:Q", "steps over dense", ".2f")
    tooltip = [tips.SPARSITY, tips.BATCH_SIZE, over, tips.INTERVAL, tips.SEARCHES]
    lines = charts.dotted(base, 60, y=y, tooltip=tooltip)
    menu = charts.menu("curve", sorted(rows.curve.unique()), start, "network")
    return charts.sized(charts.controlled([bars, lines], menu), 320)
