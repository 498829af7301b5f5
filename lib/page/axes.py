"""Axis titles that follow the controls of a chart: those of Vega-Lite are fixed texts."""

from __future__ import annotations

import altair as alt
import pandas as pd

ALONE = pd.DataFrame({"at": [0]})  # the one row of a chart that only says something
# Pixels from the plot to the title of an axis, past its labels
BELOW, BESIDE = 42, 48


def _words(expression: str, **style: object) -> alt.Chart:
    """What a Vega expression says, as a text of the size of axis titles."""
    said = alt.Chart(ALONE).transform_calculate(said=expression)
    return said.mark_text(fontSize=13, **style)


def beside(expression: str) -> alt.Chart:
    """The title of the vertical axis, along its middle.

    Args:
        expression: in Vega's language, of the names of controls: "show === 'time' ? 's' : 'price'".
    """
    text = _words(expression, align="center", baseline="bottom", angle=270)
    middle = alt.value(alt.expr("height / 2"))
    return text.encode(x=alt.value(-BESIDE), y=middle, text="said:N")


def below(expression: str) -> alt.Chart:
    """The title of the horizontal axis, below the middle of the plot.

    Args:
        expression: as of `beside`.
    """
    text = _words(expression, align="center", baseline="bottom", dy=BELOW)
    middle = alt.value(alt.expr("width / 2"))
    return text.encode(x=middle, y=alt.value("height"), text="said:N")
