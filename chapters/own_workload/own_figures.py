"""The figure of a reader's own workload."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.page.shared_figures import STEPS
from lib.wording import brief


def with_critical(
    points: pd.DataFrame, line: pd.DataFrame, critical: float | None
) -> alt.LayerChart:
    """Steps to result against batch size with 90 % bars, the fitted line and the critical batch
    size.

    Args:
        points: batch_size, steps, low, high (NaN where not known), replicates.
        line: batch_size, steps of the law.
        critical: None where it is not inside the sizes.
    """
    ends = points.fillna({"low": points.steps, "high": points.steps})
    scale = charts.log(domain=[ends.low.min() / 1.3, ends.high.max() * 1.3])
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    blue = alt.value(charts.BLUE)
    base = alt.Chart(ends).encode(x=charts.batch_axis(points.batch_size), color=blue)
    told = [tips.BATCH_SIZE, tips.STEPS, *tips.ends(), tips.SEARCHES]
    bars, _, marks = charts.curve(base, y, scale, told)
    curve = alt.Chart(line).mark_line(strokeDash=[3, 4], clip=True)
    layers = [curve.encode(x="batch_size:Q", y=y, color=blue)] if len(line) else []
    layers += [bars, marks]
    if critical is not None:
        at = alt.Chart(pd.DataFrame({"batch_size": [critical], "told": [brief(critical)]}))
        rule = at.mark_rule(strokeDash=[6, 4], strokeWidth=2, color=charts.GUIDE)
        told = [tips.tip("told:N", "critical batch size")]
        layers.append(rule.encode(x="batch_size:Q", tooltip=told))
    return charts.sized(alt.layer(*layers), 380)
