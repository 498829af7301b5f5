"""What pointing at a mark tells, in the words that all figures share."""

from __future__ import annotations

import altair as alt
import pandas as pd

BATCH_SIZE = alt.Tooltip("batch_size:Q", title="batch size", format=",")
STEPS = alt.Tooltip("steps:Q", title="steps to result", format=",.0f")
SPARSITY = alt.Tooltip("sparsity:N", title="sparsity")
NETWORK = alt.Tooltip("network:N", title="network")
CURVE = alt.Tooltip("curve:N", title="network and method")
INTERVAL = alt.Tooltip("interval:N", title="5–95 %")
SEARCHES = alt.Tooltip("replicates:Q", title="searches")
TRIALS = alt.Tooltip("trials:Q", title="trials of a search")
# What tells curves apart, in words
FIELDS = {
    "algorithm": "training method",
    "method": "how it was pruned",
    "part": "curve",
}
KNOWN_FROM = {False: "its own searches", True: "the scatter of other networks' searches"}


def ends(low: str = "low", high: str = "high") -> list[alt.Tooltip]:
    """Both ends of an interval of steps."""
    titles = {low: "interval, from", high: "interval, to"}
    return [alt.Tooltip(f"{name}:Q", title=title, format=",.0f") for name, title in titles.items()]


def points(field: str, regime: bool = True) -> list[alt.Tooltip]:
    """A point of a curve, its interval and its searches, for rows that are `known`; field: what
    tells curves apart.
    """
    return [
        alt.Tooltip(f"{field}:N", title=FIELDS.get(field, field.replace("_", " "))),
        BATCH_SIZE,
        STEPS,
        *ends(),
        alt.Tooltip("known:N", title="interval known from"),
        SEARCHES,
        alt.Tooltip("missed:Q", title="of these, missed the goal"),
        TRIALS,
        *([alt.Tooltip("regime:N", title="regime")] if regime else []),
    ]


def known(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their intervals are known from, in words; rows: with `borrowed`, as of
    `scaling.across_replicates`.
    """
    return rows.assign(known=rows.borrowed.map(KNOWN_FROM))
