"""Momentum over its whole range: the better of two searches, above 0.9 as published, and below.

Each half of the range, 1 - momentum from 1e-4 to 0.1 and from 0.1 to 1, is searched with as many
trials, on the same split and in the same order of the data.  The search of the whole range is their
union.
"""

from __future__ import annotations

import dataclasses

import pandas as pd

from lib.analysis.scaling.steps import CURVE, SEARCH
from lib.records import store
from lib.records.store import DATA, record
from lib.studies import plans
from lib.studies.study import Study

PUBLISHED, LOW, WHOLE = "published", "low", "whole"
# Batch sizes and searches that both halves of a curve have, from which on it is read so
LEAST, SEARCHES = (
    5,
    3,
)


def low_momentum() -> Study:
    """Every search below the published range that is on record."""
    planned = dict.fromkeys(cell for name in plans.LOW_MOMENTUM for cell in plans.study(name).cells)
    known = tuple(cell for cell in planned if record(cell, DATA).exists())
    return Study("low-momentum", "Momentum below the published range", known)


def twins(study: Study) -> Study:
    """Of a study's searches with momentum their counterparts below the published range, as far as
    they are on record.
    """
    plain = {"space": None, "hits": 1, "race": None, "rungs": "goals"}
    both = {dataclasses.replace(c, **plain): c for c in low_momentum().cells}
    asked = (dataclasses.replace(c, **plain) for c in study.cells)
    return Study(study.name, study.title, tuple(both[c] for c in asked if c in both))


def whole(published: pd.DataFrame, low: pd.DataFrame) -> pd.DataFrame:
    """The trials of published searches, those with a counterpart in `low` joined by its trials.

    A curve is long if both halves have SEARCHES searches or more at LEAST batch sizes or more. It
    then keeps only the searches and batch sizes that both halves have, marked by space "whole".
    Pruned curves are divided by the dense one, so a network's curves with one method are joined
    only if all of them that have a low half are long; all others stay as published.
    """
    if not len(published) or not len(low):
        return published
    point = [*CURVE, "batch_size", *SEARCH]
    shared = published[point].drop_duplicates().merge(low[point].drop_duplicates())
    searches = shared.groupby([*CURVE, "batch_size"]).size()
    sizes = (searches >= SEARCHES).groupby(CURVE).sum()
    network = [name for name in CURVE if name != "sparsity"]
    together = (sizes >= LEAST).groupby(network).transform("all")
    long = sizes.index[together]
    shared = shared[pd.MultiIndex.from_frame(shared[CURVE]).isin(long)]
    inside = pd.MultiIndex.from_frame(shared)
    whole_curve = pd.MultiIndex.from_frame(published[CURVE]).isin(long)
    parts = [
        frame[pd.MultiIndex.from_frame(frame[point]).isin(inside)] for frame in (published, low)
    ]
    joined = pd.concat(parts, ignore_index=True).assign(space=WHOLE)
    for column in ("trials", "hits", "race", "rungs"):  # of the union, not of a half
        if column in joined:
            joined[column] = joined.groupby(point)[column].transform(
                "size" if column == "trials" else "first"
            )
    if "trials" in joined:
        joined["trials"] = joined.groupby(CURVE).trials.transform("first")
    found = pd.concat([published[~whole_curve], joined], ignore_index=True)
    found.attrs.update(published.attrs)
    heads = [*published.attrs.get("provenance", ()), *low.attrs.get("provenance", ())]
    found.attrs["provenance"] = store.Shared(heads)
    return found


def whole_curves(trials: pd.DataFrame) -> set[tuple]:
    """The keys (`scaling.CURVE`) of the curves that `whole` joined."""
    joined = (
        trials.loc[trials.space == WHOLE, CURVE].drop_duplicates()
        if "space" in trials
        else trials[:0]
    )
    return set(joined.itertuples(index=False, name=None))
