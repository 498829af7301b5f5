"""Training where the data lie, on clients (`lib.engine.clients`): by averaging, or in turns with
the network cut.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Literal

import pandas as pd

from lib.fields import Count, spec
from lib.measuring.experiment import Collection, OfSearch
from lib.workloads.catalogue import WorkloadName

if TYPE_CHECKING:
    from torch import Tensor

AVERAGING, TURNS = WAYS = ("averaging", "turns")
CLIENTS, BATCH, SHARD = 10, 15, 135  # clients; examples per local step; and per shard
NETWORKS, KINDS = ("digits-mlp", "digits-cnn"), {False: "shards alike", True: "shards skewed"}
ARMS = {  # way, local steps, examples per local step, most rounds
    "large batch, 150": (AVERAGING, 1, BATCH, 2000),
    "large batch, 1,350": (AVERAGING, 1, SHARD, 1000),
    "averaging, one epoch": (AVERAGING, 9, BATCH, 400),
    "averaging, four epochs": (AVERAGING, 36, BATCH, 100),
    "split, turns of a step": (TURNS, 1, BATCH, 1000),
    "split, turns of an epoch": (TURNS, 9, BATCH, 200),
}
REPLICATES = range(1, 11)


@spec
class Search(OfSearch):
    """Trials of one way to train on shards, which differ in learning rate and initialisation.

    local_steps: of a client per round.  batch_size: examples per local step.  skewed: whether each
    client's examples have few labels.  max_rounds: after which a search that has not met the
    hardest goal ends.  replicate: sets the draws, seeds, shards and split of the examples.
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
    def examples(self) -> int:
        return CLIENTS * self.batch_size

    def measure(self) -> pd.DataFrame:
        """A row per trial: learning_rate, rounds@GOAL (the first that meets it), and `costs`."""
        import torch  # slow to import; most chapters only read records

        from lib.engine import clients
        from lib.measuring.rerun import Steps

        goals, data = self.cell.work.goals, self.cell.work.train(self.replicate)
        places = clients.shards(data.y, CLIENTS, self.skewed, self.replicate)
        streams = clients.streams(data, places, self.batch_size, self.replicate)
        steps = Steps(self.cell, goals)
        gradients = (steps.executor if self.way == AVERAGING else steps.halves).gradients
        round_ = functools.partial(
            a_round,
            gradients,
            rate=steps.rate,
            streams=streams,
            steps=self.local_steps,
            way=self.way,
        )
        first = torch.full((len(steps.w), len(goals)), torch.nan)
        for count, _, wrong in steps.until_met(round_, self.max_rounds):
            first[(wrong[:, None] <= steps.limits) & first.isnan()] = count
        met = {f"rounds@{goal:g}": first[:, n] for n, goal in enumerate(goals)}
        rows = {"learning_rate": steps.rate[:, 0], **met, **costs(self, steps.halves)}
        return pd.DataFrame(rows).rename_axis("trial").reset_index()


def a_round(gradients, w: Tensor, rate: Tensor, streams: list, steps: int, way: str) -> Tensor:
    """Weights [T, P] after a round that starts at w, with the trials' rates [T, 1].

    gradients: (weights, x, y) -> losses and gradients.  streams: the clients' batches.
    """
    ends = []
    for batches in streams:
        local = w.clone()
        for x, y in itertools.islice(batches, steps):
            local -= rate * gradients(local, x, y)[1]
        ends.append(local)
        w = local if way == TURNS else w
    return sum(ends) / len(ends) if way == AVERAGING else w


def costs(search: Search, halves) -> dict[str, float]:
    """What a round costs a client: sent (numbers, in both directions) and adds (multiply-adds); and
    cut_sent and cut_adds: the same with the network cut.

    Multiply-adds: the forward pass, and derivatives by weights and, except in the first layer, by
    activations.  With the network cut, numbers sent are, per example, activations, their
    derivatives and a label, and per round twice the client's part of the network.
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


def planned() -> list[Search]:
    """Every way on every network, on shards alike and skewed, one replicate after another."""
    points = itertools.product(REPLICATES, NETWORKS, KINDS, ARMS.values())
    return [Search(net, *arm, skewed, most, n) for n, net, skewed, (*arm, most) in points]


ABOUT = "Train on clients' shards by averaging and by split networks, into data/federated/."
NAME = "{0.workload}/{0.way}-local-{0.local_steps}"
FEDERATED = Collection("federated", "searches", NAME.format, planned, ABOUT)
EXPERIMENTS = {"federated": FEDERATED}
