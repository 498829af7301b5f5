"""Independent subnetworks: one worker is plain SGD, no weight has two owners, and a round is what workers apart would do."""


import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from chapters.parts_of_a_network.subnetworks import Search, Subnetworks
from lib.engine import lockstep
from lib.engine.flattening import flatten
from lib.measuring import one_cell
from lib.workloads import models
from lib.workloads.catalogue import workload

SHAPES = [(64, 64), (64, 64), (10, 64)]


def test_one_worker_is_plain_sgd_bit_for_bit(local_steps=7):
    search = Search(1, local_steps, 32, trials=16, max_steps=36)
    plain = one_cell.table(search.cell, one_cell.train_cell(search.cell))
    mine = search.measure()
    assert np.isfinite(plain["steps@0.1"]).any(), "nothing was learnt"
    assert mine.drop(columns="sent").equals(plain)
    w, (x, y) = torch.randn(3, 8970), (torch.randn(32, 1, 8, 8), torch.arange(32) % 10)
    losses, g, _ = one_cell.executor(search.cell).gradients(w, x, y)
    own = Subnetworks(models.build("mlp-64x2"), 1, local_steps, 1).of(3).gradients(None, w, x, y)
    assert own[0].equal(losses) and own[1].equal(g)


class Part(nn.Module):
    """A worker's copy of the whole network, in which all units but its own are dropped and those scaled."""

    def __init__(self, w, kept, scale):
        super().__init__()
        self.layers = nn.ParameterList()
        at = 0
        for out, fan_in in SHAPES:
            self.layers.append(w[at : at + out * fan_in].clone().view(out, fan_in))
            self.layers.append(w[at + out * fan_in : at + out * (fan_in + 1)].clone())
            at += out * (fan_in + 1)
        self.kept, self.scale = kept, scale

    def forward(self, x):
        h = x.flatten(1)
        for n, kept in enumerate((*self.kept, None)):
            h = linear(h, self.layers[2 * n], self.layers[2 * n + 1])
            h = h if kept is None else h.relu() * kept * self.scale
        return h


def written_back(w, copies):
    """Every weight from the copy that has moved it, the outputs' biases from the first."""
    after = [torch.cat([p.detach().flatten() for p in copy.layers]) for copy in copies]
    moved = torch.stack([own != w for own in after])
    moved[1:, -10:] = False
    assert moved.sum(0).max() == 1
    return torch.where(moved, torch.stack(after), 0).sum(0) + torch.where(moved.any(0), 0, w)


def test_rounds_are_those_of_workers_apart_who_write_their_parts_back():
    workers, local_steps, rate, batch = 4, 3, 0.02, 8
    search = Search(workers, local_steps, batch, trials=1, max_steps=2 * local_steps)
    parts = Subnetworks(models.build("mlp-64x2"), workers, local_steps, 1).of(1)
    data, w = workload("digits-mlp").train(1), flatten(models.fresh("mlp-64x2", 0))
    order = [next(o) for o in [lockstep.batches(len(data), workers * batch, 1)] for _ in range(2 * local_steps)]
    own = w.clone()[None]
    for pick in order:
        _, g, _ = parts.gradients(None, own, data.x[pick], data.y[pick])
        own -= rate * g
    for turn in range(2):
        kept = [[torch.zeros(64).index_fill(0, units[k], 1) for units in parts.groups(turn)] for k in range(workers)]
        copies = [Part(w, kept[k], workers) for k in range(workers)]
        for k, copy in enumerate(copies):
            bias = copy.layers[-1].detach().clone()
            optimizer = torch.optim.SGD(copy.parameters(), lr=rate)
            for pick in order[turn * local_steps : (turn + 1) * local_steps]:
                mine = pick[k * batch : (k + 1) * batch]
                optimizer.zero_grad()
                cross_entropy(copy(data.x[mine]), data.y[mine]).backward()
                optimizer.step()
                if k:  # holds what it has been given
                    copy.layers[-1].data.copy_(bias)
        w = written_back(w, copies)
    assert (own[0] - flatten(models.fresh("mlp-64x2", 0))).abs().max() > 0.05
    torch.testing.assert_close(own[0], w, rtol=1e-4, atol=1e-6)
    assert parts.sent.item() == 2 * parts.size / workers and search.cell.batch_size == 32
