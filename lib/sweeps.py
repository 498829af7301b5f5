"""Cells, and running what is missing: Study -> cells -> records -> one table.  The studies are in `lib.studies`.

python -m lib.sweeps run mnist --jobs 2     # trains the cells without a record; stop and resume at any time
python -m lib.sweeps status
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import datetime
import functools
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from lib import ROOT, datasets, metaparameters, models, own, pruning, records, sparse, sparsification, stacks, training
from lib.algorithms import ALGORITHMS
from lib.sparsification import Messages
from lib.workloads import Workload, workload

DATA = ROOT / "data"
MEASURING = (
    "algorithms",
    "datasets",
    "metaparameters",
    "models",
    "own",
    "pruning",
    "sparse",
    "sparsification",
    "stacks",
    "sweeps",
    "training",
    "workloads",
)
BUDGETS = ("cached", "smoke", "full")
LIGHT = 256  # numbers in an example of which a toy can be trained in seconds


def _code(names: Iterable[str]) -> str:
    """Twelve hex digits of these modules of lib."""
    return hashlib.sha256(b"".join((ROOT / "lib" / f"{name}.py").read_bytes() for name in names)).hexdigest()[:12]


# The code that measures, taken when it is loaded: a later edit is not what runs.
SOURCE = _code(MEASURING)
# Toy results of budget="smoke", never mixed with measurements, nor with those of other code, be it a track's or a portrait's.
SMOKE = ROOT / "_build" / "smoke" / _code(sorted(file.stem for file in (ROOT / "lib").glob("*.py")))


@dataclass(frozen=True)
class Cell:
    """The unit that is run, cached and resumed.  Raises ValueError naming the field, its value and what is allowed.

    stop, checks, hits: see `lib.training`.  precision, max_steps and space: None for the workload's own; a space may also
    be one point (`lib.metaparameters.point`), which every trial then shares.  label_smoothing: the share of the target
    spread evenly over all classes.  messages: how the batch is shared among workers, if it is; a dictionary will do.
    """

    workload: str
    batch_size: int
    algorithm: str = "momentum"
    sparsity: float = 0.0
    pruning: str = "connection-sensitivity"
    trials: int = 100
    replicate: int = 0
    stop: str = "goal"
    checks: str = "geometric"
    hits: int = 5
    precision: str | None = None
    max_steps: int | None = None
    space: str | None = None
    label_smoothing: float = 0.0
    messages: Messages | None = None

    def __post_init__(self):
        examples = workload(self.workload).train_size
        if isinstance(self.messages, dict):  # as records hold it
            known = [f.name for f in dataclasses.fields(Messages)]
            _require(set(self.messages) <= set(known), "messages", self.messages, "of the fields " + ", ".join(known))
            object.__setattr__(self, "messages", Messages(**self.messages))
        _require(isinstance(self.messages, Messages | None), "messages", self.messages, "None, a Messages or its fields")
        one_of = {
            "algorithm": ALGORITHMS,
            "pruning": pruning.METHODS,
            "stop": ("goal", "budget"),
            "checks": ("geometric", "every-100"),
            "precision": (None, "float32", "bfloat16"),
        }
        for field, allowed in one_of.items():
            _require(
                getattr(self, field) in allowed, field, getattr(self, field), "one of " + ", ".join(map(str, allowed))
            )
        for field in ("sparsity", "label_smoothing"):
            value = getattr(self, field)
            _require(_number(value) and 0 <= value < 1, field, value, "a number in [0, 1)")
        whole = {"batch_size": examples, "trials": 4096, "hits": 4096, "max_steps": 10**8}
        for field, most in whole.items():
            value = getattr(self, field)
            fine = value is None and field == "max_steps" or _whole(value) and 1 <= value <= most
            of = f" ({self.workload} has {examples} training examples)" if field == "batch_size" else ""
            _require(fine, field, value, f"a whole number from 1 to {most}{of}")
        if self.messages:
            workers = self.messages.workers
            shared = self.batch_size % workers == 0
            _require(shared, "batch_size", self.batch_size, f"a multiple of messages.workers ({workers})")
            whole_net = not self.messages.by_layer or self.sparsity == 0
            _require(whole_net, "messages.by_layer", True, "False for a sparse network")
        if self.space is not None:
            metaparameters.parse(self.space, self.algorithm, workload(self.workload).decay)
        _require(_whole(self.replicate) and self.replicate >= 0, "replicate", self.replicate, "a whole number from 0")

    def draw(self) -> dict[str, np.ndarray]:
        """The metaparameters of all trials: name -> [trials]."""
        work = workload(self.workload)
        space = self.space or work.space
        return metaparameters.draw(space, self.algorithm, self.trials, decay=work.decay, replicate=self.replicate)

    @property
    def dtype(self) -> torch.dtype:
        return getattr(torch, self.precision or workload(self.workload).precision)

    def definition(self) -> dict:
        """What the digest depends on besides the fields: the workload's, so that changing one mixes nothing."""
        work = workload(self.workload)
        parts = ("dataset", "model", "goals", "decay", "max_steps", "precision", "space")
        return {k: getattr(work, k) for k in (*parts, *(k for k in ("source", "examples") if getattr(work, k)))}


def _require(fine: bool, field: str, value: object, allowed: str) -> None:
    if not fine:
        raise ValueError(f"{field}: {value!r} is not allowed; it must be {allowed}")


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class Study:
    """A named set of cells, the most wanted first, each once.  A cell that several studies share is measured once."""

    name: str
    title: str
    cells: tuple[Cell, ...]

    def __post_init__(self):
        object.__setattr__(self, "cells", tuple(dict.fromkeys(self.cells)))

    def smoke(self) -> Study:
        """The same code path in seconds: one algorithm, three batch sizes, two sparsities, few trials and steps.

        Where examples are larger than the digits, only of cells that run to their budget: two trials of two steps.  Raises
        ValueError for those that run to a goal, since chapters need one that is met, which takes many minutes.
        """
        light = _light(workload(self.cells[0].workload))
        able = light or all(c.stop == "budget" for c in self.cells)
        allowed = f"cached, or full with few trials, for {self.cells[0].workload}; smoke is for examples of at most {LIGHT} numbers"
        _require(able, "budget", "smoke", f"{allowed}, as the digits are")
        few = [c for c in self.cells if c.algorithm == self.cells[0].algorithm and c.workload == self.cells[0].workload]
        sizes, levels = sorted({c.batch_size for c in few}), sorted({c.sparsity for c in few})
        sizes, levels = {sizes[len(sizes) // 2], sizes[len(sizes) * 3 // 4], sizes[-1]}, {levels[0], levels[-1]}
        wanted = (c for c in few if c.batch_size in sizes and c.sparsity in levels)
        chosen = tuple(dict.fromkeys(dataclasses.replace(c, replicate=0) for c in wanted))
        small = {"goal": {"trials": 16, "hits": 2, "max_steps": 400}, "budget": {"trials": 4, "max_steps": 64}}
        if not light:
            small = dict.fromkeys(small, {"trials": 2, "hits": 2, "max_steps": 2})
        return Study(self.name, self.title, tuple(dataclasses.replace(c, **small[c.stop]) for c in chosen))


def _light(work: Workload) -> bool:
    """Whether its examples are about as small as the digits."""
    return work.dataset == "digits" or bool(work.source) and work.train().x[0].numel() <= LIGHT


def grid(name: str, batch_sizes: list[int], algorithms: list[str], sparsities: list[float], **fields) -> Study:
    """All combinations for the workload called `name`, batch size slowest; further fields as in `Cell`.

    hits: unless given, a sixth of the trials and at most 5, so that a small search does not wait for its worst trials; or
    fewer, where such a search is on record: the steps to result are the same.
    """
    usual = min(5, max(1, fields.get("trials", 100) // 6))
    given = {"hits": usual, **fields}
    cells = (Cell(name, b, a, float(s), **given) for b in batch_sizes for a in algorithms for s in sparsities)
    return Study(name, workload(name).title, tuple(c if "hits" in fields else _on_record(c) for c in cells))


def _on_record(cell: Cell) -> Cell:
    """The cell, or if it has no record the same search that has one and waited for fewer hits."""
    searches = [dataclasses.replace(cell, hits=hits) for hits in range(cell.hits, 0, -1)]
    return next((c for c in searches if record(c, DATA).exists()), cell)


# --- one cell ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _scores(work: Workload, method: str, seed: int, dtype: torch.dtype, sparsity: float = 0) -> torch.Tensor:
    """Pruning scores [P] of the workload's trial with this seed: the same for every batch size and algorithm."""
    module = models.fresh(work.model, seed)
    w = stacks.flatten(module)
    loop, data = stacks.Loop(module, dtype), work.train()
    return pruning.scores(method, w, loop, loop.inputs(data.x), data.y, seed, sparsity)


def seeds(cell: Cell) -> list[int]:
    """The initialisation seed of every trial: its index, moved by 100,000 for every replicate."""
    return [100_000 * cell.replicate + trial for trial in range(cell.trials)]


def start(cell: Cell, chosen: list[int] | None = None) -> training.Trials:
    """The cell's trials (or the chosen ones) before their first step: initialised, pruned, with their metaparameters."""
    work, chosen = workload(cell.workload), list(range(cell.trials)) if chosen is None else chosen
    chosen_seeds = [seeds(cell)[trial] for trial in chosen]
    w = torch.stack([stacks.flatten(models.fresh(work.model, s)) for s in chosen_seeds])
    if cell.sparsity == 0:
        mask = None
    else:
        needs = (cell.sparsity,) if cell.pruning == "synflow" else ()  # the other scores serve every sparsity
        scores = [_scores(work, cell.pruning, s, cell.dtype, *needs) for s in chosen_seeds]
        mask = pruning.global_mask(torch.stack(scores), cell.sparsity)
        w = w * mask
    drawn = cell.draw()
    column = {k: torch.from_numpy(v[chosen]).float()[:, None] for k, v in drawn.items()}
    rate = column["learning_rate"]
    momentum = column.get("momentum", torch.zeros_like(rate))
    return training.Trials(w, mask, rate, momentum, column.get("decay_steps"), column.get("end_factor"))


def exchange(cell: Cell, trials: training.Trials, watch: Callable | None = None) -> sparsification.Exchange | None:
    """What the cell's workers send each other, for these trials before their first step; None for a single worker."""
    if cell.messages is None:
        return None
    kept = None if trials.mask is None else torch.stack([row.nonzero()[:, 0] for row in trials.mask])
    sizes = [p.numel() for p in models.build(workload(cell.workload).model).parameters()]
    return sparsification.Exchange(cell.messages, *trials.w.shape, kept, sizes, cell.replicate, watch)


# From this sparsity and this batch size on `Sparse` is up to seven times as fast.  It came when most cells of sparsity 0.9 and
# the first of 0.95 (source a3952e2c3824 and before) had been measured by `Stack`, to which it is equal up to rounding.
SPARSE_FROM = {"sparsity": 0.9, "batch_size": 8}


def executor(cell: Cell, device: str = "cpu") -> stacks.Loop | stacks.Stack:
    """Small work is stacked, large work looped: see `Workload.stack_below`."""
    work = workload(cell.workload)
    module, kind = models.build(work.model), stacks.Stack if cell.batch_size < work.stack_below else stacks.Loop
    pays = all(getattr(cell, field) >= least for field, least in SPARSE_FROM.items())
    if kind is stacks.Stack and pays and sparse.fits(module, cell.dtype, device):
        kind = sparse.Sparse
    return kind(module, cell.dtype, device, cell.label_smoothing)


def train_cell(cell: Cell, device: str = "cpu", **options) -> training.Outcome:
    """Measure one cell on a device ("cpu", "cuda", ...); further options as in `training.train`."""
    work: Workload = workload(cell.workload)
    data, trials = datasets.load(work.dataset), start(cell).to(device)
    options.setdefault("exchange", exchange(cell, trials))
    return training.train(
        executor(cell, device), trials, work.train(), data.validation,
        algorithm=cell.algorithm, batch_size=cell.batch_size, goals=work.goals,
        max_steps=cell.max_steps or work.max_steps, order_seed=cell.replicate,
        hits=cell.hits, stop=cell.stop, checks=cell.checks, test=data.test, **options,
    )  # fmt: skip


def table(cell: Cell, outcome: training.Outcome) -> pd.DataFrame:
    """The outcome as a table with a row per trial."""
    work = workload(cell.workload)
    drawn = cell.draw()
    return pd.DataFrame({
        "trial": range(cell.trials), "seed": seeds(cell), **drawn,
        "status": outcome.status, "cause": outcome.cause, "last_step": outcome.last_step,
        "best_error": outcome.best_error, "best_step": outcome.best_step,
        **{f"steps@{goal:g}": outcome.first[:, i] for i, goal in enumerate(work.goals)},
        **{f"best@{budget}": outcome.best_within[:, i] for i, budget in enumerate(outcome.budgets)},
        **{f"test@{budget}": outcome.test_within[:, i] for i, budget in enumerate(outcome.budgets)},
        **({"sent": outcome.sent} if cell.messages else {}),
        **{f"sent@{budget}": outcome.sent_within[:, i] for i, budget in enumerate(outcome.budgets) if cell.messages},
    })  # fmt: skip


def measure(cell: Cell, folder: Path, progress_folder: str | None = None, device: str = "cpu") -> Path:
    """Train a cell, or the rest of one that was interrupted, and write its record under `folder`; returns the file.

    A job of its own: one thread, no shared state.  A record that is there, another runner's, is left alone.
    """
    file = record(cell, folder)
    if file.exists():
        return file
    use_one_core()
    origin = {
        "torch": torch.__version__,
        "device": device_name(device),
        "precision": str(cell.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "source": SOURCE,
    }
    # Its name tells the origin, so that a cell begun with other code or on another device is begun anew.
    unfinished = file.with_suffix(f".{hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:8]}.part")
    file.parent.mkdir(parents=True, exist_ok=True)
    outcome = train_cell(cell, device, progress=_Reporter(progress_folder), unfinished=unfinished)
    provenance = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **origin,
        "steps": outcome.steps,
        "trial_steps": outcome.trial_steps,
        "wall_s": round(outcome.wall_s, 2),
    }
    records.write(file, cell, table(cell, outcome), provenance)
    for part in file.parent.glob(f"{file.stem}.*.part"):
        part.unlink(missing_ok=True)
    return file


def device_name(device: str) -> str:
    """What the record calls the device: its model where torch knows it."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({torch.backends.cpu.get_cpu_capability()})" if device == "cpu" else device


def use_one_core() -> None:
    """Set this process up, from here on, to train on its own: one thread, denormal numbers as zeros, freed memory kept.

    Gradients below 1e-38, of classes that a network has long ruled out, doubled the time of a step in single precision.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    # Ask glibc to keep large blocks when they are freed: faulting them in anew took half of a Simple-CNN step.
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        m_trim_threshold, m_top_pad, m_mmap_max = -1, -2, -4
        mallopt(m_mmap_max, 0)
        mallopt(m_trim_threshold, 2**31 - 1)
        mallopt(m_top_pad, 64 * 2**20)


# --- many cells -------------------------------------------------------------------------------------------------------


def place(name: str) -> str:
    """The folder of a workload's records."""
    return "own" if workload(name).source else workload(name).dataset


def record(cell: Cell, folder: Path = DATA) -> Path:
    """Where the cell's record lies: by data set, so that every study finds it; a reader's own workloads under own/."""
    return records.path(folder / place(cell.workload), cell)


def missing(study: Study, folder: Path = DATA) -> list[Cell]:
    """The study's cells that have no record."""
    return [c for c in study.cells if not record(c, folder).exists()]


def run(study: Study, folder: Path = DATA, jobs: int = 1, device: str = "cpu") -> None:
    """Train what is missing, one cell a job, through joblib; every finished cell is in data/ at once.

    Wrap the call in `joblib.parallel_config(backend="dask")` to run on a Dask cluster that shares the folder.
    Raises RecordError if a file among the study's workloads is damaged or foreign, before any training.
    """
    check(study, folder)
    todo = missing(study, folder)
    if not todo:
        return
    with tempfile.TemporaryDirectory() as reports, _Display(study, todo, reports) as bar:
        parallel = joblib.Parallel(
            n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs + 1", batch_size=1
        )
        for _ in parallel(joblib.delayed(measure)(c, folder, reports, device) for c in todo):
            bar.update()


def check(study: Study, folder: Path = DATA) -> None:
    """Read every record of the study's workloads, also those of other studies' cells.  Raises RecordError.

    Of a reader's own workloads only the study's cells: what else is there may have been measured before its file changed.
    """
    mine = {c: record(c, folder) for c in study.cells}
    places = {file.parents[2] for c, file in mine.items() if not own.is_own(c.workload)}  # data set / workload
    files = {file for c, file in mine.items() if own.is_own(c.workload) and file.exists()}
    for file in sorted(files.union(*(place.rglob("*.csv") for place in places))):
        about = file.stat()
        _check_one(file, folder, (about.st_mtime_ns, about.st_size))


@functools.lru_cache(maxsize=2**16)  # chapters ask for the records of a workload a hundred times
def _check_one(file: Path, folder: Path, stamp: tuple[int, int]) -> None:
    """`check` of a file; stamp: when it was last changed, and its size, so that it is looked at again if it is not the same."""
    try:
        cell = Cell(**records.head(file)["cell"])
    except (TypeError, ValueError) as error:
        raise records.RecordError(f"{file}: its cell is not one of this book ({error}); move it out of data/") from None
    if record(cell, folder) != file:
        raise records.RecordError(f"{file}: of another workload definition or file name; move it out of data/")


def results(study: Study, budget: str = "cached", jobs: int = 1, folder: Path = DATA) -> pd.DataFrame:
    """All trials of the study's cells as one table, a row per trial: its cell's fields, its record, the goal and the steps to it.

    budget: "cached" reads the records and never trains; "full" first trains the missing cells; "smoke" trains a toy
    version of the study into a folder of its own.  attrs: "missing" (cells without a record), "cells_planned",
    "provenance" (a table with a row per cell).  Raises RecordError for a file that must not be read.
    """
    _require(budget in BUDGETS, "budget", budget, "one of " + ", ".join(BUDGETS))
    if budget == "smoke":
        study, folder = study.smoke(), SMOKE
    if budget != "cached":
        run(study, folder, jobs)
    check(study, folder)
    files = {file: cell for cell in study.cells if (file := record(cell, folder)).exists()}
    heads, trials = records.read_all(files) if files else ([], None)
    frame = _joined(files.values(), [head["rows"] for head in heads], trials) if files else pd.DataFrame()
    heads = [
        {**dataclasses.asdict(cell), **{k: v for k, v in head.items() if k != "cell"}}
        for cell, head in zip(files.values(), heads)
    ]
    lacking, heads = records.Shared(missing(study, folder)), records.Shared(heads)
    frame.attrs.update(missing=lacking, cells_planned=len(study.cells), provenance=heads)
    return frame


def _joined(cells: Iterable[Cell], lengths: list[int], trials: pd.DataFrame) -> pd.DataFrame:
    """The trials of these cells, so many of each, with their cell's fields, the goal and the steps to it."""
    fields = pd.DataFrame(list(map(_fields, cells)))
    fields = fields.loc[fields.index.repeat(lengths)].reset_index(drop=True)
    if "momentum" not in trials:
        trials.insert(3, "momentum", np.nan)
    steps = pd.concat([trials[f"steps@{goal:g}"][fields.goal == goal] for goal in fields.goal.unique()])
    return pd.concat([fields, trials, steps.rename("steps")], axis=1)


def _fields(cell: Cell) -> dict:
    work = workload(cell.workload)
    fields = {**dataclasses.asdict(cell), "precision": str(cell.dtype).removeprefix("torch.")}
    fields["max_steps"] = cell.max_steps or work.max_steps
    fields.update(fields.pop("messages") or {})
    return {**fields, "goal": work.goal}


# --- progress ---------------------------------------------------------------------------------------------------------


class _Reporter:
    """Writes a worker's progress to a file of its own, at most twice a second."""

    def __init__(self, folder: str | None):
        self.file = folder and Path(folder) / str(os.getpid())
        self.next = 0.0

    def __call__(self, step: int, alive: int, best: float) -> None:
        now = datetime.datetime.now().timestamp()
        if self.file and now >= self.next:
            self.next = now + 0.5
            with contextlib.suppress(OSError):
                self.file.write_text(json.dumps([step, alive, None if np.isinf(best) else best]))


class _Display(contextlib.AbstractContextManager):
    """A progress bar: cells done, time left, and for the cells in flight: step, trials alive, best error so far."""

    def __init__(self, study: Study, todo: list[Cell], reports: str):
        self.bar = tqdm(total=len(todo), desc=study.name, unit="cell")
        self.reports, self.done = Path(reports), threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.done.wait(1.0):
            now = []
            for file in sorted(self.reports.glob("*")):
                with contextlib.suppress(OSError, ValueError):
                    step, alive, best = json.loads(file.read_text())
                    now.append(f"step {step:,}, {alive} alive" + (f", error {best:.3f}" if best is not None else ""))
            self.bar.set_postfix_str(" | ".join(now))

    def update(self) -> None:
        self.bar.update()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.bar.close()


def positive(text: str) -> int:
    """A whole number from 1 on a command line.  Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be a whole number from 1")
    return int(text)


def usable(device: str) -> str:
    """A device on a command line.  Raises ArgumentTypeError if torch cannot compute on it."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:  # of a torch built without CUDA
        reason = str(error).partition("\n")[0]
        raise argparse.ArgumentTypeError(f"{device!r} is not allowed; torch cannot compute there ({reason})") from None
    return device


def main(arguments: list[str] | None = None) -> None:
    """The command line: run a study, or print what is done."""
    from lib import studies  # which lists cells, and so imports this module

    parser = argparse.ArgumentParser(prog="python -m lib.sweeps", description="Train the missing cells of a study.")
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="train a study's missing cells")
    runner.add_argument("study", choices=list(studies.STUDIES))
    runner.add_argument("--jobs", type=positive, default=1, help="cells trained side by side, one thread each")
    runner.add_argument("--device", type=usable, default="cpu", help='"cpu", "cuda", "cuda:1", ...')
    commands.add_parser("status", help="what is measured and what is missing")
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        run(studies.study(chosen.study), jobs=chosen.jobs, device=chosen.device)
    print(studies.status().to_string(index=False))


if __name__ == "__main__":
    from lib import sweeps  # as a module, not as __main__: workers then find `measure` by name and keep their caches

    sweeps.main()
