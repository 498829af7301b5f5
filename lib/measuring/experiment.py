"""Experiments: what is planned, measured once and recorded under a name, besides the searches of a
study.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from lib.measuring import codes, runner
from lib.records import store
from lib.records.store import DATA
from lib.studies.search import Search


@dataclass(frozen=True)
class Collection:
    """Measurements of one kind, each with a record: which are planned, run and read.  Each is a
    dataclass, whose `measure()` returns its table, and `definition()`, if it has one, what the
    record's name depends on besides the fields.  `python -m lib run` runs a collection.

    Attributes:
        name: of the folder of the records in data/, and of the progress bar.
        units: what is counted, in the plural.
        file: how the path of one's record begins in the folder; its digest follows.
        planned: all that the book wants.
        help: what it does, a sentence for the command line.
        precision: of the arithmetic; "": of its `cell`, or "float32"; None where a table tells
            several apart.
        more: what else a record's first line says.
        alone: whether nothing else may run meanwhile, of this experiment or of others.
        on_device: whether `measure` takes the device; otherwise it has one of its own, or none.
        device: on which it is measured, "cpu", "cuda", "cuda:1", ...
    """

    name: str
    units: str
    file: Callable[[Any], str]
    planned: Callable[[], Sequence]
    help: str = ""
    precision: str | None = ""
    more: dict = field(default_factory=dict)
    alone: bool = False
    on_device: bool = False
    device: str = "cpu"

    def stem(self, what: Any) -> str:
        """How the path of its records begins in the folder, whatever code measures it."""
        return f"{self.file(what)}-{store.digest(what)}"

    def record(self, what: Any, data: Path = DATA) -> Path:
        """Where its record by this code lies, or will."""
        start = f"{data / self.name / self.stem(what)}"
        ends = (
            "" if code == codes.UNNAMED else f"-{code}"
            for code in codes.same(self.name, type(what))
        )
        files = [Path(f"{start}{end}.csv") for end in ends]
        return next((file for file in files if file.exists()), files[0])

    def kept(self, what: Any, data: Path = DATA) -> Path:
        """Where its record lies: by this code, or else the newest by other code."""
        file, pattern = self.record(what, data), f"{glob.escape(self.stem(what))}[.-]*csv"
        others = [] if file.exists() else (data / self.name).glob(pattern)
        return max(others, key=lambda other: store.head(other)["date"], default=file)

    def results(self, planned: Iterable | None = None, data: Path = DATA) -> pd.DataFrame:
        """The rows of those that have a record, by other code if there is none by this, with their
        fields, as of `lib.records.store.gather`; None: of all planned.

        attrs: "other_code" (count of those by other code), too.
        """
        planned = self.planned() if planned is None else [*planned]
        frame = store.gather(planned, self.kept, data)
        frame.attrs["other_code"] = len(self.outdated(planned, data))
        return frame

    def missing(self, planned: Iterable | None = None, data: Path = DATA) -> list:
        """Those that have no record by this code."""
        return store.missing(self.planned() if planned is None else planned, self.record, data)

    def outdated(self, planned: Iterable | None = None, data: Path = DATA) -> list:
        """Those of them that have a record by other code."""
        return [*store.existing(self.missing(planned, data), self.kept, data).values()]

    def run(self, planned: Iterable | None = None, data: Path = DATA, jobs: int = 1) -> None:
        """Measure those that have no record, one a job, under a bar."""
        todo = self.missing(planned, data)
        runner.run(todo, self.measure, self.name, self.units, jobs, data=data)

    def measure(self, what: Any, data: Path = DATA) -> Path:
        """Measure one, on its `device` if it has one, and write its record; returns the file."""
        precision = self.precision
        if precision == "":
            precision = what.cell.arithmetic if hasattr(what, "cell") else "float32"
        device = getattr(what, "device", self.device)
        take = partial(what.measure, device) if self.on_device else what.measure
        about = {"code": codes.digest(type(what)), **self.more}
        return runner.write(self.record(what, data), what, take, precision, device, **about)


class WithSearch:
    """Base of specs whose records' names depend on what their `cell`'s do, besides their fields."""

    def definition(self) -> dict:
        return self.cell.definition()


class OfSearch(WithSearch):
    """Base of searches by SGD whose steps a chapter takes itself.  Their fields workload,
    batch_size, trials and replicate set draws, seeds, order and split of the examples as a cell's.
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
    def cell(self) -> Search:
        """The search by the book's own steps."""
        drawn = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        return Search(self.workload, self.examples, "sgd", **drawn, **self.settings)
