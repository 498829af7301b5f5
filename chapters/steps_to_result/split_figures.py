"""The figure of how hard draws of validation images are."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page.charts import BLUE, GUIDE, RED


def draws(bars: pd.DataFrame, marks: pd.DataFrame) -> alt.LayerChart:
    """A histogram of errors of random draws, with two splits marked.

    bars: low, high (errors), share (of draws).  marks: name, error, percentile; the first two rows
    are drawn.
    """
    x = alt.X("low:Q", title="validation error of a draw", scale=alt.Scale(zero=False)).axis(
        format=".1%"
    )
    bins = (
        alt.Chart(bars)
        .mark_bar(color=GUIDE, opacity=0.6)
        .encode(
            x=x,
            x2="high:Q",
            y=alt.Y("share:Q", title="share of random draws").axis(format="%"),
            tooltip=[
                alt.Tooltip("low:Q", title="error from", format=".2%"),
                alt.Tooltip("high:Q", title="to", format=".2%"),
                alt.Tooltip("share:Q", title="share of draws", format=".1%"),
            ],
        )
    )
    two = alt.Chart(marks.head(2)).encode(
        x=alt.X("error:Q"),
        color=alt.Color("name:N", scale=alt.Scale(range=[BLUE, RED]), sort=None, legend=None),
        tooltip=[
            alt.Tooltip("name:N", title="split"),
            alt.Tooltip("error:Q", title="error", format=".2%"),
            alt.Tooltip("percentile:Q", title="percentile among draws", format=".1f"),
        ],
    )
    rules = two.mark_rule(strokeWidth=3)
    names = two.mark_text(align="center", baseline="bottom", dy=-4, fontWeight="bold").encode(
        y=alt.value(0), text="name:N"
    )
    return alt.layer(bins, rules, names).properties(width="container", height=220)
