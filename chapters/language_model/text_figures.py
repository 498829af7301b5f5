"""The figure of the language model, and the table of its lines."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, shared_figures
from lib.wording import brief, span

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
    names = dict(zip(known.curve, shades))
    colour = charts.by_name("curve", names, 2)
    goals = sorted(points.goal.unique())
    slider = charts.slider("goal", goals, start, "goal (nats)", NATS)
    return shared_figures.scaling_chart(points, colour, slider, height=340)


def fitted(rows: pd.DataFrame) -> pd.DataFrame:
    """The lines of one goal, of `text_results.fits`."""
    return pd.DataFrame(
        {
            "training method": rows.curve,
            "searches": rows.replicates,
            "c₁ (sequences)": rows.c1.map(brief),
            "c₂ (steps)": rows.c2.map(brief),
            "critical batch size (sequences)": rows.critical.map(brief),
            "90 %": list(map(span, zip(rows.critical_low, rows.critical_high))),
        }
    )
