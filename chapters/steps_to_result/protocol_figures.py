"""The figure of all trials of a search."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import panels

SHOWN = ["panel", "learning_rate", "slowness", "steps", "behind", "status", "last_step"]
DECADES = alt.Axis(values=[1e-4, 1e-3, 1e-2, 1e-1, 1], format="~g")


def trial_map(trials: pd.DataFrame) -> alt.FacetChart:
    """All trials of several searches by learning rate and 1 - momentum, one panel each for the
    smallest batch size, the middle one and the largest.

    trials: a row per trial with learning_rate, momentum, steps, last_step, status and batch_size.
    """
    sizes = sorted(trials.batch_size.unique())
    drawn = trials.batch_size.isin([sizes[0], sizes[len(sizes) // 2], sizes[-1]])
    rows = trials[drawn].sort_values("batch_size", kind="stable")
    fewest = rows.groupby("batch_size").steps.transform("min")
    rows = rows.assign(
        slowness=1 - rows.momentum.fillna(0),
        panel=[f"batch size {size:,}" for size in rows.batch_size],
        behind=rows.steps / fewest,  # 1: the winner
    )
    title = "1 − momentum against learning rate"
    return panels(rows[SHOWN], _trials, title, height=190, most=3)


def _trials(base: alt.Chart) -> list[alt.Chart]:
    tooltip = {
        "learning_rate:Q|.3g": "learning rate",
        "slowness:Q|.2g": "1 − momentum",
        "status:N": "how it ended",
        "steps:Q|,": "steps to the goal",
        "last_step:Q|,": "trained for",
    }
    base = base.encode(
        x=alt.X("learning_rate:Q", axis=DECADES).scale(type="log", domain=[1e-4, 1]),
        y=alt.Y("slowness:Q", axis=DECADES, scale=charts.log(6, base=10)),
        tooltip=tips.listed(tooltip),
    )
    shades = [charts.RED, charts.ORANGE, charts.BLUE]
    scale = alt.Scale(type="log", domain=[1, 3], clamp=True, range=shades)
    colour = alt.Color("behind:Q", title="steps over the winner's", scale=scale)
    met = base.transform_filter("isValid(datum.behind)")
    met = met.mark_point(filled=True, size=70, opacity=1)
    missed = base.transform_filter("!isValid(datum.behind)")
    missed = missed.mark_point(size=25, color=charts.GUIDE, opacity=0.6)
    return [missed, met.encode(color=colour.legend(titleOrient="top"))]
