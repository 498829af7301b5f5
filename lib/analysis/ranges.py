"""Search ranges: momentum over its whole range, winners at the edges of ranges, and effective
learning rates.

Each half of momentum's range, 1 - momentum from 1e-4 to 0.1 (as published) and from 0.1 to 1, is
searched with equally many trials, on the same split and in the same order of the data.  The search
of the whole range is their union, and its edges are those of the union.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import CURVE, POINT, SEARCH, by_curve
from lib.methods.intervals import Interval
from lib.methods.spaces import intervals
from lib.records import searches, store
from lib.studies import plans
from lib.studies.study import Study
from lib.wording import percent
from lib.workloads.catalogue import workload

WHOLE = "whole"  # the space of searches of the whole range
# A curve is joined if both halves have at least so many batch sizes and searches
LEAST, SEARCHES = 5, 3


def low_momentum() -> Study:
    """Every search below the published range that is on record."""
    studies = map(plans.study, plans.LOW_MOMENTUM)
    planned = dict.fromkeys(search for study in studies for search in study.searches)
    recorded = searches.recorded(planned).values()
    return Study("low-momentum", "Momentum below the published range", recorded)


def whole(published: pd.DataFrame, low: pd.DataFrame) -> pd.DataFrame:
    """The trials of published searches, joined with those of their counterparts in `low`.

    A curve is long if both halves have SEARCHES searches or more at LEAST batch sizes or more.  It
    then keeps only the searches and batch sizes that both halves have, marked by space "whole".
    Since pruned curves are divided by the dense one, a network's curves with one method are joined
    only if all of them that have a low half are long; all others stay as published.
    """
    if not len(published) or not len(low):
        return published
    points = published[POINT].drop_duplicates().merge(low[POINT].drop_duplicates())
    searches = points.groupby([*CURVE, "batch_size"]).size()
    sizes = (searches >= SEARCHES).groupby(CURVE).sum()
    network = [name for name in CURVE if name != "sparsity"]
    enough = (sizes >= LEAST).groupby(network).transform("all")
    long = sizes.index[enough].to_frame(index=False)
    inside = points.merge(long)
    halves = [half[_among(half, inside)] for half in (published, low)]
    joined = pd.concat(halves, ignore_index=True).assign(space=WHOLE)
    by = joined.groupby(POINT)
    effort = [name for name in ("hits", "race", "rungs") if name in joined]
    joined[effort] = by[effort].transform("first")  # of the union, not of a half
    # Rows are searches or trials
    joined["trials"] = by.trials.transform("sum" if "record" in joined else "size")
    joined["trials"] = joined.groupby(CURVE).trials.transform("first")
    rows = pd.concat([published[~_among(published, long)], joined], ignore_index=True)
    heads = [head for half in (published, low) for head in half.attrs.get("provenance", ())]
    rows.attrs.update(published.attrs, provenance=store.Shared(heads))
    return rows


def _among(rows: pd.DataFrame, keys: pd.DataFrame) -> np.ndarray:
    """Which rows equal one of these keys in the keys' columns, which include `algorithm`; the other
    columns are only compared for methods that occur in the keys.
    """
    among = rows.algorithm.isin(keys.algorithm).to_numpy(copy=True)
    values = pd.MultiIndex.from_frame(rows.loc[among, list(keys)])
    among[among] = values.isin(pd.MultiIndex.from_frame(keys))
    return among


def whole_curves(trials: pd.DataFrame) -> set[tuple]:
    """The keys (`scaling.CURVE`) of the curves that `whole` joined."""
    if "space" not in trials:
        return set()
    joined = trials.loc[trials.space == WHOLE, CURVE]
    return set(joined.itertuples(index=False, name=None))


# --- winners at an edge, where a wider search could find a better one -----------------------------


# The outer part of an interval on its scale, and the share of winners there that marks a curve
OUTER, MOST = 0.1, 0.2
FEWEST = 5  # winners of a curve that suffice for a share
HALVES = {WHOLE: ("lee2021", "low-momentum")}  # spaces whose union a range is
ENDS = ("lower", "upper")
COLUMNS = ["hyperparameter", *ENDS, "marked"]


def at_edges(trials: pd.DataFrame) -> pd.DataFrame:
    """The share of winners in the outer tenth of every interval, a row per curve and
    hyperparameter.

    trials: from `lib.records.results.read`, or winners (`searches.with_winners`); there is one
    winner per search and batch size.  Columns: those of CURVE; hyperparameter; lower, upper
    (shares); marked (whether either exceeds MOST, among FEWEST winners or more).
    """
    met = trials.dropna(subset="steps") if len(trials) else trials
    rows = []
    for key, curve in met.groupby(CURVE) if len(met) else ():
        winners = curve.loc[curve.groupby(["batch_size", *SEARCH]).steps.idxmin()]
        for name, interval in _searched(*key[:2], curve.get("space")).items():
            place = interval.place(winners[name].to_numpy(float))
            if interval.scale == "reverse-log":
                place = 1 - place
            lower = float(np.mean(place < OUTER))
            upper = float(np.mean(place > 1 - OUTER))
            marked = len(winners) >= FEWEST and max(lower, upper) > MOST
            row = dict(zip(COLUMNS, (name, lower, upper, marked)))
            rows.append((key, row))
    return by_curve(rows, COLUMNS)


def _searched(name: str, algorithm: str, spaces: pd.Series | None) -> dict[str, Interval]:
    """What was tuned, and the whole range from which it was drawn in these spaces together."""
    work = workload(name)
    spaces = set(() if spaces is None else spaces.dropna()) or {work.space}
    union = {}
    for half in sorted({half for space in spaces for half in HALVES.get(space, (space,))}):
        for tuned, interval in intervals(half, algorithm, work.decay).items():
            wide = union.get(tuned, interval)
            low, high = min(wide.low, interval.low), max(wide.high, interval.high)
            union[tuned] = Interval(low, high, wide.scale)
    return union


def marks(edges: pd.DataFrame) -> dict[tuple, str]:
    """The edges at which the winners of every marked curve crowd, by its CURVE key: "38 % at the
    lower edge of momentum".
    """
    crowded = {}
    for row in edges[edges.marked].to_dict("records"):
        name = row["hyperparameter"].replace("_", " ")
        for end in ENDS:
            if row[end] > MOST:
                words = f"{percent(row[end], 0)} at the {end} edge of {name}"
                crowded.setdefault(tuple(row[c] for c in CURVE), []).append(words)
    return {key: "; ".join(words) for key, words in crowded.items()}


# --- effective learning rates ------------------------------------------------------------------


def builds_up_in(trials: pd.DataFrame) -> pd.Series:
    """The steps in which a trial's momentum builds up, 1 / (1 - momentum); 1 without momentum."""
    return 1 / (1 - trials.get("momentum", pd.Series(0.0, trials.index)).fillna(0))


def effective(trials: pd.DataFrame) -> pd.Series:
    """The learning rate over one minus the momentum: the effective rate once momentum has built up.
    """
    return trials.learning_rate * builds_up_in(trials)
