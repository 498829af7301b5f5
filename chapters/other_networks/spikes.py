"""What spiking costs in steps and time compared with rectifiers, and how often units fire."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.other_networks.spiking import (
    BATCH_SIZES,
    CNN_SIZES,
    FEW,
    JUDGED,
    LONGER,
    MORE,
    TIME,
)
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import charts, estimates, tips

SPIKES, RECTIFIERS, CNNS = (TIME,), (0,), ((TIME, 0.0, "cnn"), (0, 0.0, "cnn"))
SMALL, LARGE = BATCH_SIZES[:1], BATCH_SIZES[-1:]
LENGTHS = f"steps, {LONGER} over {TIME} time steps"
CNN = "CNN, to 8 % error"
NAMES = {
    0: "rectifiers",
    TIME: f"spikes, {TIME} time steps",
    LONGER: f"spikes, {LONGER} time steps",
}
RATIOS = {  # name: (column, range predicted before measuring, further arguments of `ratio`)
    "steps of spikes over rectifiers": ("steps", (0.5, 2)),
    f"the same, batch size {SMALL[0]}": ("steps", (1, np.inf), SPIKES, RECTIFIERS, SMALL),
    f"the same, batch size {LARGE[0]:,}": ("steps", (0, 1), SPIKES, RECTIFIERS, LARGE),
    "spikes per time step, over rectifiers on": ("rate", (0, 0.5)),
    LENGTHS: ("steps", (1 / 1.5, 1.5), (LONGER,), SPIKES, FEW),
    f"{LENGTHS}, batch size {MORE[0]}": ("steps", (1 / 1.5, 1.5), (LONGER,), SPIKES, MORE),
    f"{CNN}: steps of spikes over rectifiers": ("steps", (0.5, 2), *CNNS, CNN_SIZES),
    f"{CNN}: spikes per time step, over rectifiers on": ("rate", (0, 0.8), *CNNS, CNN_SIZES),
}


def met(
    rows: pd.DataFrame, time: int, sparsity: float = 0.0, model: str = "mlp"
) -> pd.DataFrame:
    """The recorded searches of these networks that met the goal at which they are compared."""
    chosen = (rows.time == time) & (rows.sparsity == sparsity) & (rows.model == model)
    return rows[chosen & (rows.goal == JUDGED[model])].dropna(subset="steps")


def ratio(
    rows: pd.DataFrame,
    column: str,
    above: tuple = SPIKES,
    below: tuple = RECTIFIERS,
    sizes: tuple = BATCH_SIZES,
) -> Effect | None:
    """ln of a column's ratio between two networks (arguments of `met`), the mean over `sizes`."""
    logs = (
        replicates.means(met(rows, *network), column, sizes)
        for network in (above, below)
    )
    return replicates.compared(*logs)


def values(rows: pd.DataFrame, times: pd.DataFrame) -> dict[str, object]:
    """Values in the section's sentences; rows, times: the records."""
    seconds = times.pivot(index="batch_size", columns="time", values="seconds")
    return {
        "spikes_time": TIME,
        "spikes_small": estimates.times(ratio(rows, "steps", sizes=SMALL)),
        "spikes_summed": TIME * float(np.exp(ratio(rows, "rate").value)),
        "spikes_slower": (seconds[TIME] / seconds[0]).tolist(),
    }


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Predictions made before measuring, beside their outcomes; rows: the records."""
    ratios = [
        (what, *ends, estimates.interval(ratio(rows, column, *networks)))
        for what, (column, ends, *networks) in RATIOS.items()
    ]
    summed = tuple(TIME * end for end in estimates.interval(ratio(rows, "rate")))
    spikes, rectifiers = (met(rows, time).silent.mean() for time in (TIME, 0))
    return estimates.predictions([
        *ratios,
        (f"spikes in all {TIME} time steps, over rectifiers on", 1, np.inf, summed),
        ("silent units, over rectifiers never on", 1, np.inf, float(spikes / rectifiers)),
        ("cost of pruning with spikes, over rectifiers", 1, np.inf, None),  # none met the goal
    ])  # fmt: skip


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, one line for rectifiers and one per number of time steps."""
    dense = pd.concat(met(rows, time) for time in NAMES)
    points = replicates.by_size(dense, "steps", by=("time",))
    points["network"] = points.time.map(NAMES)
    colours = dict(zip(NAMES.values(), (charts.BLUE, charts.ORANGE, charts.PURPLE)))
    ends = [points.steps.min() / 1.6, points.steps.max() * 1.6]
    scale = charts.log(domain=ends, clamp=True)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    base = alt.Chart(points).encode(
        x=charts.batch_axis(points.batch_size),
        color=charts.by_name("network", colours, columns=1),
    )
    tooltip = [tips.NETWORK, tips.BATCH_SIZE, tips.STEPS, tips.tip("searches:Q", "searches")]
    return charts.sized(alt.layer(*charts.curve(base, y, scale, tooltip)), 340)
