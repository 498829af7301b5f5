"""The figure of how hard draws of validation images are."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import tips
from lib.page.charts import BLUE, GUIDE, RED


def draws(bars: pd.DataFrame, marks: pd.DataFrame) -> alt.LayerChart:
    """A histogram of errors of random draws, with two splits marked.

    bars: low, high (errors), share (of draws).  marks: name, error, percentile.
    """
    x = alt.X("low:Q", title="validation error of a draw", scale=alt.Scale(zero=False)).axis(
        format=".1%"
    )
    told = tips.listed(
        {
            "low:Q|.2%": "error from",
            "high:Q|.2%": "to",
            "share:Q|.1%": "share of draws",
        }
    )
    y = alt.Y("share:Q", title="share of random draws").axis(format="%")
    bins = alt.Chart(bars).mark_rect(color=GUIDE, opacity=0.6)
    bins = bins.encode(x=x, x2="high:Q", y=y, y2=alt.datum(0), tooltip=told)
    two = alt.Chart(marks).encode(
        x=alt.X("error:Q"),
        color=alt.Color("name:N", scale=alt.Scale(range=[BLUE, RED]), sort=None, legend=None),
        tooltip=tips.listed(
            {
                "name:N": "split",
                "error:Q|.2%": "error",
                "percentile:Q|.1f": "percentile among draws",
            }
        ),
    )
    rules = two.mark_rule(strokeWidth=3)
    names = two.mark_text(align="center", baseline="bottom", dy=-4, fontWeight="bold").encode(
        y=alt.value(0), text="name:N"
    )
    return alt.layer(bins, rules, names).properties(width="container", height=220)
