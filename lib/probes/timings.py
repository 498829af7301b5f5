"""Timings of a machine and their records: taken once, while it does nothing else, and read from
then on.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pandas as pd

from lib.fields import Count
from lib.measuring.experiment import Collection
from lib.records import store
from lib.records.store import DATA

REPEATS = Count(10_000)


class Timing(Protocol):
    """What can be timed: a frozen dataclass of its settings."""

    def definition(self) -> dict:
        """What the record's name depends on besides the settings."""

    def measure(self) -> pd.DataFrame:
        """Take the times: a table with columns seconds, low and high among others."""


def alternately(calls: Sequence[Callable[[], object]], repeats: int) -> list[dict[str, float]]:
    """Median and range in seconds of so many rounds of calls, after one to warm up: {"seconds",
    "low", "high"} of each.
    """
    times = [[] for _ in calls]
    for _ in range(repeats + 1):
        for call, taken in zip(calls, times, strict=True):
            began = time.perf_counter()
            call()
            taken.append(time.perf_counter() - began)
    return [
        {"seconds": statistics.median(t[1:]), "low": min(t[1:]), "high": max(t[1:])} for t in times
    ]


def spread(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """`alternately` of one call."""
    return alternately([call], repeats)[0]


def _place(what: Timing, folder: Path) -> Path:
    return folder / f"{type(what).__name__.lower()}-{store.digest(what)}.csv"


# What is planned lies with each kind of timing.
TIMINGS = Collection(
    "timings",
    "set",
    DATA / "timings",
    _place,
    tuple,
    device=lambda what: getattr(what, "device", "cpu"),
    more={"cores": os.cpu_count()},
)
record, missing, run = TIMINGS.record, TIMINGS.missing, TIMINGS.run


def results(*planned: Timing, folder: Path | None = None) -> pd.DataFrame:
    """The timings that have a record, with their settings as columns; see
    `lib.records.store.gather`.
    """
    return TIMINGS.results(planned, folder)
