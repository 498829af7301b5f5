"""The fastest trials of a cell, which are followed step by step: which they are, and their records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lib.fields import Count, Whole, spec
from lib.probes import trained_again
from lib.probes.trained_again import Again
from lib.records import store
from lib.records.store import DATA, place
from lib.studies import plans
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName

FOLDER = DATA / "tracks"
SAMPLE = 1000  # training examples for the Hessian products
POWER_ITERATIONS = 20


@spec
class Track(Again):
    """One trial of a measured cell, followed to the step at which it met the goal, or for `steps`
    steps.

    points: how many steps are looked at, geometrically spaced from the first to the last.
    examples: of the training set, for all that is measured (0: all of them).  chunk: examples per
    gradient, of which the noise scale is made. smoothness: whether that is measured too; it takes
    far longer than the noise. Raises ValueError naming the field, its value and what is allowed, as
    `lib.studies.cells.Cell`.
    """

    workload: WorkloadName
    batch_size: int
    algorithm: str
    sparsity: float
    trials: int
    trial: int
    hits: int
    max_steps: int | None = None
    points: Count(10**6) = 10
    examples: int = 0
    chunk: int = 50
    steps: Whole(0, 10**8) = 0
    smoothness: bool = True

    def __post_init__(self):
        super().__post_init__()
        self.check_chunk()


def fastest(cell: Cell, count: int, data: Path = DATA, **fields) -> list[Track]:
    """Tracks of the cell's first `count` trials at the goal, as `lib.probes.trained_again.fastest`."""
    return trained_again.fastest(Track, cell, count, data, **fields)


def last_step(track: Track, data: Path = DATA) -> int:
    """The track's `steps`, or the step at which its trial met the goal, from the cell's record."""
    return track.steps or trained_again.met_at(track, data)


def record(track: Track, folder: Path = FOLDER) -> Path:
    """Where the track's record lies."""
    return store.path(folder / place(track.workload), track)


def of_cells(cells: Iterable[Cell], count: int = 3, data: Path = DATA, **fields) -> list[Track]:
    """The fastest trial of every cell, then the second of every cell, ..."""
    found = [fastest(cell, count, data, **fields) for cell in cells]
    return [tracks[rank] for rank in range(count) for tracks in found if rank < len(tracks)]


def _digits() -> list[Track]:
    return of_cells(
        [
            Cell(name, batch_size, algorithm, sparsity)
            for name in plans.DIGITS
            for algorithm in ("momentum", "sgd")
            for batch_size in (16, 64, 256)
            for sparsity in plans.LEVELS
        ],
        points=16,
    )


def _mnist() -> list[Track]:
    """On the whole training set."""
    cells = plans.study("mnist").cells
    return of_cells(
        [c for c in cells if c.batch_size == 64 and c.sparsity in plans.DENSE_AND_SPARSE], points=6
    )


def _cifar() -> list[Track]:
    """On a ninth of the training set."""
    cells = plans.study("cifar-10").cells
    return of_cells(
        [c for c in cells if c.batch_size == 128 and c.algorithm == "momentum"],
        points=6,
        examples=5000,
    )


def twins(dense: list[Track], sparsities: Iterable[float], data: Path = DATA) -> list[Track]:
    """The same trials in sparse networks: same hyperparameters, same initialisation before pruning,
    as many steps.
    """
    return [
        dataclasses.replace(t, sparsity=s, steps=last_step(t, data))
        for s in sparsities
        for t in dense
    ]


def _twins() -> list[Track]:
    return twins(
        [t for t in _digits() if t.sparsity == 0 and t.algorithm == "momentum"], plans.LEVELS[1:]
    )


def _text() -> list[Track]:
    """Noise along the language model's fastest trial of searches in exact lock step, on a quarter
    of the training set.
    """
    return of_cells(
        plans.study("shakespeare-exact").cells, 1, points=12, examples=4000, smoothness=False
    )


TRACKS = {"digits": _digits, "mnist": _mnist, "cifar-10": _cifar}
TWINS = {"digits-twins": _twins}
APART = {"shakespeare": _text}  # no claim is judged by them


def results(name: str, folder: Path = FOLDER) -> pd.DataFrame:
    """All measured points of a set of tracks, a row each, with the track's fields.  Raises
    RecordError, ValueError.
    """
    every = TRACKS | TWINS | APART
    if name not in every:
        raise ValueError(f"tracks: {name!r} is unknown; allowed: {', '.join(every)}")
    return read(every[name](), folder)


def read(planned: list[Track], folder: Path = FOLDER) -> pd.DataFrame:
    """The points of those tracks that have a record."""
    return store.gather(planned, record, folder)
