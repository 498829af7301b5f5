"""Searches of any module on any tensors, and the trials that win them, trained again to be looked
at.

A chapter whose question is what a network has become at its goal, and not only when, needs the
weights; records of studies keep none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lib.engine import flattening, lockstep, pruning
from lib.engine.batched import BatchedExecutor
from lib.engine.training_state import Trials
from lib.measuring.rerun import Walk
from lib.methods import method, spaces
from lib.workloads import models
from lib.workloads.datasets import Split

PRUNING = "connection-sensitivity"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A search by momentum within the range of Lee et al. (2021), in lock step to the first hit.

    Attributes:
        network: builds the module, of layers that `lib.engine.batched.RULES` knows.
        training, validation: inputs x [N, ...] and classes y [N].
        goals: validation errors, the hardest first.
        search: with batch_size, sparsity (share of the parameters that connection sensitivity
            removes), replicate (of the draws, the seeds and the order), trials and max_steps
            (after which it is given up).
        drop_dead: whether trials leave in which nothing reaches the last layer.
        prepare: changes the first weights [T, P] in place.
    """

    network: Callable[[], nn.Module]
    training: Split
    validation: Split
    goals: tuple[float, ...]
    search: object
    drop_dead: bool = True
    prepare: Callable[[Tensor], object] = lambda w: None


def winners(asked: Asked) -> Iterator[tuple[dict[str, float], nn.Module]]:
    """For each goal, the first trial that met it: what is told of it, and its network then.

    Told are goal, steps (NaN where none met it: the first trial then stands for all, before its
    first step), trial, learning_rate and momentum.
    """
    search, goals = asked.search, asked.goals
    executor, trials = BatchedExecutor(asked.network()), start(asked)
    outcome = lockstep.train(
        executor,
        trials,
        asked.training,
        asked.validation,
        method=method("momentum"),
        batch_size=search.batch_size,
        goals=goals,
        max_steps=search.max_steps,
        order_seed=search.replicate,
        hits=1,
        drop_dead=asked.drop_dead,
    )
    for goal, first in zip(goals, outcome.first.T):
        met = np.isfinite(first).any()
        trial = int(np.nanargmin(first)) if met else 0
        drawn = {name: float(values[trial, 0]) for name, values in trials.drawn.items()}
        told = {"goal": goal, "steps": first[trial], "trial": trial, **drawn}
        yield told, again(asked, executor, trials, trial, int(first[trial]) if met else 0)


def start(asked: Asked) -> Trials:
    """The search's trials before their first step."""
    search = asked.search
    seeds = [100_000 * search.replicate + trial for trial in range(search.trials)]
    fresh = [models.initialise(asked.network(), seed) for seed in seeds]
    w = torch.stack([flattening.flatten(module).clone() for module in fresh])
    asked.prepare(w)
    drawn = spaces.draw("lee2021", "momentum", search.trials, replicate=search.replicate)
    columns = {name: torch.from_numpy(v).float()[:, None] for name, v in drawn.items()}
    if not search.sparsity:
        return Trials(w, None, columns)
    executor, examples, masks = BatchedExecutor(asked.network()), asked.training, []
    for row, seed in zip(w, seeds):
        scores = pruning.scores(PRUNING, row, executor, examples.x, examples.y, seed)
        masks.append(pruning.chosen(PRUNING, scores, search.sparsity))
    mask = torch.stack(masks)
    return Trials(w * mask, mask, columns)


def again(
    asked: Asked, executor: BatchedExecutor, trials: Trials, trial: int, steps: int
) -> nn.Module:
    """The network of one trial, trained anew for so many steps, each as in the search."""
    own, order = trials.keep([trial]), (asked.search.batch_size, asked.search.replicate)
    walk = Walk(method("momentum"), executor, own, asked.training, *order)
    for _ in range(steps):
        walk.update()
    module = asked.network()
    for p, values in zip(module.parameters(), flattening.unflatten(walk.w[0], module)):
        p.data.copy_(values)
    return module
