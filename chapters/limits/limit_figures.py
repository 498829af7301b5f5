"""The figure of critical batch sizes."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from lib.page import charts
from lib.page.tips import tip
from lib.wording import named

NAMES = {"labelFontSize": 11, "labelOverlap": False, "ticks": False}  # an axis of names


def ladder_of_networks(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch sizes with their intervals on a logarithmic axis, a row each: the methods one
    below the other, and of each its networks, the smallest critical batch size first.

    rows: of `findings.networks`; hollow if not identified.
    """
    rows, within = charts.cut(rows.sort_values(["algorithm", "critical"]), "critical", 4)
    rows = rows.assign(method=rows.algorithm.map(named), row=rows.name + "|" + rows.algorithm)
    easier = "replace(split(datum.label, '|')[0], 'easier goal', 'easier')"
    axis = alt.Axis(labelExpr=easier, labelLimit=200, **NAMES)
    first = 2.0 ** np.floor(np.log2(within[0]))
    scale = charts.log(8, domain=[first, within[1]], clamp=True)
    powers = [first * 4**n for n in range(12) if first * 4**n <= within[1]]
    base = alt.Chart(rows).encode(
        y=alt.Y("row:N", title=None, sort=None, axis=axis),
        color=charts.by_algorithm(list(rows.algorithm), columns=1),
    )
    x = alt.X("critical:Q", title="critical batch size (examples)", scale=scale)
    x = x.axis(values=powers, format=",", titleAnchor="end")
    tooltip = [
        tip("name:N", "network"),
        tip("method:N", "training method"),
        tip("goal:Q", "goal error", ".0%"),
        tip("critical:Q", "critical batch size", ",.2r"),
        tip("range:N", "interval"),
        tip("sizes:Q", "batch sizes measured"),
        tip("replicates:Q", "searches of a point, at most"),
    ]
    bars, dots = charts.ranges(base, "critical", x, alt.X("critical_low:Q", scale=scale), tooltip)
    hollow = base.mark_point(size=70, opacity=1).encode(x=x, tooltip=tooltip)
    filled = dots.transform_filter("datum.identified")
    return charts.sized(alt.layer(bars, hollow, filled), 15 * len(rows))
