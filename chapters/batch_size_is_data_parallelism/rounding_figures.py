"""The figure of how far worker processes stray from one process."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips

FLOOR = -18  # the power of ten at which a logarithmic axis shows an exact zero
COLOURS = [charts.GUIDE, charts.RED, charts.BLUE, charts.ORANGE]


def by_step(differences: pd.DataFrame, units: dict[str, float]) -> alt.LayerChart:
    """Largest difference of any parameter against the training step, a line per number of workers
    and precision.

    differences: workers, precision, step, difference; units: precision -> rounding unit, drawn as
    lines across.
    """
    shown = differences.assign(height=differences.difference.clip(lower=10.0**FLOOR))
    # Dense enough for the eye
    shown = shown[(shown.step <= 20) | (shown.step % 10 == 0)]
    scale = alt.Scale(type="log", domain=[10.0**FLOOR, 1])
    axis = charts.powers([FLOOR, -15, -12, -9, -6, -3], {FLOOR: "exactly 0"})
    title = "largest difference of any parameter"
    ticks = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
    x = alt.X("step:Q", title="training step").scale(type="log", nice=False).axis(values=ticks)
    lines = alt.Chart(shown).mark_line(point=True)
    lines = lines.encode(
        x=x,
        y=alt.Y("height:Q", title=title, axis=axis, scale=scale),
        color=alt.Color("workers:O", title="workers").scale(range=COLOURS),
        strokeDash=alt.StrokeDash("precision:N", legend=None),
        tooltip=[
            tips.tip("workers:O", "workers"),
            tips.tip("precision:N", "precision"),
            tips.tip("step:Q", "training step", ","),
            tips.tip("difference:Q", "largest difference", ".1e"),
        ],
    )
    names = [f"rounding unit of {name}" for name in units]
    across = alt.Chart(pd.DataFrame({"unit": units.values(), "label": names})).encode(y="unit:Q")
    labels = across.mark_text(align="left", dx=4, dy=-8).encode(x=alt.value(0), text="label:N")
    return charts.sized(alt.layer(across.mark_rule(color=charts.GUIDE), labels, lines), 380)
