"""What it takes to train parts of a network, over training the whole: tables of `subnetworks`,
`.growing` and `.halves`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect

COSTS = ["steps", "adds", "sent"]


def beside(trials: pd.DataFrame, whole: str) -> pd.DataFrame:
    """A row per search of a part, goal and cost, beside the search of the whole network: arm, size,
    replicate, what (of COSTS), goal, value and value_whole (each the least of any trial, NaN where
    none met the goal), and ratio.

    trials: arm, size (workers, or the batch size), replicate, and COST@GOAL for steps and others of
    COSTS.  whole: the arm of the whole network.
    """
    keys = ["arm", "size", "replicate"]
    costs = trials.filter(regex=f"^({'|'.join(COSTS)})@").columns
    least = trials.groupby(keys, sort=False)[[*costs]].min()
    long = least.melt(ignore_index=False).reset_index()
    long[["what", "goal"]] = long.pop("variable").str.split("@", expand=True)
    long = long.astype({"goal": float})
    own = long.arm == whole
    rivals = long[own].drop(columns="arm")
    on = ["size", "replicate", "what", "goal"]
    found = long[~own].merge(rivals, on=on, suffixes=("", "_whole"), validate="m:1")
    return found.assign(ratio=found.value / found.value_whole)


def hardest(searches: pd.DataFrame) -> pd.DataFrame:
    """The rows of `beside` at the hardest goal."""
    return searches[searches.goal == searches.goal.min()]


def mean_ratio(ratios: pd.Series) -> Effect | None:
    """ln of the geometric mean over searches; None if a search of either missed the goal."""
    return scaling.mean_of(np.log(ratios)) if len(ratios) and ratios.notna().all() else None


def ratios(searches: pd.DataFrame) -> pd.DataFrame:
    """Geometric means of `beside`: goal, what, arm, size, effect, low, high (90 %; NaN unless all
    searches meet the goal), n (searches) and met (those of the part that meet it).
    """
    by = ["goal", "what", "arm", "size"]
    rows = []
    for keys, own in searches.groupby(by, sort=False):
        found = mean_ratio(own.ratio)
        ends = found.row().values() if found else [np.nan] * 3
        rows.append((*keys, *ends, len(own), own.value.count()))
    return pd.DataFrame(rows, columns=[*by, "effect", "low", "high", "n", "met"])
