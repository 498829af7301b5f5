"""Searches by SGD whose steps a chapter takes itself, all trials at once, judged after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lib.studies.cells import Cell

if TYPE_CHECKING:
    from torch import Tensor


class OfCell:
    """A search with the draws, seeds, order and split of a cell by SGD.

    Searches have the fields workload, batch_size, trials and replicate (draws, seeds, data order
    and split of the examples).
    """

    @property
    def examples(self) -> int:
        """Examples of a step."""
        return self.batch_size

    @property
    def settings(self) -> dict:
        """Further fields of the cell."""
        return {"space": "learning_rate=0.01..3"}

    @property
    def cell(self) -> Cell:
        """The search by the book's own steps."""
        return Cell(
            self.workload,
            self.examples,
            "sgd",
            trials=self.trials,
            replicate=self.replicate,
            split=self.replicate,
            **self.settings,
        )

    def definition(self) -> dict:
        return self.cell.definition()


class Steps:
    """The trials of a cell, and what their steps and checks need.

    Attributes:
        trials: initialised, pruned, and with what is drawn of each.
        w, rate: parameters [T, P] before the first step, and learning rates [T, 1].
        train, held: examples, to train on and held out.
        executor, halves: gradients of the network, whole or cut in two.
        limits: [goals], wrong answers that meet the goals.
    """

    def __init__(self, cell: Cell, goals: tuple[float, ...]):
        """goals: validation errors, the hardest first."""
        # These bring PyTorch, which is slow to import, and most chapters only read
        from lib.engine import batched
        from lib.engine.clients import Halves
        from lib.engine.validation import Validation
        from lib.measuring import one_cell
        from lib.workloads import datasets, models

        self.trials, module = one_cell.start(cell), models.build(cell.work.model)
        self.w, self.rate = self.trials.w, self.trials.drawn["learning_rate"]
        self.train = cell.work.train(cell.split)
        self.held = datasets.load(cell.work.dataset, cell.split).validation
        self.executor, self.halves = batched.BatchedExecutor(module), Halves(module)
        self.judge = Validation(self.executor, self.held, goals)
        self.limits = self.judge.limits

    def until_met(
        self, step: Callable[[Tensor], Tensor], most: int
    ) -> Iterator[tuple[int, Tensor, Tensor]]:
        """After each step from w to new ones [T, P]: its number, w, and wrong answers [T], exact
        where they meet a goal; to the first that meets the hardest, or so many steps at most.
        """
        w, allowed = self.w, self.limits.max().expand(len(self.w))
        for count in range(1, most + 1):
            w = step(w)
            wrong = self.judge.costs(w, allowed)[0]
            yield count, w, wrong
            if (wrong <= self.limits[0]).any():
                return
