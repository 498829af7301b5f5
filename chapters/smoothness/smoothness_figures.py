"""The figures of the page on smoothness and paths."""

from __future__ import annotations

import altair as alt
import pandas as pd

from chapters.smoothness import path_geometry
from lib.page import charts, tips
from lib.page.shared_figures import panels, small_curve
from lib.page.tips import tip
from lib.wording import span

COLOURS = (charts.BLUE, charts.ORANGE, charts.TEAL, charts.PURPLE, charts.RED)
KINDS = dict(zip(path_geometry.KINDS.values(), COLOURS))


def along(paths: pd.DataFrame) -> alt.FacetChart:
    """The Lipschitz constant against the training step, one panel per network and method.

    Args:
        paths: from `findings.panels`.
    """
    axis = alt.Axis(values=[10.0**n for n in range(-3, 6)], format="~s")
    options = {"scale": charts.log(4, base=10), "axis": axis}
    axes = {"x": alt.X("step:Q", **options), "y": alt.Y("lipschitz:Q", **options)}
    colour = charts.by_sparsity(sorted(paths.sparsity.unique()))
    tooltip = [
        tips.SPARSITY,
        tips.BATCH_SIZE,
        tip("step:Q", "training step", ",.0f"),
        tip("lipschitz:Q", "Lipschitz constant", ".3g"),
    ]

    def layers(base: alt.Chart) -> list[alt.Chart]:
        lines = base.encode(**axes, color=colour, detail="trial:N")
        return small_curve(lines, tooltip)

    columns = ["panel", "sparsity", "trial", "batch_size", "step", "lipschitz"]
    title = "local Lipschitz constant of the gradient against training step"
    return panels(paths[columns], layers, title, most=3)


def cosines(rows: pd.DataFrame) -> alt.LayerChart:
    """Cosines against batch size, one line per kind with its interval; a menu of curves.

    rows: curve and the columns of `path_geometry.cosines`.
    """
    rows = rows[rows.cosine > 0]  # A logarithm has no place for less
    least = rows.groupby("curve").cosine.transform("min") / 1.6
    ends = rows[["low", "high"]]
    interval = list(map(span, ends.round(3).to_numpy()))
    shown = rows.assign(interval=interval, **ends.clip(lower=least, axis=0))
    scale = charts.log(12)
    axis = alt.Axis(values=[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], format="~r")
    y = alt.Y("cosine:Q", title="cosine with the direction to the end", scale=scale, axis=axis)
    colour = charts.by_name("kind", KINDS, labelLimit=300)
    base = alt.Chart(shown).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    tooltip = [
        tip("kind:N", "gradients"),
        tips.BATCH_SIZE,
        tip("cosine:Q", "mean cosine", ".3f"),
        tips.INTERVAL,
        tip("searches:Q", "searches"),
    ]
    layers = charts.curve(base, y, scale, tooltip)
    names = sorted(set(rows.curve))
    menu = charts.menu("curve", names, names[0], "trained")
    return charts.sized(charts.controlled(layers, menu), 330)
