"""Momentum over its whole range: the better of two searches, above 0.9 as published, and below.

Each half of the range, 1 - momentum from 1e-4 to 0.1 and from 0.1 to 1, is searched with as many
trials, on the same split and in the same order of the data.  The search of the whole range is their
union.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling.steps import CURVE, SEARCH
from lib.records import on_record, store
from lib.studies import plans
from lib.studies.study import Study

WHOLE = "whole"  # the space of searches of the whole range
# Batch sizes and searches that both halves of a curve have, from which on it is read so
LEAST, SEARCHES = 5, 3
POINT = [*CURVE, "batch_size", *SEARCH]


def low_momentum() -> Study:
    """Every search below the published range that is on record."""
    planned = dict.fromkeys(cell for name in plans.LOW_MOMENTUM for cell in plans.study(name).cells)
    known = on_record.recorded_of(planned)
    return Study("low-momentum", "Momentum below the published range", known)


def whole(published: pd.DataFrame, low: pd.DataFrame) -> pd.DataFrame:
    """The trials of published searches, those with a counterpart in `low` joined by its trials.

    A curve is long if both halves have SEARCHES searches or more at LEAST batch sizes or more. It
    then keeps only the searches and batch sizes that both halves have, marked by space "whole".
    Pruned curves are divided by the dense one, so a network's curves with one method are joined
    only if all of them that have a low half are long; all others stay as published.
    """
    if not len(published) or not len(low):
        return published
    shared = published[POINT].drop_duplicates().merge(low[POINT].drop_duplicates())
    searches = shared.groupby([*CURVE, "batch_size"]).size()
    sizes = (searches >= SEARCHES).groupby(CURVE).sum()
    network = [name for name in CURVE if name != "sparsity"]
    long = sizes.index[(sizes >= LEAST).groupby(network).transform("all")]
    inside = pd.MultiIndex.from_frame(shared[_among(shared, long)])
    halves = [frame[_among(frame, inside)] for frame in (published, low)]
    joined = pd.concat(halves, ignore_index=True).assign(space=WHOLE)
    by = joined.groupby(POINT)
    searched = [name for name in ("hits", "race", "rungs") if name in joined]
    joined[searched] = by[searched].transform("first")  # of the union, not of a half
    joined["trials"] = by.trials.transform("size")
    joined["trials"] = joined.groupby(CURVE).trials.transform("first")
    rest = published[~_among(published, long)]
    found = pd.concat([rest, joined], ignore_index=True)
    heads = [head for half in (published, low) for head in half.attrs.get("provenance", ())]
    found.attrs.update(published.attrs, provenance=store.Shared(heads))
    return found


def _among(frame: pd.DataFrame, keys: pd.MultiIndex) -> np.ndarray:
    """Which rows have one of these keys, in the columns that the keys are named after, of which
    `algorithm` is one; the others are not looked at where that differs.
    """
    found = frame.algorithm.isin(keys.unique("algorithm")).to_numpy(copy=True)
    found[found] = pd.MultiIndex.from_frame(frame.loc[found, keys.names]).isin(keys)
    return found


def whole_curves(trials: pd.DataFrame) -> set[tuple]:
    """The keys (`scaling.CURVE`) of the curves that `whole` joined."""
    if "space" not in trials:
        return set()
    joined = trials.loc[trials.space == WHOLE, CURVE].drop_duplicates()
    return set(joined.itertuples(index=False, name=None))
