"""Figures of training parts of a network: steps by the number of workers, and what other ways take
against the whole network.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.wording import span

COLOURS = (charts.DENSE, charts.ORANGE, charts.PURPLE, charts.TEAL, charts.RED)
WORDS = {"adds": "multiply-adds", "steps": "training steps", "sent": "numbers exchanged"}


def by_workers(curves: pd.DataFrame, start: float) -> alt.LayerChart:
    """Steps to the goal against the number of workers, a line per way of training, a slider over
    goals.

    curves: goal, workers, training, steps, low, high, met ("2 of 3"), all_met (bool); where it is
    not, the point is a triangle at the steps after which searches end.
    """
    x = alt.X("workers:O", title="workers, each with its own examples", axis=alt.Axis(labelAngle=0))
    scale = charts.log(10, base=10)
    y = alt.Y("steps:Q", title="training steps to the goal", scale=scale)
    y = y.axis(values=charts.DECADES)
    tooltip = tips.listed(
        {
            "training:N": "training",
            "workers:O": "workers",
            "steps:Q|,.0f": "steps to the goal, or at the end",
            "interval:N": "5–95 %",
            "met:N": "searches that meet the goal",
        }
    )
    base = _beside(curves, x, "training", COLOURS)
    met, missed = (base.transform_filter(f"{sign}datum.all_met") for sign in ("", "!"))
    triangles = missed.mark_point(shape="triangle-up", size=90, strokeWidth=2)
    layers = [*_dots(met, scale, y, tooltip), triangles.encode(y=y, tooltip=tooltip)]
    slider = charts.goal_slider(sorted(curves.goal.unique()), start)
    return charts.sized(charts.controlled(layers, slider), 300)


def over_whole(rows: pd.DataFrame, start: float, whole: str, what: str = "adds") -> alt.LayerChart:
    """What each way takes over training the whole network, against batch size; a slider over goals,
    and a menu.

    rows: goal, what (of WORDS), arm, batch_size, effect, low, high, met; those without an effect
    are left out.  whole: the network to which they are compared, in words; what: shown at first.
    """
    shown = rows.dropna(subset="effect")
    shown = shown.assign(what=shown.what.map(WORDS))
    scale = charts.log(12)
    x = alt.X("batch_size:O", title="batch size (examples)", axis=alt.Axis(labelAngle=0))
    base = _beside(shown, x, "arm", COLOURS[1:])
    axis = charts.fractions(values=[2.0**n for n in range(-6, 7)])
    y = alt.Y("effect:Q", title=None, scale=scale, axis=axis)
    tooltip = tips.listed(
        {
            "arm:N": "network",
            "batch_size:O": "batch size",
            "effect:Q|.2r": f"over {whole}",
            "interval:N": "5–95 %",
            "n:Q": "searches",
        }
    )
    layers = _dots(base, scale, y, tooltip)
    what = charts.menu("what", list(dict.fromkeys(shown.what)), WORDS[what], "compare")
    slider = charts.goal_slider(sorted(shown.goal.unique()), start)
    drawn = charts.controlled(layers, what, slider)
    title = charts.beside(f"what_chosen + ', over those of {whole}'")
    drawn = alt.layer(charts.across(1, y=scale), drawn, title)
    return charts.sized(drawn, 320)


def _beside(rows: pd.DataFrame, x: alt.X, field: str, colours: tuple[str, ...]) -> alt.Chart:
    """Ways side by side, each with a colour, and intervals in words."""
    names = list(rows[field].unique())
    ends = zip(rows.low, rows.high)
    shown = rows.assign(interval=list(map(span, ends)))
    scale = alt.Scale(domain=names, range=list(colours[: len(names)]))
    legend = alt.Legend(columns=1, labelLimit=300)  # two columns do not fit a phone
    colour = alt.Color(f"{field}:N", title=None, scale=scale, sort=names, legend=legend)
    offset = alt.XOffset(f"{field}:N", sort=names)
    return alt.Chart(shown).encode(x=x, xOffset=offset, color=colour)


def _dots(base: alt.Chart, scale: alt.Scale, y: alt.Y, tooltip: list) -> list[alt.Chart]:
    """A curve without its line."""
    bars, _, dots = charts.curve(base, y, scale, tooltip, 80)
    return [bars, dots]
