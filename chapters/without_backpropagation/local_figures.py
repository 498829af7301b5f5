"""The figure of readouts whose weights are flipped."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips

LEAST, MOST_VISITS = 0.01, 8  # of the excess, and of visits to each weight, that are drawn


def falling(rows: pd.DataFrame) -> alt.LayerChart:
    """The excess error of readouts against visits per weight, a line per number of features, one
    kind of features at a time.

    rows: kind, features, visits (steps over features), excess (a share of that at the start).
    Dashed: exp(-visits).
    """
    kinds = list(rows.kind.unique())
    menu = charts.menu("kind", kinds, kinds[0], "features")
    shown = rows[(rows.excess >= LEAST) & (rows.visits <= MOST_VISITS)]
    shown = shown.assign(name=shown.features.map("{:,}".format))
    counts = [f"{n:,}" for n in sorted(shown.features.unique())]
    scale = alt.Scale(domain=counts, range=list(charts.CATEGORIES[: len(counts)]))
    colour = alt.Color("name:N", scale=scale, title="features", legend=alt.Legend(columns=3))
    x = alt.X("visits:Q", title="visits per weight (steps over features)")
    x = x.scale(domain=[0, MOST_VISITS], nice=False)
    title = "error above its floor (share of that at the start)"
    y = alt.Y("excess:Q", title=title, axis=alt.Axis(format="~p"))
    y = y.scale(type="log", domain=[LEAST, 1], nice=False, clamp=True)
    tooltip = tips.listed(
        {
            "name:N": "features",
            "visits:Q|.2f": "visits per weight",
            "excess:Q|.1%": "error above its floor",
        }
    )
    base = alt.Chart(shown).encode(x=x, y=y, color=colour)
    points = base.mark_point(size=90, opacity=0).encode(tooltip=tooltip)
    drawn = charts.controlled([base.mark_line(strokeWidth=2.2), points], menu)
    visits = np.linspace(0, -np.log(LEAST), 40)
    guide = alt.Chart(pd.DataFrame({"visits": visits, "excess": np.exp(-visits)}))
    guide = guide.mark_line(color=charts.GUIDE, strokeDash=[4, 4], strokeWidth=1.6)
    return charts.sized(alt.layer(drawn, guide.encode(x=x, y=y)), 320)
