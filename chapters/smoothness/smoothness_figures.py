"""The figure of the page on smoothness."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import panels, small_curve
from lib.page.tips import tip


def along(paths: pd.DataFrame) -> alt.FacetChart:
    """The Lipschitz constant against the training step, a panel per network and method.

    Args:
        paths: of `findings.panels`.
    """
    ticks = {"values": [10.0**n for n in range(-3, 6)], "format": "~s"}
    x = alt.X("step:Q", scale=charts.log(4, base=10)).axis(**ticks)
    y = alt.Y("lipschitz:Q", scale=charts.log(4, base=10)).axis(**ticks)
    axes = {"x": x, "y": y}
    colour = charts.by_sparsity(sorted(paths.sparsity.unique()))
    tooltip = [
        tips.SPARSITY,
        tips.BATCH_SIZE,
        tip("step:Q", "training step", ",.0f"),
        tip("lipschitz:Q", "Lipschitz constant", ".3g"),
    ]

    def layers(base: alt.Chart) -> list[alt.Chart]:
        lines = base.encode(**axes, color=colour, detail="trial:N")
        return small_curve(lines, tooltip, ())

    columns = ["panel", "sparsity", "trial", "batch_size", "step", "lipschitz"]
    title = "local Lipschitz constant of the gradient against training step"
    return panels(paths[columns], layers, title, most=3)
