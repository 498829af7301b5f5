"""Fastest trials trained again, to see how their gradients point to where they end: which they are,
and their records.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lib import require
from lib.fields import Count, spec
from lib.methods import method
from lib.probes.trained_again import Again, fastest
from lib.records import store
from lib.records.store import DATA
from lib.studies import plans
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName

FOLDER = DATA / "paths"
SIZES = (4, 16, 64, 256, 1024)
SEARCHES = range(3, 9)  # of "digits-searches", each on a split of its own
METHODS = ("sgd", "momentum")


@spec
class Walk(Again):
    """One trial of a measured cell, trained again up to the step at which it met the goal: w* is
    where it then is.

    points: how many steps are looked at, evenly spaced.  examples: of the training set, for the
    gradient that stands for all of it (0: all of them).  chunk: examples per gradient, of which
    that one and the noise scale are made. Raises ValueError naming the field, its value and what is
    allowed, as `lib.studies.cells.Cell`.
    """

    workload: WorkloadName
    batch_size: int
    algorithm: str
    sparsity: float
    trials: int
    trial: int
    hits: int
    replicate: int = 0
    split: int = 0
    points: Count(10**6) = 40
    examples: int = 0
    chunk: int = 50

    def __post_init__(self):
        super().__post_init__()
        how = method(self.algorithm)
        plain = how.gradient is None and how.evaluated is None
        require(
            plain,
            "algorithm",
            self.algorithm,
            "a method whose gradients and errors are taken at its weights",
        )
        self.check_chunk()


def winner(cell: Cell, data: Path = DATA, **fields) -> Walk | None:
    """The walk of the cell's fastest trial; None if the cell has no record, or nothing met the
    goal.

    Raises ValueError for a cell that a walk cannot name: all fields that a walk lacks must have
    their defaults.
    """
    return next(iter(fastest(Walk, cell, 1, data, **fields)), None)


@functools.cache  # it asks hundreds of records who won
def planned() -> tuple[Walk, ...]:
    """The winners of searches on digits, and of a few on images."""
    return (*_digits(), *_images())


def _digits() -> Iterable[Walk]:
    """Search by search, so that fewer are fewer of all."""
    for search in SEARCHES:
        for name in plans.DIGITS:
            for algorithm in METHODS:
                for batch_size in SIZES:
                    for sparsity in plans.DENSE_AND_SPARSE:
                        cell = Cell(
                            name,
                            batch_size,
                            algorithm,
                            sparsity,
                            replicate=search,
                            split=search,
                            hits=1,
                        )
                        if walk := winner(cell):
                            yield walk


def _images() -> Iterable[Walk]:
    """On a thirtieth of the training set, a search each."""
    searched = [
        c
        for c in plans.study("mnist").cells
        if c.workload == "mnist-simple-cnn" and c.algorithm == "momentum"
    ]
    for cell in searched:
        asked = cell.batch_size in (64, 256) and cell.sparsity == 0
        if asked and (walk := winner(cell, points=20, examples=2000)):
            yield walk


def record(walk: Walk, folder: Path = FOLDER) -> Path:
    """Where the walk's record lies."""
    return store.path(folder / store.place(walk.workload), walk)


def results(walks: Iterable[Walk] | None = None, folder: Path = FOLDER) -> pd.DataFrame:
    """The points of those walks that have a record, with the walks' fields; None: of all that are
    planned.
    """
    return store.gather(planned() if walks is None else walks, record, folder)


def missing(walks: Iterable[Walk], folder: Path = FOLDER) -> list[Walk]:
    """Those that have no record."""
    return store.missing(walks, record, folder)
