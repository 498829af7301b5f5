"""Trains trials of recorded searches again to see more of them, the fastest first, and records
those that are followed step by step.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd

from lib import require
from lib.fields import Count, Whole, spec
from lib.measuring.experiment import Collection, WithSearch
from lib.records import store
from lib.records.store import DATA, SMOKE
from lib.studies import plans
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import WorkloadName, workload

CELL = {f.name for f in dataclasses.fields(Search)}


class Again(WithSearch):
    """Base of specs that train one trial of a record again.  Every field that `Search` also
    has identifies the search; `trial` is the row.
    """

    @property
    def cell(self) -> Search:
        fields = dataclasses.asdict(self)
        return Search(**{name: fields[name] for name in CELL & fields.keys()})


@spec
class Track(Again):
    """One trial of a recorded search, followed to the step at which it met the goal, or for `steps`
    steps.

    points: how many steps are measured, geometrically spaced from the first to the last.
    examples: number of training examples used for measurements (0: all).
    chunk: examples per gradient, from which the noise scale is computed.
    smoothness: whether to measure it, too; it takes much longer than the noise.
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
    replicate: int = 0
    split: int = 0
    race: float | None = None
    rungs: str = "goals"

    def measure(self) -> pd.DataFrame:
        """The table of `lib.probes.noise_scale.follow`."""
        from lib.probes import noise_scale  # imports PyTorch, which is slow

        return noise_scale.follow(self, last_step(self))


# --- the fastest trials ---------------------------------------------------------------------------


def fastest(kind: type, cell: Search, count: int, data: Path = DATA, **fields) -> list:
    """The search's first `count` trials to meet the goal, the fastest first; none if it has no
    record.

    kind: a subclass of `Again`; fields: its other fields.  Raises ValueError for a search that it
    cannot identify: all fields that `kind` lacks must have their defaults.
    """
    if not store.exists(store.record(cell, data)):
        return []
    shared = CELL & kind.__dataclass_fields__.keys()
    fields |= {name: getattr(cell, name) for name in shared}
    trials = steps_to_goal(cell, data).index[:count]
    specs = [kind(**fields, trial=int(trial)) for trial in trials]
    allowed = f"one with defaults in all fields that {kind.__name__} lacks"
    require(all(spec.cell == cell for spec in specs), "cell", cell, allowed)
    return specs


def of_cells(
    cells: Iterable[Search], count: int = 3, data: Path = DATA, **fields
) -> list[Track]:
    """The fastest trial of every search, then the second of every search, ..."""
    by_cell = [fastest(Track, cell, count, data, **fields) for cell in cells]
    return [tracks[rank] for rank in range(count) for tracks in by_cell if rank < len(tracks)]


def steps_to_goal(cell: Search, data: Path = DATA, goal: float | None = None) -> pd.Series:
    """The steps to the goal for the trials of a search on record that met it, by trial, the fastest
    first; goal: None for the workload's.
    """
    goal = goal or workload(cell.workload).goal
    trials = store.read(store.record(cell, data), cell)[1].set_index("trial")
    return trials[f"steps@{goal:g}"].dropna().sort_values(kind="stable")


def met_at(again: Again, data: Path = DATA) -> int:
    """The step at which the trial met the goal, from the search's record."""
    return int(steps_to_goal(again.cell, data)[again.trial])


def last_step(track: Track, data: Path = DATA) -> int:
    """The track's `steps`, or the step at which its trial met the goal."""
    return track.steps or met_at(track, data)


# --- what is planned ------------------------------------------------------------------------------


def digits() -> list[Track]:
    """Two methods at three batch sizes and every sparsity."""
    cells = [
        Search(name, batch_size, algorithm, sparsity)
        for name in plans.DIGITS
        for algorithm in ("momentum", "sgd")
        for batch_size in (16, 64, 256)
        for sparsity in plans.LEVELS
    ]
    return of_cells(cells, points=16)


def _mnist() -> list[Track]:
    """Dense and sparse networks; and the winner of every search of Simple-CNN on a separate split,
    with the loss's smoothness at one batch size only.
    """
    study, own_splits = (plans.study(name).searches for name in ("mnist", "mnist-own-splits"))
    levels = plans.DENSE_AND_SPARSE
    cells = [cell for cell in study if cell.batch_size == 64 and cell.sparsity in levels]
    tracks = of_cells(cells, points=6, examples=0)
    for cell in own_splits:
        fields = {"examples": 10_000, "smoothness": cell.batch_size == 64}
        tracks += fastest(Track, cell, 1, points=6, **fields)
    return tracks


def _cifar() -> list[Track]:
    """By momentum, on a ninth of the training set."""
    searches = plans.study("cifar-10").searches
    cells = [c for c in searches if c.batch_size == 128 and c.algorithm == "momentum"]
    return of_cells(cells, points=6, examples=5000)


# --- records --------------------------------------------------------------------------------------


def experiment(name: str, planned: Callable[[], Sequence[Track]]) -> Collection:
    """The experiment that follows these tracks; name: of their data."""
    about = (
        f"Train the fastest trials of {name} again; record the gradient's noise and smoothness "
        "along them, into data/tracks/."
    )
    return Collection("tracks", "trials", store.beginning, planned, about)


PLANNED = {"digits": digits, "mnist": _mnist, "cifar-10": _cifar}
TRACKS = {name: experiment(name, planned) for name, planned in PLANNED.items()}  # judge claims


def every(*more: pd.DataFrame) -> pd.DataFrame:
    """These points and those of all TRACKS, each once."""
    tables = (collection.results() for collection in TRACKS.values())
    key = "workload algorithm batch_size sparsity trials replicate split trial step".split()
    return pd.concat([*more, *filter(len, tables)]).drop_duplicates(key)


def along(study: Study, count: int, points: int, budget: str = "cached") -> pd.DataFrame:
    """The points of the `count` fastest trials of each of a study's searches on record; budget: as
    for `lib.measuring.sweeps.results`.

    "cached" reads, "full" follows what is missing, "smoke" follows a few steps of one trial of each
    toy search.
    """
    data, fields = DATA, {"points": points}
    if budget == "smoke":
        study, data, count, fields = study.smoke(), SMOKE, 1, {"points": 3, "steps": 8}
    planned = of_cells(study.searches, count, data, **fields)
    collection = experiment(study.name, lambda: planned)
    if budget != "cached":
        collection.run(data=data)
    return collection.results(data=data)


# --- what the points of a path say together -------------------------------------------------------

PATH = "workload algorithm batch_size sparsity replicate split trial".split()


def steps_around(ordered: pd.DataFrame) -> pd.Series:
    """The number of steps that each point represents: half of those to the neighbouring points on
    the same path, by the trapezoidal rule.

    ordered: points in the order of steps.  The point of a path with one point represents its step.
    """
    steps = ordered.groupby(PATH).step
    gaps = pd.concat([steps.diff(), -steps.diff(-1)], axis=1)
    return gaps.sum(axis=1, min_count=1).fillna(2 * ordered.step) / 2


def noise_scales(paths: pd.DataFrame) -> pd.DataFrame:
    """One row per path: noise_scale, tr(Sigma) over |G|^2 averaged over its progress.

    A step at batch size B is worth 1 / (1 + noise scale / B) of one at an unlimited batch
    (McCandlish et al. 2018, equation 2.7), and the bend is the mean over such steps.
    """
    points = paths.sort_values("step")
    square = points.square.clip(lower=0)
    progress = steps_around(points) / (square + points.trace / points.batch_size)
    parts = points[PATH].assign(up=points.trace * progress, down=square * progress)
    total = parts.groupby(PATH).sum()
    return (total.up / total.down).rename("noise_scale").reset_index()


def noise_of_curves(paths: pd.DataFrame) -> pd.Series:
    """The noise scale by curve (workload, algorithm, sparsity): the geometric mean over batch sizes
    of geometric means of `noise_scales` over paths.
    """
    curve = ["workload", "algorithm", "sparsity"]
    logs = noise_scales(paths).assign(log=lambda rows: rows.noise_scale.map(math.log))
    by_size = logs.groupby([*curve, "batch_size"]).log.mean()
    return by_size.groupby(curve).mean().map(math.exp).rename("noise_scale")
