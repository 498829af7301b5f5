"""Studies: named sets of cells, most of them grids."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lib import require
from lib.own import is_own
from lib.studies.cells import Cell
from lib.workloads import own_file
from lib.workloads.catalogue import Workload, workload

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
        light = _is_light(workload(first.workload))
        able = light or all(c.stop == "budget" for c in self.cells)
        allowed = f"cached, or full with few trials, for {first.workload}; smoke is for examples"
        allowed += f" of at most {LIGHT} numbers, as the digits are"
        require(able, "budget", "smoke", allowed)
        own = (first.algorithm, first.workload)
        toys = [
            replace(c, replicate=0, split=0, **(TOYS[c.stop] if light else HEAVY_TOY))
            for c in self.cells
            if (c.algorithm, c.workload) == own
        ]
        sizes = sorted({c.batch_size for c in toys})
        sizes = sizes[len(sizes) // 2], sizes[len(sizes) * 3 // 4], sizes[-1]
        levels = [c.sparsity for c in toys]
        ends = min(levels), max(levels)
        kept = (c for c in toys if c.batch_size in sizes and c.sparsity in ends)
        return replace(self, cells=kept)


def _is_light(work: Workload) -> bool:
    """Whether its examples are about as small as the digits."""
    if not work.source:
        return work.dataset == "digits"
    own = is_own(work.name)
    return (own_file.facts(work.name).numbers if own else work.train().x[0].numel()) <= LIGHT


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
