"""The figures of all trials of a search, and of how hard draws of validation images are."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import panels

BINS = 40  # of the histogram of draws
SHOWN = ["panel", "learning_rate", "slowness", "steps", "behind", "status", "last_step"]
DECADES = alt.Axis(values=[1e-4, 1e-3, 1e-2, 1e-1, 1], format="~g")


def trial_map(trials: pd.DataFrame) -> alt.FacetChart:
    """All trials of several searches by learning rate and 1 - momentum, a panel each for the
    smallest batch size, the largest, and the one in the middle.

    trials: a row per trial with learning_rate, momentum, steps, last_step, status and batch_size.
    """
    sizes = sorted(trials.batch_size.unique())
    drawn = trials.batch_size.isin([sizes[0], sizes[len(sizes) // 2], sizes[-1]])
    rows = trials[drawn].sort_values("batch_size", kind="stable")
    rows = rows.assign(
        slowness=1 - rows.momentum.fillna(0),
        panel=[f"batch size {size:,}" for size in rows.batch_size],
        behind=rows.steps / rows.groupby("batch_size").steps.transform("min"),  # 1: the winner
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


def draws(among: np.ndarray, errors: Mapping[str, float]) -> alt.LayerChart:
    """A histogram of the errors of random draws `among` [draws], with those of named splits."""
    counts, edges = np.histogram(among, BINS)
    ends = {"low": edges[:-1], "high": edges[1:], "share": counts / len(among)}
    x = alt.X("low:Q", title="validation error of a draw", scale=alt.Scale(zero=False))
    bars = alt.Chart(pd.DataFrame(ends)).mark_rect(color=charts.GUIDE, opacity=0.6)
    bars = bars.encode(
        x=x.axis(format=".1%"),
        x2="high:Q",
        y=alt.Y("share:Q", title="share of random draws").axis(format="%"),
        y2=alt.datum(0),
    )
    shades = alt.Scale(range=[charts.BLUE, charts.RED])
    marks = pd.DataFrame(errors.items(), columns=["name", "error"])
    splits = alt.Chart(marks).encode(
        x="error:Q",
        color=alt.Color("name:N", scale=shades, sort=None, legend=None),
        tooltip=tips.listed({"name:N": "split", "error:Q|.2%": "error"}),
    )
    names = splits.mark_text(baseline="bottom", dy=-4, fontWeight="bold")
    names = names.encode(y=alt.value(0), text="name:N")
    layers = bars, splits.mark_rule(strokeWidth=3), names
    return alt.layer(*layers).properties(width="container", height=220)
