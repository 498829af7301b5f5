"""Trials of a search trained again, update by update and without checks, to see more of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from torch import Tensor

from lib.engine import flattening, lockstep
from lib.engine.training_state import Trials
from lib.measuring import one_cell
from lib.methods import method
from lib.workloads import datasets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lib.studies.cells import Cell
    from lib.workloads.datasets import Split


class Rerun:
    """Trials of a search as they were: the same start, hyperparameters and order of the examples.

    Attributes:
        w: their weights [T, P] after `step` updates, in the search's precision.
        trials: their start, masks and hyperparameters.
        executor: what computes their losses and gradients.
        validation: the examples on which the search checks them.
    """

    def __init__(
        self,
        cell: Cell,
        chosen: Sequence[int] | None = None,
        training: Split | None = None,
    ):
        """
        cell: the search, of a single worker whose gradients are not late.
        chosen: indices of its trials; None for all.
        training: other examples to train on than the search's.
        """
        if cell.messages or cell.staleness:
            raise ValueError(f"cell: {cell} is not allowed; it must be of one worker without delay")
        training = training or cell.work.train(cell.split)
        self.method = method(cell.algorithm)
        self.executor = one_cell.executor(cell)
        self.trials = one_cell.start(cell, None if chosen is None else list(chosen))
        self.validation = datasets.load(cell.work.dataset, cell.split).validation
        self.x, self.y = self.executor.inputs(training.x), training.y
        self.layers = flattening.layers(self.executor.module)
        self.w = self.trials.w.clone()
        self.buffers = self.method.begin(self.trials.w, self.layers)
        self.order = lockstep.batches(len(self.y), cell.batch_size, cell.replicate)
        self.step = 0

    def update(self) -> None:
        """Take the next batch's update, in place."""
        self.step += 1
        pick = next(self.order)
        batch = self.x[pick], self.y[pick]
        lockstep.update(
            self.method,
            self.executor,
            self.layers,
            self.trials,
            self.w,
            self.buffers,
            self.step,
            batch,
        )

    def evaluated(self) -> Tensor:
        """The weights [T, P] that checks look at: an average of w for some methods."""
        return lockstep.validated(self.method, self.w, self.buffers)

    def costs(self, asked: Split) -> Tensor:
        """What the task counts of every example, as 1 for a wrong answer: [T, len(asked)]."""
        logits = self.executor.logits(self.evaluated(), self.executor.inputs(asked.x))
        return self.executor.task.cost(logits, asked.y)

    def fork(self, trials: Trials, batch_size: int, seed: int) -> Rerun:
        """A copy that goes on from here with other hyperparameters, batch size and order."""
        other = copy.copy(self)
        other.trials = trials
        other.w = self.w.clone()
        other.buffers = {name: buffer.clone() for name, buffer in self.buffers.items()}
        other.order = lockstep.batches(len(self.y), batch_size, seed)
        return other
