"""The fastest trials of a cell, which are followed step by step, and their records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lib.fields import Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.probes import trained_again
from lib.probes.trained_again import Again
from lib.records.store import DATA, SMOKE
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import WorkloadName


@spec
class Track(Again):
    """One trial of a recorded search, followed to the step at which it met the goal, or for `steps`
    steps.

    points: how many steps are looked at, geometrically spaced from the first to the last.
    examples: of the training set, for all that is measured (0: all of them).
    chunk: examples per gradient, of which the noise scale is made.
    smoothness: whether that is measured too; it takes far longer than the noise.

    Raises ValueError naming the field, its value and what is allowed.
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


def last_step(track: Track, data: Path = DATA) -> int:
    """The track's `steps`, or the step at which its trial met the goal, from the cell's record."""
    return track.steps or trained_again.met_at(track, data)


def of_cells(cells: Iterable[Cell], count: int = 3, data: Path = DATA, **fields) -> list[Track]:
    """The fastest trial of every cell, then the second of every cell, ..."""
    found = [trained_again.fastest(Track, cell, count, data, **fields) for cell in cells]
    return [tracks[rank] for rank in range(count) for tracks in found if rank < len(tracks)]


# --- what is planned ------------------------------------------------------------------------------


def _digits() -> list[Track]:
    cells = [
        Cell(name, batch_size, algorithm, sparsity)
        for name in plans.DIGITS
        for algorithm in ("momentum", "sgd")
        for batch_size in (16, 64, 256)
        for sparsity in plans.LEVELS
    ]
    return of_cells(cells, points=16)


def _mnist() -> list[Track]:
    """On the whole training set."""
    cells = [c for c in plans.study("mnist").cells if c.sparsity in plans.DENSE_AND_SPARSE]
    return of_cells([c for c in cells if c.batch_size == 64], points=6)


def _cifar() -> list[Track]:
    """On a ninth of the training set."""
    cells = [c for c in plans.study("cifar-10").cells if c.algorithm == "momentum"]
    return of_cells([c for c in cells if c.batch_size == 128], points=6, examples=5000)


def twins(dense: list[Track], sparsities: Iterable[float], data: Path = DATA) -> list[Track]:
    """The same trials in sparse networks: same hyperparameters, same initialisation before pruning,
    as many steps.
    """
    alike = [dataclasses.replace(track, steps=last_step(track, data)) for track in dense]
    return [dataclasses.replace(track, sparsity=s) for s in sparsities for track in alike]


def _twins() -> list[Track]:
    dense = [t for t in _digits() if t.sparsity == 0 and t.algorithm == "momentum"]
    return twins(dense, plans.LEVELS[1:])


def _text() -> list[Track]:
    """Noise along the language model's fastest trial of searches in exact lock step, on a quarter
    of the training set.
    """
    cells = plans.study("shakespeare-exact").cells
    return of_cells(cells, 1, points=12, examples=4000, smoothness=False)


TRACKS = {"digits": _digits, "mnist": _mnist, "cifar-10": _cifar}
# Besides, twins, and tracks by which no claim is judged
ALL = TRACKS | {"digits-twins": _twins, "shakespeare": _text}


# --- records --------------------------------------------------------------------------------------


def followed(data: Path = DATA) -> Collection:
    """Tracks of the cells that are on record in a folder, and their records in it."""

    def measure(track: Track) -> pd.DataFrame:
        from lib.probes import follow  # brings PyTorch, which is slow to import

        return follow.follow(track, last_step(track, data))

    return Collection(
        "tracks",
        "track",
        data / "tracks",
        trained_again.place,
        tuple,  # each set of tracks has a plan of its own
        measure,
        lambda track: track.cell.arithmetic,
    )


FOLLOWED = followed()
record = FOLLOWED.record


def results(name: str) -> pd.DataFrame:
    """All measured points of a set of tracks, a row each, with the track's fields.  Raises
    RecordError, ValueError.
    """
    if name not in ALL:
        raise ValueError(f"tracks: {name!r} is unknown; allowed: {', '.join(ALL)}")
    return FOLLOWED.results(ALL[name]())


def along(study: Study, count: int, points: int, budget: str = "cached") -> pd.DataFrame:
    """The points of the `count` fastest trials of each of a study's cells that has a record;
    budget: as for `lib.measuring.sweeps.results`.

    "cached" reads, "full" follows what is missing, "smoke" follows one trial of each toy cell.
    """
    data = DATA
    if budget == "smoke":
        study, data, count, points = study.smoke(), SMOKE, 1, 3
    planned, kept = of_cells(study.cells, count, data, points=points), followed(data)
    if budget != "cached":
        kept.run(planned)
    return kept.results(planned)
