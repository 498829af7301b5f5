"""The figures of the page on smoothness and the geometry of paths."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures, tips

PATH = [
    tips.SPARSITY,
    tips.BATCH_SIZE,
    alt.Tooltip("trial:N", title="trial"),
]


def roughness(ratios: pd.DataFrame, start: str) -> alt.LayerChart:
    """What was measured along sparse paths over dense ones, a row per network and method, a circle
    per trial; a menu of measures.

    ratios: row, measure (in words), sparsity, batch_size, trial, ratio; rows in the order in which
    they are drawn.
    """
    if ratios.empty:
        return charts.nothing("No sparse path was followed beside a dense one.")
    order = list(dict.fromkeys(ratios.row))
    scale = alt.Scale(type="log", base=2, nice=False, padding=12)
    base = alt.Chart(ratios).encode(
        y=alt.Y("row:N", title=None, sort=order, axis=charts.broken()),
        yOffset="sparsity:O",
        color=charts.by_sparsity(
            sorted(ratios.sparsity.unique()), legend=alt.Legend(columns=3, titleOrient="top")
        ),
    )
    x = alt.X(
        "ratio:Q", title="sparse over dense", scale=scale, axis=charts.fractions(titleAnchor="end")
    )
    network = alt.Tooltip("row:N", title="network and method")
    tip = [network, *PATH, alt.Tooltip("ratio:Q", title="sparse over dense", format=".2f")]
    dots = base.mark_point(size=50, strokeWidth=1.6, opacity=0.8).encode(x=x, tooltip=tip)
    middle = alt.X("median(ratio):Q", scale=scale)
    ticks = base.mark_tick(thickness=3, size=13).encode(
        x=middle, tooltip=[network, tips.SPARSITY, _median()]
    )
    menu = charts.menu("measure", list(dict.fromkeys(ratios.measure)), start, "show")
    chart = alt.layer(charts.across(1, x=scale), charts.controlled([dots, ticks], menu))
    return chart.properties(width="container", height=54 * len(order))


def _median() -> alt.Tooltip:
    return alt.Tooltip("median(ratio):Q", title="median, sparse over dense", format=".2f")


def along(paths: pd.DataFrame, start: str) -> alt.LayerChart:
    """The Lipschitz constant against the training step, a line per followed trial; a menu of
    networks.

    paths: of `lib.probes.tracks`, with curve.
    """
    x = _logarithmic(alt.X("step:Q", title="training step"))
    drawn = paths[["curve", "sparsity", "batch_size", "trial", "step", "lipschitz"]]
    lines = alt.Chart(drawn).mark_line(
        strokeWidth=1.6, opacity=0.8, point=alt.OverlayMarkDef(size=22)
    )
    lines = lines.encode(x=x, detail=["trial:N", "batch_size:N"])
    return _of_one(lines, paths, start, alt.Tooltip("step:Q", title="training step", format=","))


def rates(paths: pd.DataFrame, start: str) -> alt.LayerChart:
    """The Lipschitz constant along a path against the effective learning rate, a network and method
    at a time.

    paths: of `followed_paths.at_rates`, with curve.
    """
    title = "learning rate / (1 − momentum)"
    x = _logarithmic(alt.X("rate:Q", title=title))
    dots = alt.Chart(paths).mark_point(size=70, strokeWidth=2).encode(x=x)
    return _of_one(dots, paths, start, alt.Tooltip("rate:Q", title=title, format=".3g"))


def _logarithmic(axis: alt.X | alt.Y) -> alt.X | alt.Y:
    return axis.scale(type="log", nice=False, padding=12).axis(values=charts.DECADES)


def _of_one(
    marks: alt.Chart, paths: pd.DataFrame, start: str, across: alt.Tooltip
) -> alt.LayerChart:
    """Marks at the Lipschitz constants of paths, a network and method at a time."""
    names = sorted(paths.curve.unique())
    drawn = marks.encode(
        y=_logarithmic(alt.Y("lipschitz:Q", title="Lipschitz constant of the gradient")),
        color=charts.by_sparsity(sorted(paths.sparsity.unique())),
        tooltip=[
            *PATH,
            across,
            alt.Tooltip("lipschitz:Q", title="Lipschitz constant", format=".3g"),
        ],
    )
    menu = charts.menu("curve", names, start if start in names else names[0], "trained")
    return charts.controlled([drawn], menu).properties(width="container", height=340)


def explained(rows: pd.DataFrame) -> alt.LayerChart:
    """The fitted c1 of sparse curves over the dense one's, and what the theory's factors make of
    it.

    rows: as of `shared_figures.range_chart`.
    """
    colour = charts.by_sparsity(sorted(rows.sparsity.unique()))
    tip = [
        alt.Tooltip("row:N", title="ratio of"),
        tips.SPARSITY,
        alt.Tooltip("ratio:Q", title="sparse over dense", format=".2f"),
        alt.Tooltip("range:N", title="range"),
    ]
    return shared_figures.range_chart(
        rows, "ratio", "sparse over dense", colour, tooltip=tip, one=True
    )
