"""Training where the data lie: clients hold the examples.

A round of averaging: each client takes some local steps of SGD from the server's weights, and the
server averages what comes back.  A round in turns: the network is cut (`lib.engine.halves`), and
each client in turn takes its steps with the server and hands its part on.  After one local step on
shards of one size, averaging is a step on all their examples.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pandas as pd

from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.own import folder_name
from lib.records import store
from lib.records.store import DATA
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName

if TYPE_CHECKING:
    from torch import Tensor

AVERAGING, TURNS = WAYS = ("averaging", "turns")
CLIENTS, BATCH, SHARD = 10, 15, 135  # clients; examples of a local step; and of a shard
NETWORKS, KINDS = ("digits-mlp", "digits-cnn"), {False: "shards alike", True: "shards skewed"}
ARMS = {  # way, local steps, examples of each, most rounds
    "large batch, 150": (AVERAGING, 1, BATCH, 2000),
    "large batch, 1,350": (AVERAGING, 1, SHARD, 1000),
    "averaging, one epoch": (AVERAGING, 9, BATCH, 400),
    "averaging, four epochs": (AVERAGING, 36, BATCH, 100),
    "split, turns of a step": (TURNS, 1, BATCH, 1000),
    "split, turns of an epoch": (TURNS, 9, BATCH, 200),
}
REPLICATES = 10


@spec
class Search:
    """Trials of a way to train on shards, which differ in learning rate and initialisation.

    local_steps: of a client in a round.  batch_size: examples of a local step.  skewed: whether a
    client's examples are of few labels.  max_rounds: after which a search that has not met the
    hardest goal ends.  replicate: its draws, seeds, shards and split of the examples.  Raises
    ValueError naming the field, its value and what is allowed.
    """

    workload: WorkloadName
    way: Literal[*WAYS]
    local_steps: Count(1000)
    batch_size: Count(SHARD) = BATCH
    skewed: bool = False
    max_rounds: Count(10_000) = 2000
    replicate: Count(1000) = 1
    trials: Count(1024) = 16

    @property
    def cell(self) -> Cell:
        """A search of the same draws, seeds and split where the data lie together."""
        draws = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        space = "learning_rate=0.01..3"
        return Cell(self.workload, CLIENTS * self.batch_size, "sgd", space=space, **draws)

    def definition(self) -> dict:
        return self.cell.definition()

    def measure(self) -> pd.DataFrame:
        """A row per trial: learning_rate, rounds@GOAL (the first that meets it), and `costs`."""
        import torch  # slow to import, and most chapters only read

        from lib.engine import batched
        from lib.engine.halves import Halves
        from lib.engine.validation import Validation
        from lib.measuring import one_cell
        from lib.workloads import datasets, models

        work, trials, net = self.cell.work, one_cell.start(self.cell), models.build
        executor, halves = batched.BatchedExecutor(net(work.model)), Halves(net(work.model))
        held = datasets.load(work.dataset, self.replicate).validation
        judge = Validation(executor, held, work.goals)
        w, rate, own = trials.w, trials.drawn["learning_rate"], self.batches()
        gradients = (executor if self.way == AVERAGING else halves).gradients
        first = torch.full((len(w), len(work.goals)), torch.nan)
        for count in range(1, self.max_rounds + 1):
            w = a_round(gradients, w, rate, own, self.local_steps, self.way)
            wrong = judge.costs(w, judge.limits.max().expand(len(w)))[0]
            now = (wrong[:, None] <= judge.limits) & first.isnan()
            first[now] = count
            if now[:, 0].any():  # the hardest
                break
        rounds = {f"rounds@{goal:g}": first[:, n] for n, goal in enumerate(work.goals)}
        told = {"learning_rate": rate[:, 0], **rounds, **costs(self, halves)}
        return pd.DataFrame(told).rename_axis("trial").reset_index()

    def batches(self) -> list:
        """Each client's endless batches (x, y), every epoch in an order of its own."""
        from lib.engine import replicas

        data = self.cell.work.train(self.replicate)
        places = replicas.shards(data.y, CLIENTS, self.skewed, self.replicate)
        return replicas.streams(data, places, self.batch_size, self.replicate)


def a_round(gradients, w: Tensor, rate: Tensor, own: list, steps: int, way: str) -> Tensor:
    """Weights [T, P] after a round from w, at the trials' rates [T, 1].

    gradients: losses and gradients of weights and a batch.  own: the clients' batches.
    """
    found = []
    for client in own:
        local = w.clone()
        for x, y in itertools.islice(client, steps):
            local -= rate * gradients(local, x, y)[1]
        found.append(local)
        w = local if way == TURNS else w
    return sum(found) / len(found) if way == AVERAGING else w


def costs(search: Search, halves) -> dict[str, float]:
    """What a round costs a client: sent (numbers, either way) and adds (multiply-adds); and the
    same with cut_ if the network is cut.

    Forward, and backward by weights and, but for the first layer, by activations.  Where the
    network is cut, an example costs its activations, their derivatives and its label, and a round
    the client's part twice.
    """
    import torch

    adds, h, cut = 0, torch.zeros(1, 1, 8, 8), {}
    examples = search.local_steps * search.batch_size
    for layer in [*halves.client, *halves.server]:
        h = layer(h)
        if hasattr(layer, "weight"):
            places = h[0, 0].numel() if h.dim() > 2 else 1
            adds += layer.weight.numel() * places * (3 if adds else 2) * examples
            numbers = examples * (2 * h.numel() + 1) + 2 * halves.size
            cut = cut or {"cut_sent": numbers, "cut_adds": adds}
    if search.way == TURNS:
        return {"sent": cut["cut_sent"], "adds": cut["cut_adds"], **cut}
    weights = halves.size + sum(p.numel() for p in halves.server.parameters())
    return {"sent": 2 * weights, "adds": adds, **cut}


def planned() -> tuple[Search, ...]:
    """Every way on every network, on shards alike and skewed, the searches of a point last."""
    every = itertools.product(range(1, REPLICATES + 1), NETWORKS, KINDS, ARMS.values())
    return tuple(Search(net, *how[:3], kind, how[3], n) for n, net, kind, how in every)


def _place(search: Search, folder: Path) -> Path:
    name = f"{search.way}-local-{search.local_steps}-{store.digest(search)}.csv"
    return folder / folder_name(search.workload) / name


FEDERATED = Collection(
    "federated", "search", DATA / "federated", _place, planned, precision=lambda _: "float32"
)
