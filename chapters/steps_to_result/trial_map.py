"""The figure of all trials of a search."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts
from lib.page.tips import tip

SHOWN = ["batch_size", "trial", "learning_rate", "slowness", "steps", "status", "last_step"]
WORDS = (
    "Trials by learning rate and one minus momentum, both logarithmic, one batch size at a time: "
    "filled and coloured by steps to the goal if they met it, open grey circles if not."
)


def trial_map(trials: pd.DataFrame, start: int, height: int = 380) -> tuple[alt.LayerChart, str]:
    """All trials of several cells by learning rate and 1 - momentum, a slider over batch sizes;
    chart, description.

    Args:
        trials: a row per trial with learning_rate, slowness (1 - momentum), steps, status, cause
            and batch_size.
        start: the batch size shown first.
        height: in pixels.
    """
    best = trials.groupby("batch_size").steps.transform("min")
    shown = trials[SHOWN].assign(
        cause=trials.cause.fillna(""),
        met=trials.steps.notna(),
        behind=trials.steps / best,  # 1 for the winner
    )
    sizes = sorted(map(int, shown.batch_size.unique()))
    caption = "'batch size ' + format(value, ',')"
    chosen, keep, label = charts.slider("batch_size", sizes, start, "batch size", caption)
    x = alt.X("learning_rate:Q", title="learning rate").scale(type="log", domain=[1e-4, 1])
    y = alt.Y("slowness:Q", title="1 − momentum", scale=charts.log(10, base=None))
    base = alt.Chart(shown).transform_filter(keep)
    base = base.encode(
        x=x.axis(values=charts.DECADES[::3]),
        y=y.axis(values=charts.DECADES),
        tooltip=[
            tip("trial:Q", "trial"),
            tip("learning_rate:Q", "learning rate", ".3g"),
            tip("slowness:Q", "1 − momentum", ".2g"),
            tip("status:N", "how it ended"),
            tip("cause:N", "because"),
            tip("steps:Q", "steps to the goal", ","),
            tip("last_step:Q", "trained for", ","),
        ],
    )
    shades = [charts.RED, charts.ORANGE, charts.BLUE]
    scale = alt.Scale(type="log", domain=[1, 3], clamp=True, range=shades)
    colour = alt.Color("behind:Q", title="steps over the winner's", scale=scale)
    met = base.transform_filter("datum.met").mark_point(filled=True, size=130, opacity=1)
    met = met.encode(color=colour.legend(titleOrient="top"))
    missed = base.transform_filter("!datum.met")
    missed = missed.mark_point(size=40, color=charts.GUIDE, opacity=0.6)
    chart = alt.layer(missed, met, label).add_params(chosen)
    return charts.sized(chart, height), WORDS
