"""How hard a pruned network is to train on one of our splits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import CURVE, by_curve, steps_to_result


def on_one_split(trials: pd.DataFrame, split: int) -> pd.DataFrame:
    """How long searches take on one of our splits, a row per curve that was searched on others,
    too.

    trials: as of `lib.records.results.read`.  Columns: those of `CURVE`, searches (on others, the
    most at a batch size), lacking (batch sizes not searched on this one), factor (K* on this split
    over the geometric mean on the others, itself the geometric mean over batch sizes; a search that
    missed the goal counts as its last step; NaN if none is on this split).
    """
    rows = []
    for key, own in steps_to_result(trials).groupby(CURVE) if len(trials) else ():
        own = own.assign(log=np.log(own.steps.fillna(own.last_step)))
        here = own[own.split == split].groupby("batch_size").log
        others = own[own.split != split].groupby("batch_size").log
        if not len(others):
            continue
        off = here.mean() - others.mean()
        found = {
            "searches": int(others.size().max()),
            "lacking": int(off.isna().sum()),
            "factor": np.exp(off.mean()),
        }
        rows.append((key, found))
    return by_curve(rows, ["searches", "lacking", "factor"])
