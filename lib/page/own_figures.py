"""Figures of a reader's own workload."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.wording import brief


def with_critical(
    points: pd.DataFrame, line: pd.DataFrame, critical: float | None
) -> alt.LayerChart:
    """Steps to result against batch size with 90 % bars, the fitted line and the critical batch
    size.

    points: batch_size, steps, low, high (NaN where not known), replicates; line: batch_size, steps
    of the law; critical: None where it is not inside the sizes.
    """
    ends = points.fillna({"low": points.steps, "high": points.steps})
    within = [min(ends.low.min(), ends.steps.min()) / 1.3, max(ends.high.max(), 1) * 1.3]
    scale = alt.Scale(type="log", base=2, domain=within, nice=False)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    base = alt.Chart(ends).encode(x=charts.batch_axis(points.batch_size))
    low = alt.Y("low:Q", scale=scale)
    bars = base.mark_rule(strokeWidth=2, color=charts.BLUE).encode(y=low, y2="high:Q")
    told = [tips.BATCH_SIZE, tips.STEPS, *tips.ends(), tips.SEARCHES]
    marks = base.mark_point(filled=True, size=64, opacity=1, color=charts.BLUE)
    marks = marks.encode(y=y, tooltip=told)
    curve = alt.Chart(line).mark_line(strokeDash=[3, 4], clip=True, color=charts.BLUE)
    curve = curve.encode(x="batch_size:Q", y=y)
    layers = [curve, bars, marks] if len(line) else [bars, marks]
    if critical is not None:
        at = alt.Chart(pd.DataFrame({"batch_size": [critical], "told": [brief(critical)]}))
        title = alt.Tooltip("told:N", title="critical batch size")
        rule = at.mark_rule(strokeDash=[6, 4], strokeWidth=2, color=charts.GUIDE)
        layers.append(rule.encode(x="batch_size:Q", tooltip=[title]))
    return charts.sized(alt.layer(*layers), 380)


def between(low: float, high: float) -> str:
    """An interval to two digits; a dash where there is none."""
    return f"{brief(low)}–{brief(high)}" if low == low else "—"
