"""The figure of how far worker processes deviate from one process."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts, tips

FLOOR = -18  # the power of ten at which a logarithmic axis shows an exact zero
COLOURS = [charts.GUIDE, charts.RED, charts.BLUE, charts.ORANGE]


def by_step(differences: pd.DataFrame, units: dict[str, float]) -> alt.LayerChart:
    """Largest difference of any parameter against the training step, one line per number of workers
    and precision.

    differences: workers, precision, step, difference; units: precision -> rounding unit, drawn as
    horizontal lines.
    """
    rows = differences.assign(height=differences.difference.clip(lower=10.0**FLOOR))
    rows = rows[(rows.step <= 20) | (rows.step % 10 == 0)]  # dense enough for the eye
    up = alt.Scale(type="log", domain=[10.0**FLOOR, 1])
    powers = charts.powers([FLOOR, -15, -12, -9, -6, -3], {FLOOR: "exactly 0"})
    right = alt.Scale(type="log", nice=False)
    steps = alt.Axis(values=[digit * 10**power for power in range(6) for digit in (1, 2, 5)])
    title = "largest difference of any parameter"
    colours = alt.Scale(range=COLOURS)
    tooltip = {
        "workers:O": "workers",
        "precision:N": "precision",
        "step:Q|,": "training step",
        "difference:Q|.1e": "largest difference",
    }
    lines = alt.Chart(rows).mark_line(point=True)
    lines = lines.encode(
        x=alt.X("step:Q", title="training step", scale=right, axis=steps),
        y=alt.Y("height:Q", title=title, scale=up, axis=powers),
        color=alt.Color("workers:O", title="workers", scale=colours),
        strokeDash=alt.StrokeDash("precision:N", legend=None),
        tooltip=tips.listed(tooltip),
    )
    names = [f"rounding unit of {name}" for name in units]
    units = pd.DataFrame({"unit": units.values(), "label": names})
    across = alt.Chart(units).encode(y="unit:Q")
    rules = across.mark_rule(color=charts.GUIDE)
    labels = across.mark_text(align="left", dx=4, dy=-8).encode(x=alt.value(0), text="label:N")
    return charts.sized(alt.layer(rules, labels, lines), 380)
