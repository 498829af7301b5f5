"""Winners at an edge of their search space, where a wider search could find a better one: curves
that need a mark.

Where a point was searched in two spaces, as momentum above and below 0.9, the edges are those of
their union.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.ranges import LOW, WHOLE
from lib.analysis.scaling import CURVE, SEARCH
from lib.methods.intervals import Interval
from lib.methods.spaces import intervals
from lib.workloads.catalogue import workload

# Of an interval on its own scale, and the share of winners there from which on a curve is marked
OUTER, MOST = (
    0.1,
    0.2,
)
FEWEST = 5  # winners of a curve that tell a share
# Spaces that a name of `ranges` stands for
HALVES = {
    WHOLE: ("lee2021", "low-momentum"),
    LOW: ("low-momentum",),
}
ENDS = ("lower", "upper")


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
        won = own.loc[own.groupby(["batch_size", *SEARCH]).steps.idxmin()]
        for name, interval in _searched(key[0], key[1], own.get("space")).items():
            # As values rise: on the reverse-log scale places fall, and 0 is the highest value's.
            place = (
                interval.place(won[name].to_numpy(float))
                if interval.high > interval.low
                else np.full(len(won), np.nan)
            )
            place = 1 - place if interval.scale == "reverse-log" else place
            lower, upper = float((place < OUTER).mean()), float((place > 1 - OUTER).mean())
            marked = len(won) >= FEWEST and max(lower, upper) > MOST
            rows.append((*key, name, interval.low, interval.high, len(won), lower, upper, marked))
    return pd.DataFrame(
        rows, columns=[*CURVE, "hyperparameter", "low", "high", "winners", *ENDS, "marked"]
    )


def _searched(name: str, algorithm: str, spaces: pd.Series | None) -> dict[str, Interval]:
    """What was tuned, and the whole range from which it was drawn in any of these spaces."""
    work = workload(name)
    known = {str(s) for s in spaces.dropna()} if spaces is not None else set()
    asked = sorted({s for one in known or {work.space} for s in HALVES.get(one, (one,))})
    found = [intervals(space, algorithm, work.decay) for space in asked]
    return {
        field: Interval(
            min(f[field].low for f in found),
            max(f[field].high for f in found),
            found[0][field].scale,
        )
        for field in found[0]
    }


def marks(edges: pd.DataFrame) -> dict[tuple, str]:
    """Of every marked curve by its CURVE key, which edges its winners crowd at: "38 % at the lower
    edge of momentum".
    """
    found = {}
    for row in edges[edges.marked].itertuples():
        ends = [(getattr(row, end), end) for end in ENDS if getattr(row, end) > MOST]
        words = [
            f"{100 * share:.0f}\u00a0% at the {end} edge of {row.hyperparameter.replace('_', ' ')}"
            for share, end in ends
        ]
        key = tuple(getattr(row, name) for name in CURVE)
        found[key] = "; ".join([*([found[key]] if key in found else []), *words])
    return found
