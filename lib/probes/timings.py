"""Timings of a machine and their records: taken once, while it does nothing else, and read from then on.

python -m lib.probes.timings     # takes those that have no record, one thread each; leave the machine alone meanwhile
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import pandas as pd

from lib import SOURCE
from lib.records import store
from lib.records.places import DATA

FOLDER = DATA / "timings"


class Timing(Protocol):
    """What can be timed: a frozen dataclass of its settings."""

    def definition(self) -> dict:
        """What the record's name depends on besides the settings."""

    def measure(self) -> pd.DataFrame:
        """Take the times: a table with columns seconds, low and high among others."""


def alternately(calls: Sequence[Callable[[], object]], repeats: int) -> list[dict[str, float]]:
    """Median and range in seconds of so many rounds of calls, after one to warm up: {"seconds", "low", "high"} of each."""
    times = [[] for _ in calls]
    for _ in range(repeats + 1):
        for call, own in zip(calls, times, strict=True):
            began = time.perf_counter()
            call()
            own.append(time.perf_counter() - began)
    return [{"seconds": statistics.median(t[1:]), "low": min(t[1:]), "high": max(t[1:])} for t in times]


def spread(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """`alternately` of one call."""
    return alternately([call], repeats)[0]


def record(what: Timing, folder: Path = FOLDER) -> Path:
    """Where a set of timings lies."""
    return folder / f"{type(what).__name__.lower()}-{store.digest(what)}.csv"


def results(*planned: Timing, folder: Path = FOLDER) -> pd.DataFrame:
    """The timings that have a record, with their settings as columns; see `records.gather`."""
    return store.gather(planned, lambda what: record(what, folder))


def run(planned: Iterable[Timing], folder: Path = FOLDER) -> None:
    """Measure what has no record, with one thread."""
    import torch  # slow to import, and most chapters only read

    from lib.measuring import machine

    machine.use_one_core()
    for what in planned:
        if not (file := record(what, folder)).exists():
            provenance = {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "torch": torch.__version__,
                "device": machine.device_name("cpu"), "cores": os.cpu_count(), "source": SOURCE,
            }  # fmt: skip
            store.write(file, what, what.measure(), provenance)


def main(arguments: list[str] | None = None) -> None:
    """The command line: measure all that the book plans, or say that it is on record."""
    from lib.probes import message_times, step_times  # which import this module

    about = "Take the timings that have no record; leave the machine alone meanwhile."
    argparse.ArgumentParser(prog="python -m lib.probes.timings", description=about).parse_args(arguments)
    planned = (*step_times.PLANNED, *message_times.PLANNED)
    missing = [what for what in planned if not record(what).exists()]
    print(f"{len(planned)} sets of timings, {len(missing) or 'none'} to take")
    run(missing)


if __name__ == "__main__":
    from lib.probes import timings  # as a module, not as __main__

    timings.main()
