"""The figure of training parts of a network, over training the whole."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips
from lib.wording import span

COLOURS = (charts.ORANGE, charts.PURPLE, charts.TEAL, charts.RED)
WORDS = {"sent": "numbers sent", "adds": "multiply-adds", "steps": "training steps"}


def over_whole(
    ratios: pd.DataFrame, what: str, whole: str, sizes: str = "batch size (examples)"
) -> alt.LayerChart:
    """What each way takes over training the whole network; a menu of costs, a slider over goals.

    ratios: of `network_parts.ratios`; those without an effect are left out.  what: the cost that is
    shown at first, of WORDS.  whole: to what ways are compared, in words.  sizes: what the sizes
    are, in words.
    """
    shown = ratios.dropna(subset="effect")
    shown = shown.assign(
        what=shown.what.map(WORDS), interval=list(map(span, zip(shown.low, shown.high)))
    )
    scale = charts.log(12)
    axis = charts.fractions(values=[2.0**n for n in range(-6, 7)])
    y = alt.Y("effect:Q", title=None, scale=scale, axis=axis)
    colours = dict(zip(shown.arm.unique(), COLOURS))
    base = alt.Chart(shown).encode(
        x=alt.X("size:O", title=sizes, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("arm:N", sort=list(colours)),
        color=charts.by_name("arm", colours),
    )
    tooltip = tips.listed(
        {
            "arm:N": "way",
            "size:O": sizes,
            "effect:Q|.2r": f"over {whole}",
            "interval:N": "5–95 %",
            "n:Q": "searches",
        }
    )
    bars, _, dots = charts.curve(base, y, scale, tooltip, 80)
    costs = [word for word in WORDS.values() if word in set(shown.what)]
    menu = charts.menu("what", costs, WORDS[what], "compare")
    drawn = charts.controlled([bars, dots], menu, charts.goal_slider(sorted(shown.goal.unique())))
    title = charts.beside(f"what_chosen + ', over those of {whole}'")
    return charts.sized(alt.layer(charts.across(1, y=scale), drawn, title), 320)
