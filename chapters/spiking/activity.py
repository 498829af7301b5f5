"""What spiking costs in steps and how sparse it is, beside rectifiers, by searches of both."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from chapters.spiking import searches
from chapters.spiking.searches import BATCH_SIZES, JUDGED, TIME
from lib.analysis import replicates
from lib.analysis.scaling import Effect

FIELDS = ["time", "sparsity", "batch_size", "replicate", "model"]
COLUMNS = [*FIELDS, "goal", "steps", "rate", "silent", "first"]


def at_goal(
    rows: pd.DataFrame, time: int, sparsity: float = 0.0, model: str = "mlp"
) -> pd.DataFrame:
    """The searches of these networks that met the goal they are compared at."""
    chosen = (rows.time == time) & (rows.sparsity == sparsity) & (rows.model == model)
    return rows[chosen & (rows.goal == JUDGED[model])].dropna(subset="steps")


def over(
    rows: pd.DataFrame,
    value: str,
    above: tuple = (TIME,),
    below: tuple = (0,),
    sizes: Sequence[int] = BATCH_SIZES,
) -> Effect | None:
    """ln of a column's ratio, the mean over these batch sizes.

    Args:
        rows: of the records.
        value: "steps" or "rate".
        above, below: the two networks, as `at_goal` takes them.
        sizes: examples.
    """
    pair = (at_goal(rows, *network) for network in (above, below))
    return replicates.compared(*(replicates.means(own, value, sizes, log=True) for own in pair))


def results() -> pd.DataFrame:
    """All that is on record: a row per search and goal, as of `searches.Search.measure`."""
    found = searches.SPIKES.results()
    return found if len(found) else found.reindex(columns=COLUMNS)
