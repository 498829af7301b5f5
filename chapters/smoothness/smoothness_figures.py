"""The figures of the page on smoothness and the geometry of paths."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures, tips
from lib.page.multiples import panels, small_curve
from lib.page.tips import tip

PATH = [tips.SPARSITY, tips.BATCH_SIZE, tip("trial:N", "trial")]


def roughness(ratios: pd.DataFrame) -> alt.LayerChart:
    """The Lipschitz constant along sparse paths over dense ones, a row per network and method, a
    circle per trial.

    Args:
        ratios: row, sparsity, batch_size, trial, ratio; rows in the order in which they are drawn.
    """
    order = list(dict.fromkeys(ratios.row))
    scale = charts.log(12)
    base = alt.Chart(ratios).encode(
        y=alt.Y("row:N", title=None, sort=order, axis=charts.broken()),
        yOffset="sparsity:O",
        color=charts.by_sparsity(ratios.sparsity.unique(), columns=3, titleOrient="top"),
    )
    x = alt.X("ratio:Q", title="Lipschitz constant, sparse over dense", scale=scale)
    x = x.axis(charts.fractions(titleAnchor="end"))
    network = tip("row:N", "network and method")
    each = [network, *PATH, tip("ratio:Q", "sparse over dense", ".2f")]
    median = tip("median(ratio):Q", "median, sparse over dense", ".2f")
    dots = base.mark_point(size=50, strokeWidth=1.6, opacity=0.8).encode(x=x, tooltip=each)
    ticks = base.mark_tick(thickness=3, size=13)
    middle = alt.X("median(ratio):Q", scale=scale)
    ticks = ticks.encode(x=middle, tooltip=[network, tips.SPARSITY, median])
    chart = alt.layer(charts.across(1, x=scale), dots, ticks)
    return charts.sized(chart, 54 * len(order))


# Closer than powers of ten, since rates of winners span one
TICKS = [digit * 10.0**n for n in range(-4, 5) for digit in (1, 1.5, 2, 3, 5, 7)]


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


def rates(paths: pd.DataFrame, start: str) -> alt.LayerChart:
    """The Lipschitz constant along a path against the effective learning rate, a network and method
    at a time.

    Args:
        paths: of `followed_paths.at_rates`, with curve.
        start: the curve shown at first.
    """
    title = "learning rate / (1 − momentum)"
    names = sorted(paths.curve.unique())
    constant = tip("lipschitz:Q", "Lipschitz constant", ".3g")
    y = alt.Y("lipschitz:Q", title="Lipschitz constant of the gradient")
    scale = charts.log(12, base=alt.Undefined)
    x, y = (axis.scale(scale).axis(values=TICKS) for axis in (alt.X("rate:Q", title=title), y))
    drawn = (
        alt.Chart(paths)
        .mark_point(size=70, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=charts.by_sparsity(sorted(paths.sparsity.unique())),
            tooltip=[*PATH, tip("rate:Q", title, ".3g"), constant],
        )
    )
    menu = charts.menu("curve", names, start if start in names else names[0], "trained")
    return charts.sized(charts.controlled([drawn], menu), 340)


def explained(rows: pd.DataFrame) -> alt.LayerChart:
    """The fitted c1 of sparse curves over the dense one's, below what the theory's factors predict
    for it.

    Args:
        rows: as for `shared_figures.ratios`, with sparsity.
    """
    levels = dict(sorted(zip(rows.sparsity, rows.label)))
    colours = {label: charts.sparsity_colour(level) for level, label in levels.items()}
    return shared_figures.ratios(rows, "sparse over dense", charts.by_name("label", colours))
