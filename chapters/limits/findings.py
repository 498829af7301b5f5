"""What the page on limits says, as numbers and words, and its figure."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.limits import families
from lib.analysis import scaling
from lib.claims import front, judging
from lib.claims.names import title
from lib.page import charts, tips
from lib.wording import named, ranged


def findings(networks: pd.DataFrame, effects: pd.DataFrame) -> dict:
    """All values in the page's sentences, from `networks` and `families.effects`."""
    sure = networks[(networks.algorithm == "sgd") & (networks.replicates >= scaling.ENOUGH)]
    ratios = effects.set_index("family")[["ratio", "ratio_low", "ratio_high"]]
    return {
        "least": sure.critical.min(),
        "most": sure.critical.max(),
        "most_over_least": sure.critical.max() / sure.critical.min(),
        "kind": ranged(*ratios.loc[families.MNIST_MODEL_EASIER]),
        "data": ranged(*ratios.loc[families.DATA]),
    }


def networks() -> pd.DataFrame:
    """`front.critical` of every dense network, once per training method, with its name."""
    once = [*families.once(judging.curves())]
    rows = front.critical().set_index(scaling.CURVE).loc[once].reset_index()
    return rows.drop(columns="range").assign(name=rows.workload.map(title))


def ladder_of_networks(rows: pd.DataFrame) -> alt.LayerChart:
    """Critical batch sizes with their intervals on a logarithmic axis, one row each, grouped by
    method and sorted within it, the smallest first.

    rows: from `networks`; points that are not identified are hollow.
    """
    rows, limits = charts.cut(
        rows.sort_values(["algorithm", "critical"], ascending=[False, True]), "critical", 4
    )
    rows = rows.assign(method=rows.algorithm.map(named), row=rows.name + "|" + rows.algorithm)
    axis = alt.Axis(
        labelExpr="replace(replace(split(datum.label, '|')[0], 'easier goal', 'easier'), "
        "/^(.*), (.*) width,/, '$2-width $1')",
        labelLimit=205,
        labelFontSize=11,
        labelOverlap=False,
        ticks=False,
    )
    first = 2.0 ** np.floor(np.log2(limits[0]))
    scale = charts.log(8, domain=[first, limits[1]], clamp=True)
    powers = [first * 4**n for n in range(12) if first * 4**n <= limits[1]]
    base = alt.Chart(rows).encode(
        y=alt.Y("row:N", title=None, sort=None, axis=axis),
        color=charts.by_algorithm(list(rows.algorithm), columns=1),
    )
    x = alt.X("critical:Q", title="critical batch size (examples)", scale=scale)
    x = x.axis(values=powers, format=",", titleAnchor="end")
    tooltip = tips.listed(
        {
            "name:N": "network",
            "method:N": "training method",
            "goal:Q|.0%": "goal error",
            "critical:Q|,.2r": "critical batch size",
            "range:N": "interval",
            "sizes:Q": "batch sizes measured",
            "replicates:Q": "searches per point, at most",
        }
    )
    low = alt.X("critical_low:Q", scale=scale)
    bars, dots = charts.ranges(base, "critical", x, low, tooltip)
    hollow = base.mark_point(size=70, opacity=1).encode(x=x, tooltip=tooltip)
    filled = dots.transform_filter("datum.identified")
    return charts.sized(alt.layer(bars, hollow, filled), 15 * len(rows))
