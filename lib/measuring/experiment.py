"""Experiments: what is planned, measured once and recorded under a name, besides the searches of a
study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from lib.measuring import runner
from lib.records import store
from lib.studies.cells import Cell


@dataclass(frozen=True)
class Collection:
    """Measurements of one kind, each with a record: which are planned, how they are taken and read.

    Attributes:
        title, unit: of the progress bar, which counts units.
        folder: of the records.
        place: where one's record lies in a folder.
        planned: all that the book wants.
        take: measures one and returns its table.
        precision: of the arithmetic, None where a table tells several apart.
        device: where it is taken.
        more: what else a record's first line says.
    """

    title: str
    unit: str
    folder: Path
    place: Callable[[Any, Path], Path]
    planned: Callable[[], Sequence]
    take: Callable[[Any], pd.DataFrame] = lambda what: what.measure()
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
        return store.gather(*self._asked(planned, folder))

    def missing(self, planned: Iterable | None = None, folder: Path | None = None) -> list:
        """Those that have no record."""
        return store.missing(*self._asked(planned, folder))

    def _asked(self, planned: Iterable | None, folder: Path | None) -> tuple:
        wanted = self.planned() if planned is None else planned
        return wanted, self.place, folder or self.folder

    def run(
        self, planned: Iterable | None = None, folder: Path | None = None, jobs: int = 1
    ) -> None:
        """Measure those that have no record, one a job, under a bar."""
        todo, where = self.missing(planned, folder), folder or self.folder
        runner.run(todo, self.measure, self.title, self.unit, jobs, folder=where)

    def measure(self, what: Any, folder: Path | None = None) -> Path:
        """Measure one and write its record; returns the file."""
        where = self.precision(what), self.device(what)
        file = self.record(what, folder)
        return runner.write(file, what, lambda: self.take(what), *where, **self.more)


def searches(name: str, file: Callable[[Any], str], planned: Callable[[], Sequence]) -> Collection:
    """Searches of a chapter's own in single precision, with records data/NAME/FILE-DIGEST.csv.

    Args:
        name: of the folder and of the bar.
        file: how the path of a search's record begins in the folder.
        planned: all that the book wants.
    """

    def place(search: Any, folder: Path) -> Path:
        return folder / f"{file(search)}-{store.digest(search)}.csv"

    folder = store.DATA / name
    return Collection(name, "search", folder, place, planned, precision=lambda _: "float32")


class OfCell:
    """Base of searches by SGD whose steps a chapter takes itself, with the draws, seeds, order and
    split of a cell.

    They have the fields workload, batch_size, trials and replicate (draws, seeds, data order and
    split of the examples).
    """

    @property
    def examples(self) -> int:
        """Examples of a step."""
        return self.batch_size

    @property
    def settings(self) -> dict:
        """Further fields of the cell."""
        return {"space": "learning_rate=0.01..3"}

    @property
    def cell(self) -> Cell:
        """The search by the book's own steps."""
        return Cell(
            self.workload,
            self.examples,
            "sgd",
            trials=self.trials,
            replicate=self.replicate,
            split=self.replicate,
            **self.settings,
        )

    def definition(self) -> dict:
        return self.cell.definition()


@dataclass(frozen=True)
class Experiment:
    """What `python -m lib run NAME` measures.

    Attributes:
        help: what it does, a sentence for the command line.
        measured: a `Collection`, or what has its functions `missing` and `run`.
        units: what is counted, in the plural.
        plan: what is to be measured; None for what `measured` plans.
        alone: whether nothing else may run meanwhile, of this experiment or of others.
        on_device: whether `measured` is told where to measure.
    """

    help: str
    measured: Any
    units: str
    plan: Callable[[], Sequence] | None = None
    alone: bool = False
    on_device: bool = False

    def planned(self) -> Sequence:
        """All that is to be measured, whether it has a record or not."""
        return self.plan() if self.plan else self.measured.planned()

    def missing(self, **where: str) -> list:
        """Those that have no record; where: the device, if it is `on_device`."""
        return self.measured.missing(self.planned(), **where)

    def run(self, jobs: int, **where: str) -> None:
        """Measure what is missing, so many side by side unless it runs alone."""
        options = {} if self.alone else {"jobs": jobs}
        self.measured.run(self.planned(), **options, **where)
