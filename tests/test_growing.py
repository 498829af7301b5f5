"""Growing networks: the function stays as it grows, a network that does not grow is plain SGD, and arithmetic is counted."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from chapters.parts_of_a_network import growing
from chapters.parts_of_a_network.growing import Search
from lib.engine import stacked
from lib.engine.flattening import flatten, layers
from lib.measuring import one_cell
from lib.workloads import models

WHOLE = models.build("mlp-64x2")
LAYERS = layers(WHOLE)


def outputs(w, x):
    return stacked.Stack(WHOLE).logits(w, x)


def images(count=40):
    return torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def before_and_after(scaled=False, biased=True):
    """Weights of two trials of width 16 before and after growth to 32."""
    search = Search(16, 2, scaled=scaled)
    w = torch.stack([growing.narrow(16, seed) for seed in (0, 1)])
    if biased:
        moved = torch.randn(w.shape, generator=torch.Generator().manual_seed(1)) * 0.1
        w = torch.zeros_like(w).index_copy_(1, growing.places(16), (w + moved)[:, growing.places(16)])
    fresh = growing.grown(search).begin(w, LAYERS)["fresh"]
    return w, growing.grow(w, fresh, (16, 32), LAYERS, scaled)


def test_the_function_stays_as_the_network_grows():
    w, after = before_and_after()
    assert (after != 0).sum(1).min() > 2 * (w != 0).sum(1).max(), "nothing grew"
    torch.testing.assert_close(outputs(after, images()), outputs(w, images()), rtol=1e-5, atol=1e-6)
    fresh = growing.grown(Search(16, 2)).begin(w, LAYERS)["fresh"]
    again = growing.grow(after, fresh, (32, 64), LAYERS, False)
    torch.testing.assert_close(outputs(again, images()), outputs(w, images()), rtol=1e-5, atol=1e-6)


def test_a_network_that_does_not_grow_is_plain_sgd():
    search = Search(64, 0, 64, trials=8, max_steps=30)
    plain = one_cell.table(search.cell, one_cell.train_cell(search.cell))
    assert search.measure().drop(columns="stage").equals(plain)
    assert growing.narrow(64, 3).equal(flatten(models.fresh("mlp-64x2", 3)))


def reference(search, draws, stage, rate, steps):
    """One trial, width by width, as ordinary modules with a rate for every part: outputs for `images` after each step."""
    net, fresh = models.initialise(models.mlp(64, search.first, search.first), 0), draws[0]
    parts, found = [torch.zeros_like(m.weight) for m in net if isinstance(m, nn.Linear)], []
    for k in range(1, steps + 1):
        x, y = batch(k)
        loss = cross_entropy(net(x), y)
        linear = [m for m in net if isinstance(m, nn.Linear)]
        found_grads = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for m, part, g in zip(linear, parts, found_grads[::2], strict=True):
                rates = torch.ones_like(m.weight)
                for s in range(1, int(part.max()) + 1):
                    rates[part == s] = m.weight[part == s].norm() / m.weight[part == 0].norm()
                m.weight -= rate * rates * g
            for m, g in zip(linear, found_grads[1::2], strict=True):
                m.bias -= rate * g
            if k in (stage, 2 * stage):
                width = len(linear[0].bias)
                wide = models.mlp(64, 2 * width, 2 * width)
                grown = [m for m in wide if isinstance(m, nn.Linear)]
                for n, (m, old, layer) in enumerate(zip(grown, linear, LAYERS[::2], strict=True)):
                    rows, columns = old.weight.shape
                    m.weight.copy_(fresh[layer.where].view(layer.shape)[: m.weight.shape[0], : m.weight.shape[1]])
                    m.weight[:rows, :columns] = old.weight * (0.5 if search.scaled and n else 1)
                    m.bias.zero_()
                    m.bias[: len(old.bias)] = old.bias
                    part = torch.full_like(m.weight, k // stage)
                    part[:rows, :columns] = parts[n]
                    parts[n] = part
                net = wide
            found.append(net(images()))
    return torch.stack(found)


def batch(k):
    random = torch.Generator().manual_seed(k)
    return torch.rand(12, 1, 8, 8, generator=random), torch.randint(10, (12,), generator=random)


@pytest.mark.parametrize("scaled", [False, True])
def test_it_trains_as_modules_do_that_are_replaced_by_wider_ones(scaled):
    search, stage, rate, steps = Search(16, 2, scaled=scaled), 4, 0.2, 11
    method, w = growing.grown(search), growing.narrow(16, 0)[None]
    buffers, executor = method.begin(w, LAYERS), stacked.Stack(WHOLE)
    draws, found = buffers["fresh"].clone(), []
    drawn = {"learning_rate": torch.tensor([[rate]]), "stage": torch.tensor([[float(stage)]])}
    for k in range(1, steps + 1):
        _, g, _ = executor.gradients(w, *batch(k))
        method.step(w, g, buffers, drawn, k, LAYERS)
        found.append(outputs(w, images())[0])
    torch.testing.assert_close(torch.stack(found), reference(search, draws, stage, rate, steps), rtol=1e-3, atol=1e-4)
