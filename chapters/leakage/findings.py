"""What messages tell of the images, against steps and batch size, and what the page says of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.leakage import leakage
from lib.analysis import scaling
from lib.analysis.scaling import Effect

ESTIMATORS = {False: "usual estimator", True: "unbiased estimator"}
POINT = ["workload", "batch_size", "alpha", "unbiased"]
GOAL, HARDEST = 0.06, 0.04


def measured() -> pd.DataFrame:
    """A row per search and goal on record, with lost: the share of the pixels' variance that the
    decoder does not rebuild.
    """
    found = leakage.LEAKAGE.results()
    return found.assign(lost=1 - found.rebuilt) if len(found) else found


def over(one: pd.DataFrame, other: pd.DataFrame, what: str) -> Effect | None:
    """ln of the geometric mean of `what` in searches over that in others of the same replicates;
    None unless all have one.
    """
    both = [own.set_index("replicate")[what] for own in (one, other)]
    logs = np.log(both[0] / both[1])
    return scaling.mean_of(logs) if len(logs) and logs.notna().all() else None


def with_penalty(found: pd.DataFrame, size: int, alpha: float, goal: float):
    """Of each network and estimator: its key, the searches with this penalty, and those without."""
    own = found[(found.batch_size == size) & (found.goal == goal)] if len(found) else found
    for key, some in own[own.alpha == alpha].groupby(["workload", "unbiased"]) if len(own) else ():
        yield key, some, own[(own.alpha == 0) & (own.workload == key[0])]
