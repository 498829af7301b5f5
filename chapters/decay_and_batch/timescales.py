"""Which rates and decays win at each batch size, and whether their timescale stays put.

Weight decay forgets: weights from B / (rate decay D) of the training ago have shrunk to 1/e, if D
examples are trained on in batches of B.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import replicates, scaling
from lib.analysis.scaling import Effect
from lib.workloads.catalogue import workload

BEST = 4  # trials of a search that count as good, of those with decay
VALUES = {
    "timescale": "timescale of decay (share of the training)",
    "weight_decay": "weight decay",
    "learning_rate": "learning rate",
}
KEYS = ["workload", "algorithm", "batch_size", "replicate"]


def good(found: pd.DataFrame) -> pd.DataFrame:
    """A row per search: KEYS, the geometric means of VALUES over its BEST trials with decay; loss,
    plain: the least validation loss with decay and without; error: that of the former.

    found: the trials of `searches.DECAYED`.
    """
    rows = []
    for key, own in found.groupby(KEYS) if len(found) else ():
        trials = own.dropna(subset="loss").sort_values("loss", kind="stable")
        decaying, plain = trials[trials.weight_decay > 0], trials[trials.weight_decay == 0]
        best = decaying.head(BEST)
        examples = best.epochs * workload(key[0]).train_size
        product = best.learning_rate * best.weight_decay
        values = best.assign(timescale=best.batch_size / (product * examples))[[*VALUES]]
        least = {"loss": decaying.loss.min(), "plain": plain.loss.min()}
        least["error"] = decaying.error.iloc[0]
        rows.append(dict(zip(KEYS, key)) | np.exp(np.log(values).mean()).to_dict() | least)
    return pd.DataFrame(rows, columns=[*KEYS, *VALUES, "loss", "plain", "error"])


def across(own: pd.DataFrame, value: str) -> Effect | None:
    """ln of a column of one method's `good` at the largest batch size over that at the smallest."""
    sizes = sorted(own.batch_size.unique())
    if len(sizes) < 2:
        return None
    return replicates.over(*(own[own.batch_size == size] for size in (sizes[-1], sizes[0])), value)


def power(own: pd.DataFrame, value: str) -> Effect | None:
    """The power of the batch size with which a column of one method's `good` grows: the mean of the
    slopes of its searches.
    """
    slopes = [
        np.polyfit(np.log(one.batch_size), np.log(one[value]), 1)[0]
        for _, one in own.groupby("replicate")
        if len(one) > 2
    ]
    return scaling.mean_of(slopes) if slopes else None


def at_low_end(found: pd.DataFrame, low: float, high: float) -> float:
    """The share of the good trials of all searches whose decay lies in the lowest tenth of its
    range, on a logarithmic scale.

    found: the trials of `searches.DECAYED`.
    """
    trials = found[found.weight_decay > 0].dropna(subset="loss")
    ranked = trials.sort_values("loss", kind="stable").groupby(KEYS).head(BEST)
    return float((ranked.weight_decay < low * (high / low) ** 0.1).mean())


def gain(own: pd.DataFrame) -> Effect | None:
    """ln of the least loss without decay over that with decay, the mean over searches."""
    values = np.log(own.plain / own.loss).groupby(own.replicate).mean().dropna()
    return scaling.mean_of(values) if len(values) else None
