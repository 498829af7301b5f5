"""The figures of a reader's own workload."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.own_workload.findings import Answer
from lib.page import charts, tips
from lib.page.shared_figures import STEPS

BETWEEN = 60  # batch sizes along a line
DOTS, DASHES = [3, 4], [6, 4]


def steps(answer: Answer) -> alt.LayerChart:
    """Steps to result against batch size with 90 % bars, the fitted line, and the critical batch
    size if it lies within the sizes.
    """
    points = answer.met
    scale = charts.log(domain=[points.low.min() / 1.3, points.high.max() * 1.3])
    y = alt.Y("steps:Q", title=STEPS, scale=scale)
    x = charts.batch_axis(points.batch_size)
    base = alt.Chart(points).encode(x=x, color=alt.value(charts.BLUE))
    shown = [tips.BATCH_SIZE, tips.STEPS, *tips.ends(), alt.Tooltip("met", title="trainings")]
    bars, _, marks = charts.curve(base, y, scale, shown)
    between = np.geomspace(points.batch_size.min(), points.batch_size.max(), BETWEEN)
    law = pd.DataFrame(
        {"batch_size": between, "steps": answer.surface.steps(between, departing=False)[0]}
    )
    line = alt.Chart(law).mark_line(strokeDash=DOTS, clip=True, color=charts.BLUE)
    layers = [line.encode(x="batch_size:Q", y=y), *_critical(answer), bars, marks]
    return charts.sized(alt.layer(*layers), 380)


def rates(answer: Answer) -> alt.LayerChart:
    """Learning rates of all trainings against batch size, and the best one with its 90 % band."""
    tried = answer.plan.table.assign(
        end=np.where(answer.plan.table.steps.notna(), "met the goal", "missed it")
    )
    inside = tried[tried.batch_size.isin(answer.met.batch_size)]
    between = np.geomspace(inside.batch_size.min(), inside.batch_size.max(), BETWEEN)
    values = answer.surface.rates(between)
    law = pd.DataFrame(dict(zip(["learning_rate", "low", "high"], values)), between)
    law = law.rename_axis("batch_size").reset_index()
    ends = [law.low.min(), law.high.max(), *inside.dropna(subset="steps").learning_rate]
    scale = charts.log(domain=[min(ends) / 2, max(ends) * 2])
    y = alt.Y("learning_rate:Q", title="learning rate", scale=scale)
    base = alt.Chart(law).encode(x=charts.batch_axis(inside.batch_size))
    band = base.mark_area(opacity=0.2, color=charts.BLUE).encode(
        alt.Y("low:Q", scale=scale), y2="high:Q"
    )
    line = base.mark_line(color=charts.BLUE).encode(y)
    marks = alt.Chart(inside).mark_point(clip=True, fill=charts.BLUE, stroke=charts.BLUE)
    looks = alt.Scale(range=["circle", "M-1,-1L1,1M-1,1L1,-1"])  # a disk, a mere outline
    shape = alt.Shape("end:N", title=None, scale=looks)
    rate = alt.Tooltip("learning_rate", title="learning rate")
    shown = [tips.BATCH_SIZE, rate, alt.Tooltip("steps", title="steps to the goal")]
    marks = marks.encode(charts.batch_axis(inside.batch_size), y, shape=shape, tooltip=shown)
    return charts.sized(alt.layer(band, line, marks), 300)


def _critical(answer: Answer) -> list[alt.Chart]:
    """A rule at the critical batch size, if it lies within the sizes."""
    critical, sizes = answer.surface.critical[0], answer.met.batch_size
    if not sizes.min() < critical < sizes.max():
        return []
    rule = alt.Chart(pd.DataFrame({"batch_size": [critical]}))
    rule = rule.mark_rule(strokeDash=DASHES, strokeWidth=2, color=charts.GUIDE)
    return [rule.encode(x="batch_size:Q")]
