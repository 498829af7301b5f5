"""Trains trials update by update: those of a search again, to see more of them; with steps and
checks of a chapter; or in searches of any module on any tensors, for their winners.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lib import require
from lib.engine import batched, flattening, lockstep, pruning
from lib.engine.clients import Halves
from lib.engine.flattening import Executor
from lib.engine.training_state import Descent, Trials
from lib.engine.validation import Validation
from lib.measuring import one_search
from lib.methods import method, spaces
from lib.methods.method import Method
from lib.studies.search import Search
from lib.workloads import models
from lib.workloads.datasets import Split


class Walk(Descent):
    """Trials of a search after `step` updates, trained update by update, without checks."""

    def __init__(
        self,
        method: Method,
        executor: Executor,
        trials: Trials,
        training: Split,
        batch_size: int,
        seed: int,
    ):
        """seed: for the order of the examples."""
        super().__init__(method, executor, trials)
        self.x, self.y = executor.inputs(training.x), training.y
        self.order = lockstep.batches(len(self.y), batch_size, seed)
        self.step = 0

    def update(self) -> None:
        """Update on the next batch, in place."""
        self.step += 1
        pick = next(self.order)
        self.advance(self.step, (self.x[pick], self.y[pick]))

    def costs(self, examples: Split) -> Tensor:
        """The task's cost of every example, such as 1 for a mistake: [T, len(examples)]."""
        logits = self.executor.logits(self.evaluated(), self.executor.inputs(examples.x))
        return self.executor.task.cost(logits, examples.y)

    def fork(self, trials: Trials, batch_size: int, seed: int) -> Walk:
        """A copy that continues from here with other hyperparameters, batch size and order."""
        walk = copy.copy(self)
        walk.trials = trials
        walk.w = self.w.clone()
        walk.buffers = {name: buffer.clone() for name, buffer in self.buffers.items()}
        walk.order = lockstep.batches(len(self.y), batch_size, seed)
        return walk


class Rerun(Walk):
    """Trials of a search as they were: the same start, hyperparameters and order of the examples.

    Attributes:
        validation: the examples on which the search checks them.
    """

    def __init__(
        self, cell: Search, chosen: list[int] | None = None, training: Split | None = None
    ):
        """
        cell: the search, with a single worker and no late gradients.
        chosen: indices of its trials; None for all.
        training: examples to train on instead of the search's.
        """
        plain = not (cell.messages or cell.staleness)
        require(plain, "cell", cell, "of one worker without delay")
        data = cell.work.data(cell.split)
        trials, executor = one_search.start(cell, chosen), one_search.executor(cell)
        order = cell.batch_size, cell.replicate
        super().__init__(cell.method, executor, trials, training or data.train, *order)
        self.validation = data.validation


class Steps:
    """The trials of a search by SGD, and what a chapter's steps and checks need.

    Attributes:
        trials: initialised, pruned, and with their hyperparameters.
        w, rate: parameters [T, P] before the first step, and learning rates [T, 1].
        train, held: training examples, and held-out ones.
        executor, halves: compute gradients of the network, whole or cut in two.
        limits: [goals], the most wrong answers that meet each goal.
    """

    def __init__(self, cell: Search, goals: tuple[float, ...]):
        """goals: validation errors, the hardest first."""
        data = cell.work.data(cell.split)
        module = cell.work.network()
        self.trials = one_search.start(cell)
        self.w = self.trials.w
        self.rate = self.trials.drawn["learning_rate"]
        self.train, self.held = data.train, data.validation
        self.executor, self.halves = batched.BatchedExecutor(module), Halves(module)
        self.judge = Validation(self.executor, self.held, goals)
        self.limits = self.judge.limits

    def until_met(
        self, step: Callable[[Tensor], Tensor], most: int
    ) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield after each step, which maps w to a new one [T, P]: its number, w, and wrong answers
        [T], exact if they meet a goal; until a trial meets the hardest goal, or for `most` steps.
        """
        w, allowed = self.w, self.limits.max().expand(len(self.w))
        for count in range(1, most + 1):
            w = step(w)
            wrong, _ = self.judge.costs(w, allowed)
            yield count, w, wrong
            if (wrong <= self.limits[0]).any():
                return


@dataclass(frozen=True, kw_only=True)
class MomentumSearch:
    """A search by momentum in the ranges of Lee et al. (2021), in lock step to the first hit.

    Attributes:
        network: builds the module, of layers in `lib.engine.batched.RULES`.
        training, validation: inputs x [N, ...] and classes y [N].
        goals: validation errors, the hardest first.
        search: an object with batch_size, sparsity (share of the parameters that connection
            sensitivity removes), replicate (of draws, seeds and order), trials and max_steps (after
            which it is given up).
        drop_dead: whether to drop trials in which nothing reaches the last layer.
        prepare: changes the initial weights [T, P] in place.
    """

    network: Callable[[], nn.Module]
    training: Split
    validation: Split
    goals: tuple[float, ...]
    search: object
    drop_dead: bool = True
    prepare: Callable[[Tensor], object] = lambda w: None

    @functools.cached_property
    def executor(self) -> Executor:
        return batched.BatchedExecutor(self.network())

    @functools.cached_property
    def trials(self) -> Trials:
        """The search's trials before their first step."""
        search, scored = self.search, "connection-sensitivity"
        seeds = one_search.seeds(search)
        fresh = [flattening.flatten(models.initialise(self.network(), seed)) for seed in seeds]
        w, mask = torch.stack(fresh), None
        self.prepare(w)
        if search.sparsity:
            examples = self.executor, self.training.x, self.training.y
            scores = [pruning.scores(scored, row, *examples, seed=0) for row in w]
            masks = [pruning.chosen(scored, row, search.sparsity) for row in scores]
            mask = torch.stack(masks)
            w = w * mask
        drawn = spaces.draw("lee2021", "momentum", search.trials, replicate=search.replicate)
        columns = {name: torch.from_numpy(v).float()[:, None] for name, v in drawn.items()}
        return Trials(w, mask, columns)


def winners(job: MomentumSearch) -> Iterator[tuple[dict[str, float], nn.Module]]:
    """For each goal, the first trial that met it: a row about it, and its network then.

    The row holds goal, steps (NaN if none met it: the first trial before its first step then stands
    in), trial, learning_rate and momentum.
    """
    search, trials = job.search, job.trials
    outcome = lockstep.train(
        job.executor,
        trials,
        job.training,
        job.validation,
        method=method("momentum"),
        batch_size=search.batch_size,
        goals=job.goals,
        max_steps=search.max_steps,
        order_seed=search.replicate,
        hits=1,
        drop_dead=job.drop_dead,
    )
    for goal, first in zip(job.goals, outcome.first.T):
        met = np.isfinite(first).any()
        trial = int(np.nanargmin(first)) if met else 0
        drawn = {name: float(values[trial, 0]) for name, values in trials.drawn.items()}
        about = {"goal": goal, "steps": first[trial], "trial": trial, **drawn}
        yield about, retrain(job, trial, int(first[trial]) if met else 0)


def retrain(job: MomentumSearch, trial: int, steps: int) -> nn.Module:
    """The network of one trial, trained anew for `steps` steps as in the search."""
    search, trials = job.search, job.trials.keep([trial])
    order = search.batch_size, search.replicate
    walk = Walk(method("momentum"), job.executor, trials, job.training, *order)
    for _ in range(steps):
        walk.update()
    module = job.network()
    for p, values in zip(module.parameters(), flattening.unflatten(walk.w[0], module)):
        p.data.copy_(values)
    return module
