"""The figure of the language model."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures

NATS = (
    "'goal: ' + format(value, '.2f') + ' nats, ' + format(value / LN2, '.2f') + ' bits a character'"
)


def steps_by_method(points: pd.DataFrame, start: float) -> alt.LayerChart:
    """Steps to result against batch size, a colour per curve; a slider over goals.

    Args:
        points: of `text_results.curves`.
        start: the goal shown first.
    """
    known = points.drop_duplicates("curve")
    shades = known.algorithm.map(charts.ALGORITHM_COLOURS).fillna(charts.GUIDE)
    shades = shades.mask(known.sparsity > 0, charts.sparsity_colour(0.9))
    colour = charts.by_name("curve", dict(zip(known.curve, shades)), 2)
    slider = charts.slider("goal", sorted(points.goal.unique()), start, "goal (nats)", NATS)
    return shared_figures.scaling_chart(points, colour, slider, height=340)
