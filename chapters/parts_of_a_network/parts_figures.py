"""Figures of training parts of a network: steps by the number of workers, and what other ways take
against the whole network.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts
from lib.wording import brief, span

COLOURS = (charts.DENSE, charts.ORANGE, charts.PURPLE, charts.TEAL, charts.RED)
ARMS = (charts.ORANGE, charts.PURPLE, charts.TEAL, charts.RED)
WORDS = {"adds": "multiply-adds", "steps": "training steps", "sent": "numbers exchanged"}
ONE_COLUMN = {"columns": 1, "labelLimit": 300}  # two do not fit a phone


def by_workers(curves: pd.DataFrame, start: float) -> alt.LayerChart:
    """Steps to the goal against the number of workers, a line per way of training, a slider over
    goals.

    curves: goal, workers, training, steps, low, high, met ("2 of 3"), all_met (bool); where it is
    not, the point is a triangle at the steps after which searches end.
    """
    names = list(dict.fromkeys(curves.training))
    shown = curves.assign(
        interval=[
            span((float(f"{a:.2g}"), float(f"{b:.2g}"))) if a == a else "—"
            for a, b in zip(curves.low, curves.high)
        ]
    )
    scale = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    x = alt.X("workers:O", title="workers, each with its own examples", axis=alt.Axis(labelAngle=0))
    y = alt.Y("steps:Q", title="training steps to the goal").scale(
        type="log", nice=False, padding=10
    )
    tooltip = [
        alt.Tooltip("training:N", title="training"),
        alt.Tooltip("workers:O", title="workers"),
        alt.Tooltip("steps:Q", title="steps to the goal, or at the end", format=",.0f"),
        alt.Tooltip("interval:N", title="5–95 %"),
        alt.Tooltip("met:N", title="searches that meet the goal"),
    ]
    offset = alt.XOffset("training:N", sort=names)
    base = alt.Chart(shown).encode(
        x=x,
        xOffset=offset,
        color=alt.Color("training:N", title=None, scale=scale, sort=names).legend(**ONE_COLUMN),
    )
    met, missed = "datum.all_met", "!datum.all_met"
    layers = [
        base.transform_filter(met).mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.transform_filter(met)
        .mark_point(filled=True, size=80, opacity=1)
        .encode(y=y, tooltip=tooltip),
        base.transform_filter(missed)
        .mark_point(shape="triangle-up", size=90, strokeWidth=2)
        .encode(y=y, tooltip=tooltip),
    ]
    slider = charts.goal_slider(sorted(curves.goal.unique()), start)
    return charts.controlled(layers, slider).properties(width="container", height=300)


def over_whole(rows: pd.DataFrame, start: float, whole: str, what: str = "adds") -> alt.LayerChart:
    """What each way takes over training the whole network, against batch size; a slider over goals,
    and a menu.

    rows: goal, what (of WORDS), arm, batch_size, effect, low, high, met; those without an effect
    are left out.  whole: the network to which they are compared, in words; what: shown at first.
    """
    shown = rows.dropna(subset="effect").assign(
        what=lambda own: own.what.map(WORDS),
        interval=lambda own: [f"{brief(a)}–{brief(b)}" for a, b in zip(own.low, own.high)],
    )
    if shown.empty:
        return charts.nothing("No search that meets its goal is on record.")
    names = list(dict.fromkeys(rows.arm))
    scale = alt.Scale(type="log", base=2, nice=False, padding=12)
    base = alt.Chart(shown).encode(
        x=alt.X("batch_size:O", title="batch size (examples)", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("arm:N", sort=names),
        color=alt.Color("arm:N", title=None, sort=names)
        .scale(domain=names, range=list(ARMS[: len(names)]))
        .legend(**ONE_COLUMN),
    )
    y = alt.Y("effect:Q", title=f"times those of {whole}", scale=scale, axis=charts.fractions())
    tooltip = [
        alt.Tooltip("arm:N", title="network"),
        alt.Tooltip("batch_size:O", title="batch size"),
        alt.Tooltip("effect:Q", title=f"over {whole}", format=".2r"),
        alt.Tooltip("interval:N", title="5–95 %"),
    ]
    layers = [
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(y=y, tooltip=tooltip),
    ]
    what = charts.menu("what", list(dict.fromkeys(shown.what)), WORDS[what], "compare")
    slider = charts.goal_slider(sorted(shown.goal.unique()), start)
    drawn = charts.controlled(layers, what, slider)
    return alt.layer(charts.across(1, y=scale), drawn).properties(width="container", height=320)
