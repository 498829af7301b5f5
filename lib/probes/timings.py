"""Timings of a machine and their records: taken once, while it does nothing else, and read from
then on.

What is timed are frozen dataclasses with `definition()`, what the record's name depends on besides
the settings, and `measure()`, a table with columns seconds, low and high among others.
"""

from __future__ import annotations

import os
import statistics
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from lib.fields import Count
from lib.measuring.experiment import Collection, Experiment
from lib.records import store
from lib.records.store import DATA

REPEATS = Count(10_000)


def alternately(calls: Sequence[Callable[[], object]], repeats: int) -> list[dict[str, float]]:
    """Median and range in seconds of so many rounds of calls, after one to warm up: {"seconds",
    "low", "high"} of each.
    """
    rounds = [[timeit.timeit(call, number=1) for call in calls] for _ in range(repeats + 1)][1:]
    return [
        {"seconds": statistics.median(times), "low": min(times), "high": max(times)}
        for times in zip(*rounds)
    ]


def spread(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """`alternately` of one call."""
    return alternately([call], repeats)[0]


def _place(what: object, folder: Path) -> Path:
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


def experiment(what: str, planned: Callable[[], Sequence]) -> Experiment:
    """The experiment that takes these timings; what: is timed, in words."""
    about = f"Time {what}, into data/timings/; leave the machine alone meanwhile."
    return Experiment(about, TIMINGS, "sets of timings", planned, alone=True)


def results(*planned, folder: Path | None = None) -> pd.DataFrame:
    """The timings that have a record, with their settings as columns; see
    `lib.records.store.gather`.
    """
    return TIMINGS.results(planned, folder)
