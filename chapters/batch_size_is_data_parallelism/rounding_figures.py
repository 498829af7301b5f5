"""The figure of how far worker processes stray from one process."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lib.page import charts

FLOOR = -18  # the power of ten at which a logarithmic axis shows an exact zero


def by_step(differences: pd.DataFrame, units: dict[str, float]) -> alt.LayerChart:
    """Largest difference of any parameter against the training step, a line per number of workers
    and precision.

    differences: workers, precision, step, difference; units: precision -> rounding unit, drawn as
    lines across.
    """
    shown = differences.assign(height=differences.difference.clip(lower=10.0**FLOOR))
    # Dense enough for the eye
    shown = shown[shown.step.map(lambda step: step <= 20 or step % 10 == 0)]
    pick, faded = charts.picked("workers")
    axis = charts.powers([FLOOR, -15, -12, -9, -6, -3], {FLOOR: "exactly 0"})
    ticks = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
    x = alt.X("step:Q", title="training step").scale(type="log", nice=False).axis(values=ticks)
    y = alt.Y("height:Q", title="largest difference of any parameter", axis=axis).scale(
        type="log", domain=[10.0**FLOOR, 1]
    )
    lines = (
        alt.Chart(shown)
        .mark_line(point=True)
        .encode(
            x=x,
            y=y,
            color=alt.Color("workers:O", title="workers").scale(
                range=[charts.GUIDE, charts.RED, charts.BLUE, charts.ORANGE]
            ),
            strokeDash=alt.StrokeDash("precision:N", legend=None),
            opacity=faded,
            tooltip=[
                alt.Tooltip("workers:O", title="workers"),
                alt.Tooltip("precision:N", title="precision"),
                alt.Tooltip("step:Q", title="training step", format=","),
                alt.Tooltip("difference:Q", title="largest difference", format=".1e"),
            ],
        )
        .add_params(pick)
    )
    across = pd.DataFrame(
        {"unit": units.values(), "label": [f"rounding unit of {name}" for name in units]}
    )
    rules = alt.Chart(across).mark_rule(color=charts.GUIDE).encode(y="unit:Q")
    labels = (
        alt.Chart(across)
        .mark_text(align="left", dx=4, dy=-8)
        .encode(x=alt.value(0), y="unit:Q", text="label:N")
    )
    return alt.layer(rules, labels, lines).properties(width="container", height=380)
