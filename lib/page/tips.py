"""Tooltips, in words that all figures share."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd


def tip(field: str, title: str, format: str = alt.Undefined) -> alt.Tooltip:
    """A tooltip for a column with its type ("error:Q"): words for it, and Vega's format."""
    return alt.Tooltip(field, title=title, format=format)


def listed(columns: Mapping[str, str]) -> list[alt.Tooltip]:
    """A tooltip per column, from its type, its Vega format after a bar, and words for it:
    {"error:Q|.2%": "test error"}.
    """
    parts = ((title, *column.split("|")) for column, title in columns.items())
    return [tip(field, title, *format) for title, field, *format in parts]


BATCH_SIZE = tip("batch_size:Q", "batch size", ",")
STEPS = tip("steps:Q", "steps to result", ",.0f")
SPARSITY = tip("sparsity:N", "sparsity")
NETWORK = tip("network:N", "network")
CURVE = tip("curve:N", "network and method")
INTERVAL = tip("interval:N", "5–95 %")
SEARCHES = tip("replicates:Q", "searches")
# What distinguishes curves, in words
FIELDS = {"algorithm": "training method", "method": "how it was pruned", "part": "curve"}
KNOWN_FROM = {False: "its own searches", True: "the scatter of other networks' searches"}


def ends() -> list[alt.Tooltip]:
    """Both ends of an interval of steps."""
    return listed({"low:Q|,.0f": "interval, from", "high:Q|,.0f": "interval, to"})


def points(field: str) -> list[alt.Tooltip]:
    """A point of a curve, its interval and its searches, for rows from `with_sources`;
    field: the column that distinguishes curves.
    """
    name = tip(f"{field}:N", FIELDS.get(field, field.replace("_", " ")))
    about = {
        "known:N": "interval known from",
        "replicates:Q": "searches",
        "missed:Q": "of these, missed the goal",
        "trials:Q": "trials of a search",
    }
    return [name, BATCH_SIZE, STEPS, *ends(), *listed(about)]


def with_sources(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the source of their intervals in words; rows: with `borrowed`, as from
    `scaling.across_replicates`.
    """
    return rows.assign(known=rows.borrowed.map(KNOWN_FROM))
