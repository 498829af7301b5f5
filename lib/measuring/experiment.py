"""Experiments: other measurements than the searches of a study, planned, taken once and recorded
under a name.
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
    dataclass with `measure()`, which returns its table, and optionally `definition()`, what the
    record's name depends on besides the fields.  `python -m lib run` runs a collection.

    Attributes:
        name: of the folder of the records in data/, and of the progress bar.
        units: what is counted, in the plural.
        file: maps a spec to the beginning of its record's path in the folder; a digest follows.
        planned: returns all specs that the book needs.
        help: what it does, a sentence for the command line.
        precision: of the arithmetic; "": that of its `cell`, or "float32"; None if the table
            distinguishes several.
        more: further entries of a record's first line.
        alone: whether nothing else, of this experiment or of others, may run meanwhile.
        on_device: whether `measure` takes the device; otherwise it chooses one itself, or none.
        device: where it is measured, "cpu", "cuda", "cuda:1", ...
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
        """The beginning of its records' paths in the folder, whatever code measures it."""
        return f"{self.file(what)}-{store.digest(what)}"

    def record(self, what: Any, data: Path = DATA) -> Path:
        """Where its record by the current code lies, or will lie."""
        start = f"{data / self.name / self.stem(what)}"
        ends = (
            "" if code == codes.UNNAMED else f"-{code}"
            for code in codes.same(self.name, type(what))
        )
        files = [Path(f"{start}{end}.csv") for end in ends]
        return next((file for file in files if file.exists()), files[0])

    def kept(self, what: Any, data: Path = DATA) -> Path:
        """Where its record lies: that of the current code, or else the newest by other code."""
        file, pattern = self.record(what, data), f"{glob.escape(self.stem(what))}[.-]*csv"
        others = [] if file.exists() else (data / self.name).glob(pattern)
        return max(others, key=lambda other: store.head(other)["date"], default=file)

    def results(self, planned: Iterable | None = None, data: Path = DATA) -> pd.DataFrame:
        """The rows of all that have a record, by other code if there is none by the current, with
        their fields, as from `lib.records.store.gather`; None: of all planned.

        attrs: also "other_code" (number of records by other code).
        """
        planned = self.planned() if planned is None else [*planned]
        frame = store.gather(planned, self.kept, data)
        frame.attrs["other_code"] = len(self.outdated(planned, data))
        return frame

    def missing(self, planned: Iterable | None = None, data: Path = DATA) -> list:
        """Those without a record by the current code."""
        planned = self.planned() if planned is None else planned
        return [what for what in planned if not store.exists(self.record(what, data))]

    def outdated(self, planned: Iterable | None = None, data: Path = DATA) -> list:
        """Those of the missing that have a record by other code."""
        return [*store.existing(self.missing(planned, data), self.kept, data).values()]

    def run(self, planned: Iterable | None = None, data: Path = DATA, jobs: int = 1) -> None:
        """Measure those without a record, one per job, under a progress bar."""
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
    """Base of specs whose records' names also depend on what those of their `cell` depend on."""

    def definition(self) -> dict:
        return self.cell.definition()


class OfSearch(WithSearch):
    """Base of searches by SGD whose steps a chapter implements.  The fields workload, batch_size,
    trials and replicate set draws, seeds, order and split of the examples as in a search.
    """

    @property
    def examples(self) -> int:
        """Number of examples per step."""
        return self.batch_size

    @property
    def settings(self) -> dict:
        """Further fields of `cell`."""
        return {"space": "learning_rate=0.01..3"}

    @property
    def cell(self) -> Search:
        """The search with the book's regular steps."""
        drawn = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        return Search(self.workload, self.examples, "sgd", **drawn, **self.settings)
