"""The fastest trials of a cell, trained again, with smoothness and gradient noise measured along their paths.

python -m lib.tracks run digits --jobs 2     # measures what is missing; stop and resume at any time
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from lib import algorithms, datasets, models, noise_scale, records, smoothness, stacks, studies, sweeps, training
from lib.workloads import workload

FOLDER = sweeps.DATA / "tracks"
SAMPLE = 1000  # training examples for the Hessian products
POWER_ITERATIONS = 20


@dataclass(frozen=True)
class Track:
    """One trial of a measured cell, followed to the step at which it met the goal, or for `steps` steps.

    points: how many steps are looked at, geometrically spaced from the first to the last.  examples: of the training
    set, for all that is measured (0: all of them).  chunk: examples per gradient, of which the noise scale is made.
    Raises ValueError naming the field, its value and what is allowed, as `lib.sweeps.Cell`.
    """

    workload: str
    batch_size: int
    algorithm: str
    sparsity: float
    trials: int
    trial: int
    hits: int
    max_steps: int | None = None
    points: int = 10
    examples: int = 0
    chunk: int = 50
    steps: int = 0

    def __post_init__(self):
        size = workload(self.cell.workload).train_size
        looked_at = self.examples or size
        bounds = {"trial": (0, self.trials - 1), "points": (1, 10**6), "examples": (0, size),
                  "chunk": (1, looked_at // 2), "steps": (0, 10**8)}  # fmt: skip
        for field, (least, most) in bounds.items():
            value = getattr(self, field)
            if type(value) is not int or not least <= value <= most:
                raise ValueError(f"{field}: {value!r} is not allowed; it must be a whole number from {least} to {most}")

    @property
    def cell(self) -> sweeps.Cell:
        own = {f.name for f in dataclasses.fields(sweeps.Cell)}
        return sweeps.Cell(**{k: v for k, v in dataclasses.asdict(self).items() if k in own})

    def definition(self) -> dict:
        return self.cell.definition()


def fastest(cell: sweeps.Cell, count: int, data: Path = sweeps.DATA, **fields) -> list[Track]:
    """Tracks of the cell's first `count` trials at the goal, the fastest first; none if the cell has no record.

    Raises ValueError for a cell that a track cannot name: all fields that a track lacks must have their defaults.
    """
    own = {f.name: getattr(cell, f.name) for f in dataclasses.fields(Track) if hasattr(cell, f.name)}
    for field in dataclasses.fields(cell):
        if field.name not in own and (value := getattr(cell, field.name)) != field.default:
            raise ValueError(f"{field.name}: {value!r} is not allowed; it must be {field.default!r} for a track")
    file = sweeps.record(cell, data)
    if not file.exists():
        return []
    trials = records.read(file, cell)[1].dropna(subset=f"steps@{workload(cell.workload).goal:g}")
    order = trials.sort_values([f"steps@{workload(cell.workload).goal:g}", "trial"]).trial.head(count)
    return [Track(**own, trial=int(t), **fields) for t in order]


def last_step(track: Track, data: Path = sweeps.DATA) -> int:
    """The track's `steps`, or the step at which its trial met the goal, from the cell's record."""
    if track.steps:
        return track.steps
    trials = records.read(sweeps.record(track.cell, data), track.cell)[1].set_index("trial")
    return int(trials.loc[track.trial, f"steps@{workload(track.workload).goal:g}"])


def follow(track: Track, data: Path = sweeps.DATA) -> pd.DataFrame:
    """Train the trial again and measure at each of its points; a row per point.  Up to rounding, if the engine has changed.

    step: the update looked at, from w to w'.  error: validation error at w'.  loss, square (|G|^2), trace (tr Sigma),
    noise_scale with noise_low and noise_high: of training examples at w.  distance: |w' - w|.  lipschitz: between w and
    w'.  along, spectral: the Hessian at w on a sample, along the step and its largest absolute eigenvalue.
    What is measured is in single precision; the training is in the cell's own.
    """
    cell, work = track.cell, workload(track.workload)
    examples, validation = work.train(), datasets.load(work.dataset).validation
    executor, trial = sweeps.executor(cell), sweeps.start(cell, [track.trial])
    x, y = executor.inputs(examples.x), examples.y
    points = set(np.unique(np.geomspace(1, last_step(track, data), track.points).round().astype(int)))
    w, v, rows = trial.w.clone(), torch.zeros_like(trial.w), []
    for step, pick in enumerate(training.batches(len(y), cell.batch_size, cell.replicate), start=1):
        before = w.clone()
        _, g, _ = executor.gradients(w, x[pick], y[pick], trial.mask)
        rate = algorithms.decayed(trial.rate, step - 1, trial.decay_steps, trial.end_factor)
        algorithms.update(cell.algorithm, w, v, g, rate, trial.momentum)
        if step in points:
            wrong = executor.logits(w, executor.inputs(validation.x)).argmax(2) != validation.y
            rows.append(
                {"step": step, "error": wrong.float().mean().item(), **_look(track, trial.mask, before[0], w[0])}
            )
        if step == max(points):
            return pd.DataFrame(rows)


def _look(track: Track, mask: Tensor | None, before: Tensor, after: Tensor) -> dict:
    """What `follow` measures at one step, from w = `before` to w' = `after` [P]."""
    work = workload(track.workload)
    data, module = work.train(), models.build(work.model)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[: track.examples or len(data)]
    loop, left = stacks.Loop(module), torch.ones_like(before) if mask is None else mask[0]
    x, y = loop.inputs(data.x)[order], data.y[order]

    def chunk_gradients(w: Tensor) -> tuple[Tensor, Tensor]:
        """Mean loss and gradient of every chunk: [n], [n, P]; the last chunk may be smaller and is left out."""
        found = [
            loop.gradients(w[None], *part) for part in zip(x.split(track.chunk), y.split(track.chunk), strict=True)
        ]
        whole = len(y) // track.chunk
        return torch.cat([f[0] for f in found])[:whole], torch.cat([f[1] for f in found])[:whole] * left

    losses, chunks = chunk_gradients(before)
    products = noise_scale.gram(chunks)
    scale = noise_scale.estimate(products, track.chunk, len(data))
    low, high = noise_scale.interval(products, track.chunk, len(data))
    plain = models.build(work.model)
    product = smoothness.hessian_product(plain, before, data.x[order[:SAMPLE]], y[:SAMPLE], left)
    along, spectral = smoothness.spectral_norm(product, after - before, POWER_ITERATIONS)
    return {
        "loss": losses.mean().item(), "square": scale.square, "trace": scale.trace,
        "noise_scale": scale.simple, "noise_low": low, "noise_high": high,
        "distance": (after - before).norm().item(), "along": along, "spectral": spectral,
        "lipschitz": smoothness.path_lipschitz(lambda w: chunk_gradients(w)[1].mean(0), before, after),
    }  # fmt: skip


# --- many tracks ------------------------------------------------------------------------------------------------------


def record(track: Track, folder: Path = FOLDER) -> Path:
    """Where the track's record lies."""
    return records.path(folder / sweeps.place(track.workload), track)


def measure(track: Track, data: Path = sweeps.DATA) -> Path:
    """Follow a track and write its record under data/tracks; returns the file."""
    sweeps.use_one_core()
    began = datetime.datetime.now(datetime.UTC)
    table = follow(track, data)
    provenance = {
        "date": began.date().isoformat(),
        "torch": torch.__version__,
        "device": sweeps.device_name("cpu"),
        "source": sweeps.SOURCE,
        "wall_s": round((datetime.datetime.now(datetime.UTC) - began).total_seconds(), 2),
    }
    file = record(track, data / "tracks")
    records.write(file, track, table, provenance)
    return file


def _of(cells: Iterable[sweeps.Cell], count: int = 3, data: Path = sweeps.DATA, **fields) -> list[Track]:
    """The fastest trial of every cell, then the second of every cell, ..."""
    found = [fastest(cell, count, data, **fields) for cell in cells]
    return [tracks[rank] for rank in range(count) for tracks in found if rank < len(tracks)]


def _digits() -> list[Track]:
    return _of(
        [
            sweeps.Cell(name, batch_size, algorithm, sparsity)
            for name in studies.DIGITS
            for algorithm in ("momentum", "sgd")
            for batch_size in (16, 64, 256)
            for sparsity in studies.LEVELS
        ],
        points=16,
    )


def _mnist() -> list[Track]:
    """On the whole training set."""
    cells = studies.study("mnist").cells
    return _of([c for c in cells if c.batch_size == 64 and c.sparsity in studies.DENSE_AND_SPARSE], points=6)


def _cifar() -> list[Track]:
    """On a ninth of the training set."""
    cells = studies.study("cifar-10").cells
    return _of([c for c in cells if c.batch_size == 128 and c.algorithm == "momentum"], points=6, examples=5000)


def twins(dense: list[Track], sparsities: Iterable[float], data: Path = sweeps.DATA) -> list[Track]:
    """The same trials in sparse networks: same metaparameters, same initialisation before pruning, as many steps."""
    return [dataclasses.replace(t, sparsity=s, steps=last_step(t, data)) for s in sparsities for t in dense]


def _twins() -> list[Track]:
    return twins([t for t in _digits() if t.sparsity == 0 and t.algorithm == "momentum"], studies.LEVELS[1:])


TRACKS = {"digits": _digits, "mnist": _mnist, "cifar-10": _cifar}
TWINS = {"digits-twins": _twins}


def results(name: str, folder: Path = FOLDER) -> pd.DataFrame:
    """All measured points of a set of tracks, a row each, with the track's fields.  Raises RecordError, ValueError."""
    every = TRACKS | TWINS
    if name not in every:
        raise ValueError(f"tracks: {name!r} is unknown; allowed: {', '.join(every)}")
    return read(every[name](), folder)


def read(planned: list[Track], folder: Path = FOLDER) -> pd.DataFrame:
    """The points of those tracks that have a record."""
    return records.gather(planned, lambda track: record(track, folder))


def along(study: sweeps.Study, count: int, points: int, budget: str = "cached") -> pd.DataFrame:
    """The points of the `count` fastest trials of each of a study's cells that has a record; budget: as for results.

    "cached" reads, "full" follows what is missing, "smoke" follows one trial of each toy cell.
    """
    if budget == "smoke":
        study, data, count, points = study.smoke(), sweeps.SMOKE, 1, 3
    else:
        data = sweeps.DATA
    planned = _of(study.cells, count, data, points=points)
    if budget != "cached":
        run(planned, data)
    return read(planned, data / "tracks")


def run(planned: list[Track], data: Path = sweeps.DATA, jobs: int = 1) -> None:
    """Measure the tracks that have no record, one a job; data: the folder of the cells' records."""
    todo = [t for t in planned if not record(t, data / "tracks").exists()]
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs + 1", batch_size=1)
    for _ in tqdm(parallel(joblib.delayed(measure)(t, data) for t in todo), total=len(todo), unit="track"):
        pass


def main(arguments: list[str] | None = None) -> None:
    """The command line: measure what is missing."""
    parser = argparse.ArgumentParser(prog="python -m lib.tracks", description="Follow the fastest trials again.")
    parser.add_argument("command", choices=["run"])
    parser.add_argument("tracks", choices=list(TRACKS | TWINS))
    parser.add_argument("--jobs", type=sweeps.positive, default=1, help="tracks followed side by side, one thread each")
    chosen = parser.parse_args(arguments)
    run((TRACKS | TWINS)[chosen.tracks](), jobs=chosen.jobs)


if __name__ == "__main__":
    from lib import tracks  # as a module, not as __main__: workers then find `measure` by name

    tracks.main()
