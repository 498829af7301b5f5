"""Studies: named sets of cells, most of them grids; and which searches are races
(`lib.engine.lockstep`), by which rule, which the chapter steps_to_result judges on record.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lib import require
from lib.methods import METHODS
from lib.own import is_own
from lib.studies.cells import Cell
from lib.workloads import own_file
from lib.workloads.catalogue import EASIER, THEIR_SPLIT, Workload
from lib.workloads.datasets import LEE2021

LIGHT = 256  # numbers in an example of which a toy can be trained in seconds
# What a toy trains, by how its trials stop
TOYS = {
    "goal": {"trials": 16, "hits": 2, "max_steps": 400},
    "budget": {"trials": 4, "max_steps": 64},
}
HEAVY_TOY = {"trials": 2, "hits": 2, "max_steps": 2}


@dataclass(frozen=True)
class Study:
    """A named set of cells, the most wanted first, each once; they are kept as a tuple.

    apart: of a question of its own, so that its searches are no further curves of the book.
    A cell that several studies share is measured once.
    """

    name: str
    title: str
    cells: Iterable[Cell]
    apart: bool = False

    def __post_init__(self):
        object.__setattr__(self, "cells", tuple(dict.fromkeys(self.cells)))

    def smoke(self) -> Study:
        """The same code path in seconds: one algorithm, three batch sizes, two sparsities, few
        trials and steps.

        Raises:
            ValueError: for a study without cells; and where examples are larger than the digits,
                for cells that run to a goal: chapters need one that is met, which takes minutes.
        """
        require(self.cells, "cells", self.cells, "at least one")
        first, *_ = self.cells
        light = _is_light(first.work)
        able = light or all(c.stop == "budget" for c in self.cells)
        allowed = f"cached, or full with few trials, for {first.workload}; smoke is for examples"
        require(able, "budget", "smoke", f"{allowed} of at most {LIGHT} numbers, as the digits are")
        toys = [
            replace(c, replicate=0, split=0, **(TOYS[c.stop] if light else HEAVY_TOY))
            for c in self.cells
            if (c.algorithm, c.workload) == (first.algorithm, first.workload)
        ]
        sizes = sorted({c.batch_size for c in toys})
        sizes = {sizes[len(sizes) // 2], sizes[len(sizes) * 3 // 4], sizes[-1]}
        levels = sorted(c.sparsity for c in toys)
        kept = (c for c in toys if c.batch_size in sizes and c.sparsity in (levels[0], levels[-1]))
        return replace(self, cells=kept)


def _is_light(work: Workload) -> bool:
    """Whether its examples are about as small as the digits."""
    if is_own(work.name):
        return own_file.facts(work.name).numbers <= LIGHT
    return work.train().x[0].numel() <= LIGHT if work.source else work.dataset == "digits"


def grid(**fields: object) -> Iterator[Cell]:
    """All combinations of these fields' values, the first field the slowest.

    Args:
        **fields: of `Cell`, each a value, or several in a tuple, list or range. `search` stands
            for `replicate` and `split`: searches on splits of their own.
    """
    several = (tuple, list, range)
    axes = [value if isinstance(value, several) else (value,) for value in fields.values()]
    for values in itertools.product(*axes):
        chosen = dict(zip(fields, values))
        if "search" in chosen:
            chosen["replicate"] = chosen["split"] = chosen.pop("search")
        yield Cell(**chosen)


def to_budget(examples: int, **fields) -> Iterator[Cell]:
    """Every trial to its budget: 4,096 steps, or more where a small batch needs more for so many
    examples.
    """
    for cell in grid(stop="budget", **fields):
        yield replace(cell, max_steps=max(4096, examples // cell.batch_size))


def powers(low: int, high: int, every: int = 1) -> list[int]:
    """2**low ... 2**high, `every` so many powers."""
    return [2**k for k in range(low, high + 1, every)]


DENSE_AND_SPARSE = (0.0, 0.9)
ALL_POWERS = powers(0, 10, 2) + powers(1, 9, 2)  # every fourth power before those between
DIGITS = ("digits-mlp", "digits-cnn")
EXACT = {"trials": 32, "hits": 2}  # an image network's search that is no race

# --- races ----------------------------------------------------------------------------------------

# Data sets: the digits' validation sets are too small for a race; CIFAR-10 gains little
RACED = ("mnist", LEE2021, "fashion-mnist")
BY_GOALS = {"race": 2.5}  # fields of a cell
# Wide, since at twice the steps a winner with Nesterov momentum is gone
BY_LOSSES = {"race": 3.0, "rungs": "losses"}
# times the factor, for the second race where nobody wins the first: its leader may stall short of
# the goal
WIDER = 4
SLOW_TO_START = ("muon",)  # training methods whose winners a race on losses loses
# a race that nobody can lose: an exact search of which the record says when losses fell, too
WATCHED = 1e6

_FC, _FASHION = f"mnist-fc-128x3{EASIER}", f"fashion-mnist-fc-128x3{EASIER}"
_CNN = "mnist-simple-cnn"
_FROM_16, _TO_1024 = (16, 64, 256, 1024, 4096), (4, 16, 64, 256, 1024)
# What was measured when goals alone were rungs: workloads, methods, sparsities, searches, batch
# sizes.
_EARLIER = (
    ((_FC, _FASHION), ("momentum", "sgd"), (0.0,), range(1, 6), (4, *_FROM_16)),
    ((_FC, _FASHION), ("momentum",), (0.9,), range(1, 6), _FROM_16),
    ((_FC, _FASHION), ("sgd",), (0.9,), (1, 2), _FROM_16),
    ((_FC,), ("sgd",), (0.9,), (3,), (64, 1024, 4096)),
    ((_FASHION,), ("sgd",), (0.9,), (3,), (16, 64)),
    ((_FC,), METHODS, (0.0,), (1,), _FROM_16),
    ((_FC,), ("adam",), (0.0,), (2,), (64,)),
    ((_CNN + EASIER,), ("momentum",), (0.0,), (1, 2), _TO_1024),
    ((_CNN + EASIER,), ("momentum",), (0.9,), (1,), _TO_1024),
    ((_CNN + EASIER,), ("momentum",), (0.9,), (2,), (4, 16, 64, 256)),
    ((_CNN + THEIR_SPLIT,), ("momentum",), (0.0,), (0,), (64,)),
    ((_CNN,), ("momentum",), (0.0,), (0,), (512,)),
    ((_CNN,), ("momentum",), (0.9,), (0,), (8,)),
    ((_CNN,), ("momentum",), (0.5,), (0,), (1024,)),
)
_ON_GOALS = {search for row in _EARLIER for search in itertools.product(*row)}
_searched = operator.attrgetter("workload", "algorithm", "sparsity", "replicate", "batch_size")


def raced(cell: Cell) -> Cell:
    """The search as a race, up to its first hit: on losses; on goals alone if it was measured so,
    or its method starts slowly.
    """
    earlier = _searched(cell) in _ON_GOALS or cell.algorithm in SLOW_TO_START
    return replace(cell, hits=1, **(BY_GOALS if earlier else BY_LOSSES))


def races(**fields) -> Iterator[Cell]:
    """A `grid` of searches of 32 trials that are races: what was not measured before races were
    calibrated.
    """
    return map(raced, grid(**{"trials": 32} | fields))
