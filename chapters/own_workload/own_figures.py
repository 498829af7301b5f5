"""The figure of a reader's own workload."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.own_workload.adaptive import Estimate
from lib.page import charts, tips
from lib.page.shared_figures import STEPS


def with_critical(points: pd.DataFrame, found: Estimate | None) -> alt.LayerChart:
    """Steps to result against batch size (points: of `findings.points`) with 90 % bars, the fitted
    line and the critical batch size, where it is inside the sizes.
    """
    ends = points.fillna({"low": points.steps, "high": points.steps})
    low = ends.low.min() / 1.3
    high = ends.high.max() * 1.3
    scale = charts.log(domain=[low, high])
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    x = charts.batch_axis(points.batch_size)
    blue = alt.value(charts.BLUE)
    base = alt.Chart(ends).encode(x=x, color=blue)
    told = [tips.BATCH_SIZE, tips.STEPS, *tips.ends(), tips.SEARCHES]
    bars, _, marks = charts.curve(base, y, scale, told)
    law = _law(points.batch_size, found, y) if found else []
    return charts.sized(alt.layer(*law, bars, marks), 380)


def _law(sizes: pd.Series, found: Estimate, y: alt.Y) -> list[alt.Chart]:
    """The fitted line, and a rule at the critical batch size."""
    between = np.geomspace(sizes.min(), sizes.max(), 50)
    law = pd.DataFrame({"batch_size": between, "steps": found.steps(between)})
    line = alt.Chart(law)
    curve = line.mark_line(strokeDash=[3, 4], clip=True, color=charts.BLUE)
    layers = [curve.encode(x="batch_size:Q", y=y)]
    if sizes.min() < found.critical < sizes.max():
        at = alt.Chart(pd.DataFrame({"batch_size": [found.critical]}))
        rule = at.mark_rule(strokeDash=[6, 4], strokeWidth=2, color=charts.GUIDE)
        layers.append(rule.encode(x="batch_size:Q"))
    return layers
