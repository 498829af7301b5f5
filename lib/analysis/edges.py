"""Winners at an edge of their search space, where a wider search could find a better one: curves
that need a mark.

Where a point was searched in two spaces, as momentum above and below 0.9, the edges are those of
their union.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.ranges import WHOLE
from lib.analysis.scaling import CURVE, SEARCH, by_curve
from lib.methods.intervals import Interval
from lib.methods.spaces import intervals
from lib.workloads.catalogue import workload

# Of an interval on its own scale, and the share of winners there from which on a curve is marked
OUTER, MOST = 0.1, 0.2
FEWEST = 5  # winners of a curve that tell a share
HALVES = {WHOLE: ("lee2021", "low-momentum")}  # spaces of which a range is the union
ENDS = ("lower", "upper")
COLUMNS = ["hyperparameter", "low", "high", "winners", *ENDS, "marked"]


def at_edges(trials: pd.DataFrame) -> pd.DataFrame:
    """The share of winners in the outer tenth of every interval, a row per curve and
    hyperparameter.

    trials: of `lib.records.results.read`.  Columns: those of CURVE; hyperparameter; low, high (of
    the interval); winners (one a search and batch size); lower, upper (shares); marked (whether
    either exceeds MOST of FEWEST winners or more).
    """
    met = trials.dropna(subset="steps") if len(trials) else trials
    rows = []
    for key, own in met.groupby(CURVE) if len(met) else ():
        workload, algorithm, *_ = key
        fastest = own.groupby(["batch_size", *SEARCH]).steps.idxmin()
        won = own.loc[fastest]
        for name, interval in _searched(workload, algorithm, own.get("space")).items():
            place = interval.place(won[name].to_numpy(float))
            place = 1 - place if interval.scale == "reverse-log" else place
            lower = float(np.mean(place < OUTER))
            upper = float(np.mean(place > 1 - OUTER))
            marked = len(won) >= FEWEST and max(lower, upper) > MOST
            row = name, interval.low, interval.high, len(won), lower, upper, marked
            rows.append((key, dict(zip(COLUMNS, row))))
    return by_curve(rows, COLUMNS)


def _searched(name: str, algorithm: str, spaces: pd.Series | None) -> dict[str, Interval]:
    """What was tuned, and the whole range from which it was drawn in any of these spaces."""
    work = workload(name)
    known = set(spaces.dropna()) if spaces is not None else ()
    asked = sorted({s for one in known or {work.space} for s in HALVES.get(one, (one,))})
    union = {}
    for name, own in pd.DataFrame([intervals(s, algorithm, work.decay) for s in asked]).items():
        low = min(interval.low for interval in own)
        high = max(interval.high for interval in own)
        union[name] = Interval(low, high, own[0].scale)
    return union


def marks(edges: pd.DataFrame) -> dict[tuple, str]:
    """Of every marked curve by its CURVE key, which edges its winners crowd at: "38 % at the lower
    edge of momentum".
    """
    found = {}
    for row in edges[edges.marked].to_dict("records"):
        name = row["hyperparameter"].replace("_", " ")
        for end in ENDS:
            if row[end] > MOST:
                words = f"{100 * row[end]:.0f}\u00a0% at the {end} edge of {name}"
                found.setdefault(tuple(row[c] for c in CURVE), []).append(words)
    return {key: "; ".join(words) for key, words in found.items()}
