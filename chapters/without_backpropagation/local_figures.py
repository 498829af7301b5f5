"""Figures of training without backpropagation: steps of networks, and of readouts whose weights are
flipped.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts, tips
from lib.page.tips import tip

STEPS = "steps to result (training steps)"
ARMS = {
    "backpropagation": charts.ORANGE,
    "feedback alignment": charts.PURPLE,
    "alignment, β = 0.1": charts.TEAL,
    "alignment, β = 1": charts.GREEN,
}
LEAST, MOST_VISITS = 0.01, 8  # of the excess, and of visits to each weight, that are drawn


def curves(points: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, a line per way to pass errors back.

    points: arm (of ARMS), batch_size, steps, low, high, replicates (searches), trials; NaN ends
    where there is one search.
    """
    pick, faded = charts.picked("arm")
    known = {arm: colour for arm, colour in ARMS.items() if arm in set(points.arm)}
    base = alt.Chart(points).encode(
        x=charts.batch_axis(points.batch_size), color=charts.by_name("arm", known), opacity=faded
    )
    scale = charts.log(12)
    tooltip = [
        tip("arm:N", "errors by"),
        tips.BATCH_SIZE,
        tips.STEPS,
        *tips.ends(),
        tips.SEARCHES,
        tips.TRIALS,
    ]
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    bars, *layers = charts.curve(base, y, scale, tooltip)
    return charts.sized(alt.layer(bars.add_params(pick), *layers), 330)


def falling(rows: pd.DataFrame, start: str) -> alt.LayerChart:
    """The excess error of readouts against visits per weight, a line per number of features, one
    kind of features at a time.

    rows: kind, features, visits (steps over features), excess (a share of that at the start).
    start: the kind shown at first. Dashed: exp(-visits).
    """
    menu = charts.menu("kind", list(rows.kind.unique()), start, "features")
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
