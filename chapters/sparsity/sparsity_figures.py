"""The figure of what sparse networks cost at every batch size."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import STEPS, panels, small_curve
from lib.page.tips import tip


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
        return [*small_curve(points, tooltip), diamonds.encode(tooltip=tooltip)]

    columns = ["panel", "sparsity", "batch_size", "steps", "kind"]
    return panels(marks[columns], layers, f"{STEPS} against batch size", most=3)
