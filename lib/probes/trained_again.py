"""What specs of trials share that are trained again, to see more of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd

from lib import require
from lib.fields import Count, Whole, check
from lib.records import store
from lib.records.store import DATA
from lib.studies.cells import Cell
from lib.workloads.catalogue import workload

CELL = {f.name for f in dataclasses.fields(Cell)}


class Again:
    """Base of specs that train one trial of a recorded search again.  Every field that `Cell` also
    has identifies the search; `trial` is the row.
    """

    @property
    def cell(self) -> Cell:
        fields = dataclasses.asdict(self)
        return Cell(**{name: fields[name] for name in CELL & fields.keys()})

    def definition(self) -> dict:
        """As the cell's: what the digest of its record depends on besides the fields."""
        return self.cell.definition()

    def __post_init__(self):
        check("trial", self.trial, Whole(0, self.cell.trials - 1))

    def check_chunk(self) -> None:
        """Raise ValueError unless the examples are of the training set, and make two chunks or
        more (0 examples: all of them).
        """
        size = workload(self.workload).train_size
        check("examples", self.examples, Whole(0, size))
        check("chunk", self.chunk, Count((self.examples or size) // 2))


def place(again: Again, folder: Path) -> Path:
    """Where the record of one lies in a folder."""
    return store.path(folder / store.place(again.workload), again)


def fastest(kind: type, cell: Cell, count: int, data: Path = DATA, **fields) -> list:
    """The cell's first `count` trials at the goal, the fastest first; none if the cell has no
    record.

    kind: of `Again`; fields: the others that it has.  Raises ValueError for a cell that it cannot
    name: all fields that it lacks must have their defaults.
    """
    names = CELL & kind.__dataclass_fields__.keys()
    for field in dataclasses.fields(cell):
        value = getattr(cell, field.name)
        known = field.name in names or value == field.default
        require(known, field.name, value, f"{field.default!r} for a {kind.__name__.lower()}")
    if not store.exists(store.record(cell, data)):
        return []
    shared = {name: getattr(cell, name) for name in names}
    steps = steps_to_goal(cell, data).dropna().sort_values(kind="stable")
    return [kind(**shared, trial=int(trial), **fields) for trial in steps.index[:count]]


def met_at(again: Again, data: Path = DATA) -> int:
    """The step at which it met the goal, from the cell's record."""
    return int(steps_to_goal(again.cell, data)[again.trial])


def steps_to_goal(cell: Cell, data: Path = DATA) -> pd.Series:
    """The steps to the goal of every trial of a cell on record, by trial."""
    trials = store.read(store.record(cell, data), cell)[1].set_index("trial")
    return trials[f"steps@{workload(cell.workload).goal:g}"]
