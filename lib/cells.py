"""Cells, the unit that is trained, cached and resumed, and studies, which are sets of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib import ROOT, code, is_number, metaparameters, own, records, require, require_number, require_whole
from lib.messages import Messages
from lib.metaparameters import ALGORITHMS
from lib.workloads import Workload, workload

DATA = ROOT / "data"
MEASURING = (
    "algorithms",
    "cells",
    "checks",
    "datasets",
    "measurement",
    "messages",
    "metaparameters",
    "models",
    "own",
    "own_network",
    "pruning",
    "sparse",
    "sparsification",
    "stacks",
    "training",
    "workloads",
)
# The code that measures, taken when it is loaded: a later edit is not what runs.
SOURCE = code(MEASURING)
SPLITS = 9999  # the largest number of a replicate and of a split
LIGHT = 256  # numbers in an example of which a toy can be trained in seconds
METHODS = ("connection-sensitivity", "random", "magnitude", "grasp", "synflow")  # of pruning, `lib.pruning`


@dataclass(frozen=True)
class Cell:
    """The unit that is run, cached and resumed.  Raises ValueError naming the field, its value and what is allowed.

    stop, hits: see `lib.training`; checks: see `lib.checks`.  precision, max_steps and space: None for the workload's own; a
    space may also be one point (`lib.metaparameters.point`), which every trial then shares.  label_smoothing: the share of
    the target spread evenly over all classes.  messages: how the batch is shared among workers, if it is; a dictionary will
    do.  split: which draw of training and validation examples (`lib.datasets.load`).
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
    split: int = 0

    def __post_init__(self):
        work = workload(self.workload)
        object.__setattr__(self, "workload", work.name)
        examples = work.train_size
        if isinstance(self.messages, dict):  # as records hold it
            known = [f.name for f in dataclasses.fields(Messages)]
            require(set(self.messages) <= set(known), "messages", self.messages, "of the fields " + ", ".join(known))
            object.__setattr__(self, "messages", Messages(**self.messages))
        require(isinstance(self.messages, Messages | None), "messages", self.messages, "None, a Messages or its fields")
        one_of = {
            "algorithm": ALGORITHMS,
            "pruning": METHODS,
            "stop": ("goal", "budget"),
            "checks": ("geometric", "every-100"),
            "precision": (None, "float32", "bfloat16"),
        }
        for field, allowed in one_of.items():
            require(
                getattr(self, field) in allowed, field, getattr(self, field), "one of " + ", ".join(map(str, allowed))
            )
        for field in ("sparsity", "label_smoothing"):
            require_number(field, getattr(self, field), lambda share: 0 <= share < 1, "a number in [0, 1)")
        whole = {"batch_size": examples, "trials": 4096, "hits": 4096, "max_steps": 10**8}
        for field, most in whole.items():
            of = f" ({self.workload} has {examples} training examples)" if field == "batch_size" else ""
            if field != "max_steps" or self.max_steps is not None:
                require_whole(field, getattr(self, field), 1, most, of)
        if self.messages:
            workers = self.messages.workers
            shared = self.batch_size % workers == 0
            require(shared, "batch_size", self.batch_size, f"a multiple of messages.workers ({workers})")
            whole_net = not self.messages.by_layer or self.sparsity == 0
            require(whole_net, "messages.by_layer", True, "False for a sparse network")
        if self.space is not None:
            metaparameters.parse(self.space, self.algorithm, workload(self.workload).decay)
        for field in ("replicate", "split"):
            require_whole(field, getattr(self, field), 0, SPLITS)
        mine = self.split == 0 or not workload(self.workload).source
        require(mine, "split", self.split, "0 for a workload of your own, which says itself what it is validated on")

    def draw(self) -> dict[str, np.ndarray]:
        """The metaparameters of all trials: name -> [trials]."""
        work = workload(self.workload)
        space = self.space or work.space
        return metaparameters.draw(space, self.algorithm, self.trials, decay=work.decay, replicate=self.replicate)

    @property
    def arithmetic(self) -> str:
        """Its own precision, or else the workload's."""
        return self.precision or workload(self.workload).precision

    def definition(self) -> dict:
        """What the digest depends on besides the fields: the workload's, so that changing one mixes nothing."""
        work = workload(self.workload)
        parts = ("dataset", "model", "goals", "decay", "max_steps", "precision", "space")
        return {k: getattr(work, k) for k in (*parts, *(k for k in ("source", "examples") if getattr(work, k)))}


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
        ValueError for those that run to a goal, since chapters need one that is met, which takes many minutes; and for a
        study without cells.
        """
        require(self.cells, "cells", self.cells, "at least one")
        light = _light(workload(self.cells[0].workload))
        able = light or all(c.stop == "budget" for c in self.cells)
        allowed = f"cached, or full with few trials, for {self.cells[0].workload}; smoke is for examples of at most {LIGHT} numbers"
        require(able, "budget", "smoke", f"{allowed}, as the digits are")
        few = [c for c in self.cells if c.algorithm == self.cells[0].algorithm and c.workload == self.cells[0].workload]
        sizes, levels = sorted({c.batch_size for c in few}), sorted({c.sparsity for c in few})
        sizes, levels = {sizes[len(sizes) // 2], sizes[len(sizes) * 3 // 4], sizes[-1]}, {levels[0], levels[-1]}
        wanted = (c for c in few if c.batch_size in sizes and c.sparsity in levels)
        chosen = tuple(dict.fromkeys(dataclasses.replace(c, replicate=0, split=0) for c in wanted))
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
    Raises ValueError for an empty list, for a field that cells do not have, and as `Cell`.
    """
    for field, given in {"batch_sizes": batch_sizes, "algorithms": algorithms, "sparsities": sparsities}.items():
        several = not isinstance(given, str) and hasattr(given, "__len__") and len(given) > 0
        require(several, field, given, "a list of at least one")
    for level in sparsities:
        require(is_number(level), "sparsities", level, "numbers in [0, 1)")
    known = {f.name for f in dataclasses.fields(Cell)} - {"workload", "batch_size", "algorithm", "sparsity"}
    for field, value in fields.items():
        require(field in known, field, value, f"left out; the fields of a cell are {', '.join(sorted(known))}")
    trials = fields.get("trials", 100)
    usual = min(5, max(1, trials // 6)) if isinstance(trials, int) else 1
    given = {"hits": usual, **fields}
    cells = (Cell(name, b, a, float(s), **given) for b in batch_sizes for a in algorithms for s in sparsities)
    return Study(name, workload(name).title, tuple(c if "hits" in fields else _on_record(c) for c in cells))


def _on_record(cell: Cell) -> Cell:
    """The cell, or if it has no record the same search that has one and waited for fewer hits."""
    searches = [dataclasses.replace(cell, hits=hits) for hits in range(cell.hits, 0, -1)]
    return next((c for c in searches if record(c, DATA).exists()), cell)


def place(name: str) -> str:
    """The folder of a workload's records."""
    return "own" if workload(name).source else workload(name).dataset


def record(cell: Cell, folder: Path = DATA) -> Path:
    """Where the cell's record lies: by data set, so that every study finds it; a reader's own workloads under own/."""
    return records.path(folder / place(cell.workload), cell)


def same_data(name: str, folder: Path = DATA, mine: str | None = None) -> None:
    """Raise OwnError unless all records of a reader's own workload, as its file is now, are of the same tensors.

    mine: the digest of the tensors (`lib.own.data`) of which another record is to be added.  Records that tell none pass.
    """
    found = {} if mine is None else {mine: "what the function returns here and now"}
    work = workload(name)
    for file in sorted((folder / place(name) / records.folder_name(work.name)).rglob("*.csv")):
        stat = file.stat()
        if data := _data(file, folder, work.source, (stat.st_mtime_ns, stat.st_size)):
            found.setdefault(data, file)
    if len(found) > 1:
        each = ", ".join(f"{data} of {where}" for data, where in found.items())
        raise own.OwnError(
            f"{name}: data: tensors that differ ({each}) is not allowed; it must be the same in every process, or the records "
            f"of the others moved out of data/"
        )


@functools.lru_cache(maxsize=2**16)  # every cell that is measured asks again
def _data(file: Path, folder: Path, source: str, stamp: tuple[int, int]) -> str | None:
    """The tensors of which a record tells, if it is of the reader's file with this digest; stamp: as the record is now."""
    with contextlib.suppress(TypeError, ValueError, records.RecordError):  # of the file as it was, or another's
        head = records.head(file)
        if record(Cell(**head["cell"]), folder) == file:
            return head.get("data")
    return None
