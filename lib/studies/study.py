"""Studies: named sets of cells."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from lib import require
from lib.own import TRAINING
from lib.studies.cells import Cell
from lib.workloads import own_file
from lib.workloads.catalogue import Workload, workload

LIGHT = 256  # numbers in an example of which a toy can be trained in seconds


@dataclass(frozen=True)
class Study:
    """A named set of cells, the most wanted first, each once.  A cell that several studies share is
    measured once.
    """

    name: str
    title: str
    cells: tuple[Cell, ...]

    def __post_init__(self):
        object.__setattr__(self, "cells", tuple(dict.fromkeys(self.cells)))

    def smoke(self) -> Study:
        """The same code path in seconds: one algorithm, three batch sizes, two sparsities, few
        trials and steps.

        Where examples are larger than the digits, only of cells that run to their budget: two
        trials of two steps.  Raises ValueError for those that run to a goal, since chapters need
        one that is met, which takes many minutes; and for a study without cells.
        """
        require(self.cells, "cells", self.cells, "at least one")
        light = _light(workload(self.cells[0].workload))
        able = light or all(c.stop == "budget" for c in self.cells)
        allowed = f"cached, or full with few trials, for {self.cells[0].workload}; smoke is for examples of at most {LIGHT} numbers"
        require(able, "budget", "smoke", f"{allowed}, as the digits are")
        few = [
            c
            for c in self.cells
            if c.algorithm == self.cells[0].algorithm and c.workload == self.cells[0].workload
        ]
        sizes, levels = sorted({c.batch_size for c in few}), sorted({c.sparsity for c in few})
        sizes, levels = (
            {sizes[len(sizes) // 2], sizes[len(sizes) * 3 // 4], sizes[-1]},
            {levels[0], levels[-1]},
        )
        wanted = (c for c in few if c.batch_size in sizes and c.sparsity in levels)
        chosen = tuple(dict.fromkeys(dataclasses.replace(c, replicate=0, split=0) for c in wanted))
        small = {
            "goal": {"trials": 16, "hits": 2, "max_steps": 400},
            "budget": {"trials": 4, "max_steps": 64},
        }
        if not light:
            small = dict.fromkeys(small, {"trials": 2, "hits": 2, "max_steps": 2})
        return Study(
            self.name, self.title, tuple(dataclasses.replace(c, **small[c.stop]) for c in chosen)
        )


def _light(work: Workload) -> bool:
    """Whether its examples are about as small as the digits."""
    if work.dataset == "digits" or not work.source:
        return work.dataset == "digits"
    found = own_file.facts(work.name) if work.task == TRAINING else None
    return (found.numbers if found else work.train().x[0].numel()) <= LIGHT
