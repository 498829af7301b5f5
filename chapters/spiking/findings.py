"""What spiking costs in steps and in time, and how often units fire, beside rectifiers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.spiking.experiments import BATCH_SIZES, CNN_SIZES, FEW, JUDGED, LONGER, MORE, TIME
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import told

SPIKES, RECTIFIERS, CNNS = (TIME,), (0,), ((TIME, 0.0, "cnn"), (0, 0.0, "cnn"))
SMALL, LARGE = BATCH_SIZES[:1], BATCH_SIZES[-1:]
LENGTHS = f"steps, {LONGER} over {TIME} time steps"
CNN = "CNN, to 8 % error"
RATIOS = {  # what, as `over` takes it, and the range that was predicted before the records
    "steps of spikes over rectifiers": ("steps", (0.5, 2)),
    f"the same, batch size {SMALL[0]}": ("steps", (1, np.inf), SPIKES, RECTIFIERS, SMALL),
    f"the same, batch size {LARGE[0]:,}": ("steps", (0, 1), SPIKES, RECTIFIERS, LARGE),
    "firing in a time step, over rectifiers on": ("rate", (0, 0.5)),
    LENGTHS: ("steps", (1 / 1.5, 1.5), (LONGER,), SPIKES, FEW),
    f"{LENGTHS}, batch size {MORE[0]}": ("steps", (1 / 1.5, 1.5), (LONGER,), SPIKES, MORE),
    f"{CNN}: steps of spikes over rectifiers": ("steps", (0.5, 2), *CNNS, CNN_SIZES),
    f"{CNN}: firing in a time step, over rectifiers on": ("rate", (0, 0.8), *CNNS, CNN_SIZES),
}


def met(
    rows: pd.DataFrame, time: int, sparsity: float = 0.0, model: str = "mlp"
) -> pd.DataFrame:
    """Of the records: searches of these networks that met the goal at which they are compared."""
    chosen = (rows.time == time) & (rows.sparsity == sparsity) & (rows.model == model)
    return rows[chosen & (rows.goal == JUDGED[model])].dropna(subset="steps")


def over(
    rows: pd.DataFrame,
    value: str,
    above: tuple = SPIKES,
    below: tuple = RECTIFIERS,
    sizes: tuple = BATCH_SIZES,
) -> Effect | None:
    """ln of a column's ratio, the mean over these batch sizes, of two networks, as of `met`."""
    columns = (
        replicates.means(met(rows, *network), value, sizes, log=True)
        for network in (above, below)
    )
    return replicates.compared(*columns)


def findings(rows: pd.DataFrame, times: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; rows, times: the records."""
    rate = over(rows, "rate")
    seconds = times.pivot(index="batch_size", columns="time", values="seconds")
    return {
        "small": told.times(over(rows, "steps", sizes=SMALL)),
        "large": told.times(over(rows, "steps", sizes=LARGE)),
        "summed": TIME * float(np.exp(rate.value)),
        "slower": (seconds[TIME] / seconds[0]).tolist(),
    }


def predictions(rows: pd.DataFrame) -> pd.DataFrame:
    """What was predicted before the records, beside what came; rows: the records."""
    effects = {what: over(rows, value, *pair) for what, (value, _, *pair) in RATIOS.items()}
    found = [
        (what, *RATIOS[what][1], told.interval(effect)) for what, effect in effects.items()
    ]
    summed = tuple(TIME * end for end in told.interval(over(rows, "rate")))
    silent = [met(rows, time).silent.mean() for time in (TIME, 0)]
    found += [
        (f"firing in all {TIME} time steps, over rectifiers on", 1, np.inf, summed),
        ("silent units, over rectifiers never on", 1, np.inf, float(silent[0] / silent[1])),
        ("what pruning costs spikes, over rectifiers", 1, np.inf, None),  # none met the goal
    ]
    return told.predictions(found)
