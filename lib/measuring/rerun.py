"""Trials trained update by update: those of a search again, to see more of them, or a chapter's own
steps and checks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from lib.engine import batched, flattening, lockstep
from lib.engine.clients import Halves
from lib.engine.sequential import Executor
from lib.engine.training_state import Trials
from lib.engine.validation import Validation
from lib.measuring import one_cell
from lib.methods import method
from lib.methods.method import Method
from lib.studies.cells import Cell
from lib.workloads import datasets, models
from lib.workloads.datasets import Split


class Walk:
    """Trials of a search update by update, without checks.

    Attributes:
        w: their weights [T, P] after `step` updates.
        trials: their start, masks and hyperparameters.
        executor: what computes their losses and gradients.
    """

    def __init__(
        self,
        method: Method,
        executor: Executor,
        trials: Trials,
        training: Split,
        batch_size: int,
        seed: int,
    ):
        """seed: of the order of the examples."""
        self.method = method
        self.executor = executor
        self.trials = trials
        self.x, self.y = executor.inputs(training.x), training.y
        self.layers = flattening.layers(executor.module)
        self.w = trials.w.clone()
        self.buffers = method.begin(trials.w, self.layers)
        self.order = lockstep.batches(len(self.y), batch_size, seed)
        self.step = 0

    def update(self) -> None:
        """Take the next batch's update, in place."""
        self.step += 1
        pick = next(self.order)
        of = self.method, self.executor, self.layers, self.trials, self.w, self.buffers
        lockstep.update(*of, self.step, (self.x[pick], self.y[pick]))

    def evaluated(self) -> Tensor:
        """The weights [T, P] that checks look at: an average of w for some methods."""
        return lockstep.validated(self.method, self.w, self.buffers)

    def costs(self, asked: Split) -> Tensor:
        """What the task counts of every example, as 1 for a wrong answer: [T, len(asked)]."""
        logits = self.executor.logits(self.evaluated(), self.executor.inputs(asked.x))
        return self.executor.task.cost(logits, asked.y)

    def fork(self, trials: Trials, batch_size: int, seed: int) -> Walk:
        """A copy that goes on from here with other hyperparameters, batch size and order."""
        other = copy.copy(self)
        other.trials = trials
        other.w = self.w.clone()
        other.buffers = {name: buffer.clone() for name, buffer in self.buffers.items()}
        other.order = lockstep.batches(len(self.y), batch_size, seed)
        return other


class Rerun(Walk):
    """Trials of a search as they were: the same start, hyperparameters and order of the examples.

    Attributes:
        validation: the examples on which the search checks them.
    """

    def __init__(
        self, cell: Cell, chosen: Sequence[int] | None = None, training: Split | None = None
    ):
        """
        cell: the search, of a single worker whose gradients are not late.
        chosen: indices of its trials; None for all.
        training: other examples to train on than the search's.
        """
        if cell.messages or cell.staleness:
            raise ValueError(f"cell: {cell} is not allowed; it must be of one worker without delay")
        training = training or cell.work.train(cell.split)
        trials = one_cell.start(cell, None if chosen is None else list(chosen))
        executor, order = one_cell.executor(cell), (cell.batch_size, cell.replicate)
        super().__init__(method(cell.algorithm), executor, trials, training, *order)
        self.validation = datasets.load(cell.work.dataset, cell.split).validation


class Steps:
    """The trials of a cell by SGD, and what steps and checks of a chapter's own need.

    Attributes:
        trials: initialised, pruned, and with what is drawn of each.
        w, rate: parameters [T, P] before the first step, and learning rates [T, 1].
        train, held: examples, to train on and held out.
        executor, halves: gradients of the network, whole or cut in two.
        limits: [goals], wrong answers that meet the goals.
    """

    def __init__(self, cell: Cell, goals: tuple[float, ...]):
        """goals: validation errors, the hardest first."""
        module = models.build(cell.work.model)
        self.trials = one_cell.start(cell)
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
