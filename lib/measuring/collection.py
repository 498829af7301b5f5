"""Measurements of one kind, each with a record: where it lies, which are missing, how they are
taken and read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from lib.measuring import runner
from lib.records import store


@dataclass(frozen=True)
class Collection:
    """What the book plans to measure of one kind, and how.

    unit, title: of the bar, which counts units.  folder: of the records.  place: where one's record
    lies in a folder. planned: all that the book wants.  take: measures one and returns its table;
    the `Reporter` tells the bar how far it is. precision: of the arithmetic, None where a table
    tells several apart.  device: where it is taken. more: what else a record's first line says.
    """

    title: str
    unit: str
    folder: Path
    place: Callable[[Any, Path], Path]
    planned: Callable[[], Sequence]
    take: Callable[[Any, runner.Reporter], pd.DataFrame] = lambda what, _: what.measure()
    precision: Callable[[Any], str | None] = lambda what: None
    device: Callable[[Any], str] = lambda what: "cpu"
    more: dict = field(default_factory=dict)

    def record(self, what: Any, folder: Path | None = None) -> Path:
        """Where its record lies."""
        return self.place(what, folder or self.folder)

    def results(self, planned: Iterable | None = None, folder: Path | None = None) -> pd.DataFrame:
        """The rows of those that have a record, with their fields, as of
        `lib.records.store.gather`; None: of all planned.
        """
        return store.gather(
            self.planned() if planned is None else planned, self.place, folder or self.folder
        )

    def missing(self, planned: Iterable | None = None, folder: Path | None = None) -> list:
        """Those that have no record."""
        return store.missing(
            self.planned() if planned is None else planned, self.place, folder or self.folder
        )

    def run(
        self, planned: Iterable | None = None, folder: Path | None = None, jobs: int = 1
    ) -> None:
        """Measure those that have no record, one a job, under a bar."""
        folder = folder or self.folder
        runner.run(
            self.missing(planned, folder), self.measure, self.title, self.unit, jobs, folder=folder
        )

    def measure(self, what: Any, reports: str | None = None, folder: Path | None = None) -> Path:
        """Measure one and write its record; reports: a folder for the bar; returns the file."""
        progress = runner.Reporter(reports)
        where = self.precision(what), self.device(what)
        return runner.write(
            self.record(what, folder), what, lambda: self.take(what, progress), *where, **self.more
        )
