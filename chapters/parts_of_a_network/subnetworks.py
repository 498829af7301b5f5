"""Independent subnetwork training: in every round, workers train disjoint parts of one network,
each on its own batches.

A round splits every hidden layer's units at random into as many groups as there are workers.
Worker k holds the k-th group of each: the weights between its own units, from the inputs and to the
outputs.  It takes `local_steps` steps of plain SGD, its hidden activations times the number of
workers, as dropout scales those it keeps.  Then weights are written back (Yuan et al. 2022; theory:
Shulgin and Richtárik 2023).  Weights between hidden units of different groups belong to nobody in
that round and rest.  All workers use the biases of the outputs; one of them trains those, the
first, whose units are drawn at random, and the others hold them as they were.  So no weight has two
owners.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from chapters.parts_of_a_network import searches
from lib.fields import Count, spec
from lib.measuring.experiment import Collection, OfCell
from lib.workloads.catalogue import WorkloadName

if TYPE_CHECKING:
    from torch import Tensor, nn

HIDDEN = 64  # units of each of two layers
WORKERS, LOCAL_STEPS = (2, 4, 8), (1, 5, 20, 80)
PUBLISHED = 20  # local steps of the published runs
ARM, WHOLE = f"parts, {PUBLISHED} local steps", "data parallelism"
# Further replicates of those with as many local steps as published, by which claims are judged
MORE, MOST_STEPS = (4, 5), 2000


@spec
class Search(OfCell):
    """So many trials of independent subnetwork training, of a fully connected network whose hidden
    units the workers share.

    batch_size: of a worker; `workers` times as many examples go into a step of all.  One worker is
    plain SGD.  A search ends as soon as a trial meets the hardest goal, or after max_steps local
    steps.  replicate: its draws, seeds, data order, split of the examples, and splits of the
    units.  Raises ValueError naming the field, its value and what is allowed.
    """

    workers: Count(64)
    local_steps: Count(10**4)
    batch_size: int = 16
    replicate: int = 1
    trials: int = searches.TRIALS
    max_steps: int = MOST_STEPS
    workload: WorkloadName = "digits-mlp"

    def __post_init__(self):
        _ = self.cell  # its checks are ours

    @property
    def examples(self) -> int:
        """Examples of a step of all workers."""
        return self.workers * self.batch_size

    @property
    def settings(self) -> dict:
        """A search ends with the first trial that meets the hardest goal."""
        return {"hits": 1, "max_steps": self.max_steps}

    def measure(self) -> pd.DataFrame:
        """A row per trial, as of `lib.measuring.one_cell.table`, with sent: numbers that a worker
        sends back after a round.
        """
        # Brings PyTorch, which is slow to import, and most chapters only read
        from lib.measuring import one_cell
        from lib.workloads import models

        net = models.build(self.cell.work.model)
        parts = Subnetworks(net, self.workers, self.local_steps, self.replicate, self.trials)
        outcome = one_cell.train_cell(self.cell, exchange=parts)
        return one_cell.table(self.cell, outcome).assign(sent=parts.size / self.workers)


class Subnetworks:
    """The gradients of all workers' parts, in place of `lib.messages.exchanges.Exchange`.

    module: `nn.Sequential` of linear layers with biases, ReLU and flatten, whose hidden units can be
    shared out evenly.  size: numbers that all workers send back after a round.
    """

    def __init__(self, module: nn.Module, workers: int, local_steps: int, seed: int, trials=1):
        import torch

        from lib.engine import batched, flattening
        from lib.workloads import models

        shapes = [layer.shape for layer in flattening.layers(module)[::2]]
        self.sizes = [shapes[0][1], *(out for out, _ in shapes)]
        inputs, *hidden, self.classes = self.sizes
        self.workers, self.local_steps, self.seed, self.step = workers, local_steps, seed, 0
        # A worker's own network, all trials of it at once
        small = models.mlp(inputs, *(out // workers for out in hidden), classes=self.classes)
        self.small = batched.BatchedExecutor(small)
        # By what its weights are multiplied in use, for the scaled activations that they meet
        self.scale = torch.ones(sum(p.numel() for p in small.parameters()))
        for layer in flattening.layers(small)[2::2]:
            self.scale[layer.where] = workers
        self.size = workers * len(self.scale) - (workers - 1) * self.classes
        self.sent = torch.zeros(trials, dtype=torch.float64)

    def groups(self, turn: int) -> list[Tensor]:
        """The units of every hidden layer in round number `turn`, from 0: a row for each worker, in
        ascending order.
        """
        import torch

        random = torch.Generator().manual_seed(1_000_003 * self.seed + turn)
        drawn = [torch.randperm(out, generator=random) for out in self.sizes[1:-1]]
        return [units.view(self.workers, -1).sort(1).values for units in drawn]

    def gradients(self, executor, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean losses [T], gradients [T, P] and who is alive [T] (all), for w [T, P]; each worker
        has its share of x, y.
        """
        import torch

        if self.step % self.local_steps == 0:
            groups = zip(*self.groups(self.step // self.local_steps), strict=True)
            self.now = [searches.places(self.sizes, *units) for units in groups]
            self.held = w[:, -self.classes :].clone()
            self.sent += self.size / self.workers
        self.step += 1
        total, losses = torch.zeros_like(w), []
        shares = zip(self.now, x.chunk(self.workers), y.chunk(self.workers), strict=True)
        for k, (where, *share) in enumerate(shares):
            own = w.index_select(1, where).mul_(self.scale)
            mine = len(where) - (self.classes if k else 0)
            own[:, mine:] = self.held[:, : len(where) - mine]
            loss, g, _ = self.small.gradients(own, *share)
            losses.append(loss)
            total.index_copy_(1, where[:mine], g.mul_(self.scale)[:, :mine])
        # Units that are off in the whole network may be on in a part: no trial is proved dead
        return torch.stack(losses).mean(0), total, torch.ones(len(w), dtype=torch.bool)

    def keep(self, rows: Tensor) -> None:
        """Go on with the trials in `rows` (a boolean mask) alone."""
        self.sent, self.held = self.sent[rows], self.held[rows]


def planned() -> tuple[Search, ...]:
    """One worker with as many examples a step as all; every number of workers with every number of
    local steps.
    """
    whole = [(1, 1, Search.batch_size * workers) for workers in (1, *WORKERS)]
    split = [(*both, Search.batch_size) for both in itertools.product(WORKERS, LOCAL_STEPS)]
    return tuple(
        Search(*shape, n)
        for shape in (*whole, *split)
        for n in (*searches.REPLICATES, *MORE * (shape in whole or shape[1] == PUBLISHED))
    )


def wider() -> tuple[Search, ...]:
    """Of a network four times as wide: the most workers, and one with as many examples a step, and
    one with a worker's.
    """
    most, own = max(WORKERS), Search.batch_size
    shapes = ((1, 1, own), (1, 1, most * own), (most, PUBLISHED, own))
    return tuple(
        Search(*shape, replicate=n, workload="digits-mlp-256x2", max_steps=MOST_STEPS // 2)
        for n in searches.REPLICATES
        for shape in shapes
    )


SUBNETWORKS = Collection(
    "subnetworks",
    "searches",
    "{0.workload}/workers-{0.workers}-local-{0.local_steps}".format,
    lambda: (*planned(), *wider()),
    "Train disjoint parts of a network, a worker each, into data/subnetworks/.",
)


def results(planned: Iterable[Search]) -> pd.DataFrame:
    """The trials of those searches that have a record, with arm: how many local steps, or WHOLE,
    and size: among how many workers, each with `Search.batch_size` examples a step; beside the
    steps@goal, of one worker, sent@goal, numbers sent, and adds@goal, multiply-adds.
    """
    found = SUBNETWORKS.results(planned)
    steps = found.filter(like="steps@").T
    arms = [f"parts, {n} local step{'s' * (n > 1)}" for n in found.local_steps]
    found["arm"] = np.where(found.workers == 1, WHOLE, arms)
    found["size"] = found.workers * found.batch_size // Search.batch_size
    adds = Search.batch_size * searches.multiply_adds(HIDDEN // found.workers)
    sent = np.ceil(steps / found.local_steps) * found.sent
    return searches.with_costs(found, sent=sent, adds=steps * adds)
