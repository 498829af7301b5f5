"""Searches of any module on any tensors, and the trials that win them, trained again to be looked
at.

A chapter whose question is what a network has become at its goal, and not only when, needs the
weights; records of studies keep none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lib.methods import method, spaces

if TYPE_CHECKING:
    from torch import Tensor, nn

    from lib.engine.training_state import Trials
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
    from lib.engine import lockstep
    from lib.engine.batched import BatchedExecutor

    executor, trials = BatchedExecutor(asked.network()), start(asked)
    outcome = lockstep.train(
        executor,
        trials,
        asked.training,
        asked.validation,
        method=method("momentum"),
        batch_size=asked.search.batch_size,
        goals=asked.goals,
        max_steps=asked.search.max_steps,
        order_seed=asked.search.replicate,
        hits=1,
        drop_dead=asked.drop_dead,
    )
    for goal, first in zip(asked.goals, outcome.first.T):
        met = np.isfinite(first).any()
        trial = int(np.nanargmin(first)) if met else 0
        drawn = {name: float(values[trial, 0]) for name, values in trials.drawn.items()}
        told = {"goal": goal, "steps": first[trial], "trial": trial, **drawn}
        yield told, again(asked, executor, trials, trial, int(first[trial]) if met else 0)


def start(asked: Asked) -> Trials:
    """The search's trials before their first step."""
    import torch

    from lib.engine import flattening, training_state
    from lib.workloads import models

    search = asked.search
    seeds = [100_000 * search.replicate + trial for trial in range(search.trials)]
    fresh = [models.initialise(asked.network(), seed) for seed in seeds]
    w = torch.stack([flattening.flatten(module).clone() for module in fresh])
    asked.prepare(w)
    mask = _masks(asked, w, seeds) if search.sparsity else None
    drawn = spaces.draw("lee2021", "momentum", search.trials, replicate=search.replicate)
    columns = {name: torch.from_numpy(v).float()[:, None] for name, v in drawn.items()}
    return training_state.Trials(w if mask is None else w * mask, mask, columns)


def _masks(asked: Asked, w: Tensor, seeds: list[int]) -> Tensor:
    """What pruning keeps of each trial's weights w [T, P]."""
    import torch

    from lib.engine import pruning
    from lib.engine.batched import BatchedExecutor

    executor, examples, found = BatchedExecutor(asked.network()), asked.training, []
    for row, seed in zip(w, seeds):
        scores = pruning.scores(PRUNING, row, executor, examples.x, examples.y, seed)
        found.append(pruning.chosen(PRUNING, scores, asked.search.sparsity))
    return torch.stack(found)


def again(asked: Asked, executor, trials: Trials, trial: int, steps: int) -> nn.Module:
    """The network of one trial, trained anew for so many steps, each as in the search."""
    import torch

    from lib.engine import flattening, lockstep

    momentum, examples = method("momentum"), asked.training
    own = trials.keep(torch.tensor([trial]))
    w, layers = own.w.clone(), flattening.layers(executor.module)
    buffers = momentum.begin(own.w, layers)
    order = lockstep.batches(len(examples.y), asked.search.batch_size, asked.search.replicate)
    for k, pick in zip(range(1, steps + 1), order):
        batch = examples.x[pick], examples.y[pick]
        lockstep.update(momentum, executor, layers, own, w, buffers, k, batch)
    module = asked.network()
    for p, values in zip(module.parameters(), flattening.unflatten(w[0], module)):
        p.data.copy_(values)
    return module
