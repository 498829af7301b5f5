"""Synthetic intermediate labels: each half trains as ordinary modules do, recovery is plain SGD, and what is sent is counted."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from chapters.parts_of_a_network import halves
from chapters.parts_of_a_network.halves import Search
from lib.engine import stacked
from lib.engine.flattening import flatten, layers
from lib.measuring import one_cell
from lib.workloads import models

WHOLE = models.build("mlp-64x4")
LAYERS = layers(WHOLE)


def batch(k, count=12):
    random = torch.Generator().manual_seed(k)
    return torch.rand(count, 1, 8, 8, generator=random), torch.randint(10, (count,), generator=random)


def trained(arm, stages, rate=0.2, steps=9):
    """Weights of two trials after each step, as the engine takes them, the first ones included; and the codes."""
    method = halves.halved(Search(arm))
    w = torch.stack([flatten(models.fresh("mlp-64x4", seed)) for seed in (0, 1)])
    buffers, executor, found = method.begin(w, LAYERS), stacked.Stack(WHOLE), [w.clone()]
    codes = buffers["codes"].clone()
    for k in range(1, steps + 1):
        _, g, _ = method.gradient(executor, w, batch(k), None, buffers)
        drawn = {"learning_rate": torch.full((2, 1), rate), "stage": torch.tensor(stages)[:, None]}
        method.step(w, g, buffers, drawn, k, LAYERS)
        found.append(w.clone())
    return torch.stack(found), codes


def descend(params, loss, rate=0.2):
    for p, g in zip(params, torch.autograd.grad(loss, params), strict=True):
        p.data -= rate * g


def reference(seed, stage, codes, recovered, steps=9):
    """One trial, half by half, as ordinary modules."""
    net, found = models.fresh("mlp-64x4", seed), []
    left, right = net[:5], net[5:]
    assert isinstance(left[-1], nn.ReLU) and sum(p.numel() for p in left.parameters()) == halves.CUT
    found.append(flatten(net))
    for k in range(1, steps + 1):
        x, y = batch(k)
        if k <= stage:
            descend([*left.parameters()], (left(x) - codes[y]).square().sum(1).mean() / 2)
        elif recovered and k > 2 * stage:
            descend([*net.parameters()], cross_entropy(net(x), y))
        else:
            descend([*right.parameters()], cross_entropy(right(left(x).detach()), y))
        found.append(flatten(net))
    return torch.stack(found)


@pytest.mark.parametrize("arm", ["halves", "recovered"])
def test_halves_train_as_modules_of_their_own_do(arm):
    stages = [2.0, 4.0]
    w, codes = trained(arm, stages)
    for trial, stage in enumerate(stages):
        expected = reference(trial, int(stage), codes[trial], arm == "recovered")
        torch.testing.assert_close(w[:, trial], expected, rtol=1e-4, atol=1e-5)


def test_the_whole_network_is_plain_sgd_bit_for_bit():
    search = Search("whole", 64, trials=8, max_steps=30)
    plain = one_cell.table(search.cell, one_cell.train_cell(search.cell))
    assert search.measure().drop(columns="stage").equals(plain)
