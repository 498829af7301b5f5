"""Fastest trials trained again, to see how their gradients point to where they end: which they are,
and their records.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pandas as pd

from lib import require
from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.methods import method
from lib.probes import tracks
from lib.probes.tracks import Again
from lib.records import store
from lib.records.store import DATA
from lib.studies import plans
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName

SIZES = (4, 16, 64, 256, 1024)
SEARCHES = range(3, 9)  # of "digits-searches", each on a split of its own
METHODS = ("sgd", "momentum")


@spec
class Walk(Again):
    """One trial of a recorded search, trained again up to the step at which it met the goal: w* is
    where it then is.

    points: how many steps are looked at, evenly spaced.
    examples: of the training set, for the gradient that stands for all of it (0: all of them).
    chunk: examples per gradient, of which that one and the noise scale are made.

    Raises ValueError naming the field, its value and what is allowed.
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
        how = method(self.algorithm)
        plain = how.gradient is None and how.evaluated is None
        allowed = "a method whose gradients and errors are taken at its weights"
        require(plain, "algorithm", self.algorithm, allowed)

    def measure(self) -> pd.DataFrame:
        from chapters.paths import walking  # brings PyTorch, which is slow to import

        return walking.measured(self)


def winner(cell: Cell, data: Path = DATA, **fields) -> Walk | None:
    """The walk of the cell's fastest trial; None if the cell has no record, or nothing met the
    goal.

    Raises ValueError for a cell that a walk cannot name: all fields that a walk lacks must have
    their defaults.
    """
    return next(iter(tracks.fastest(Walk, cell, 1, data, **fields)), None)


@functools.cache  # it asks hundreds of records who won
def planned() -> tuple[Walk, ...]:
    """The winners of searches on digits, search by search, so that fewer are fewer of all; and of
    a few on images, on a thirtieth of the training set, a search each.
    """
    digits = [
        Cell(name, size, algorithm, sparsity, replicate=search, split=search, hits=1)
        for search in SEARCHES
        for name in plans.DIGITS
        for algorithm in METHODS
        for size in SIZES
        for sparsity in plans.DENSE_AND_SPARSE
    ]
    images = [
        cell
        for cell in plans.study("mnist").cells
        if (cell.workload, cell.algorithm, cell.sparsity) == ("mnist-simple-cnn", "momentum", 0)
        and cell.batch_size in (64, 256)
    ]
    walks = [winner(cell) for cell in digits]
    walks += [winner(cell, points=20, examples=2000) for cell in images]
    return tuple(walk for walk in walks if walk)


WALKS = Collection(
    "paths",
    "trajectories",
    store.beginning,
    planned,
    "Train the fastest trials again and record where their gradients point, into data/paths/.",
)
results = WALKS.results
