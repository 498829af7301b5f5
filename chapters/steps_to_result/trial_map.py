"""The figure of all trials of a search."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.multiples import panels

SHOWN = ["batch_size", "trial", "learning_rate", "slowness", "steps", "status", "last_step"]
MOST = 3  # panels: the smallest and the largest batch size, and the one in the middle
WORDS = (
    "Trials by learning rate and one minus momentum, both logarithmic, a panel per batch size: "
    "filled and coloured by steps to the goal if they met it, open grey circles if not."
)


def trial_map(trials: pd.DataFrame) -> tuple[alt.FacetChart, str]:
    """All trials of several searches by learning rate and 1 - momentum, a panel per batch size;
    chart, description.

    Args:
        trials: a row per trial with learning_rate, slowness (1 - momentum), steps, status, cause
            and batch_size.
    """
    sizes = sorted(map(int, trials.batch_size.unique()))
    drawn = dict.fromkeys([sizes[0], sizes[len(sizes) // 2], sizes[-1]])
    own = trials[trials.batch_size.isin(drawn)].sort_values("batch_size", kind="stable")
    shown = own[SHOWN].assign(
        cause=own.cause.fillna(""),
        panel=[f"batch size {size:,}" for size in own.batch_size],
        behind=own.steps / own.groupby("batch_size").steps.transform("min"),  # 1 for the winner
    )
    title = "1 − momentum against learning rate"
    return panels(shown, _trials, title, height=190, most=MOST), WORDS


def _trials(base: alt.Chart) -> list[alt.Chart]:
    x = alt.X("learning_rate:Q").scale(type="log", domain=[1e-4, 1])
    x = x.axis(values=[1e-4, 1e-3, 1e-2, 1e-1, 1], format="~g")
    y = alt.Y("slowness:Q", scale=charts.log(6, base=10))
    base = base.encode(
        x=x,
        y=y.axis(values=[1e-4, 1e-3, 1e-2, 1e-1, 1], format="~g"),
        tooltip=tips.listed(
            {
                "trial:Q": "trial",
                "learning_rate:Q|.3g": "learning rate",
                "slowness:Q|.2g": "1 − momentum",
                "status:N": "how it ended",
                "cause:N": "because",
                "steps:Q|,": "steps to the goal",
                "last_step:Q|,": "trained for",
            }
        ),
    )
    shades = [charts.RED, charts.ORANGE, charts.BLUE]
    scale = alt.Scale(type="log", domain=[1, 3], clamp=True, range=shades)
    colour = alt.Color("behind:Q", title="steps over the winner's", scale=scale)
    met = base.transform_filter("isValid(datum.behind)").mark_point(filled=True, size=70, opacity=1)
    missed = base.transform_filter("!isValid(datum.behind)")
    missed = missed.mark_point(size=25, color=charts.GUIDE, opacity=0.6)
    return [missed, met.encode(color=colour.legend(titleOrient="top"))]
