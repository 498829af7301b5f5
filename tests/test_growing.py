"""Growing networks: the function stays as it grows, a network that does not grow is plain SGD, and arithmetic is counted."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from chapters.parts_of_a_network import growing
from chapters.parts_of_a_network.growing import Search
from lib.engine import batched
from lib.engine.flattening import flatten, layers
from lib.measuring import one_cell
from lib.workloads import models

WHOLE = models.build("mlp-64x2")
LAYERS = layers(WHOLE)


def outputs(w, x):
    return batched.BatchedExecutor(WHOLE).logits(w, x)


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


def test_scaling_old_weights_breaks_the_function_by_a_quarter_without_biases():
    """Two layers meet a grown one: each halves its outputs.  Answers stay only without biases."""
    plain, after = before_and_after(scaled=True, biased=False)
    torch.testing.assert_close(outputs(after, images()), outputs(plain, images()) / 4, rtol=1e-5, atol=1e-6)
    w, after = before_and_after(scaled=True)
    assert (outputs(after, images()) - outputs(w, images()) / 4).abs().max() > 0.01


def test_new_weights_have_the_spread_and_the_pairs_of_the_rule():
    w, after = before_and_after()
    first, _, second, _, last, _ = (after[:, layer.where].unflatten(1, layer.shape) for layer in LAYERS)
    assert first[:, 16:24].equal(first[:, 24:32]) and second[:, 16:24].equal(second[:, 24:32])
    assert second[:, :, 16:24].equal(-second[:, :, 24:32]) and last[:, :, 16:24].equal(-last[:, :, 24:32])
    spreads = [(first[:, 16:24], 64), (second[:, 16:24, :16], 16), (second[:, :16, 16:24], 32), (last[:, :, 16:24], 32)]
    for new, width in spreads:
        assert float(new.std()) * width == pytest.approx(1, rel=4 / np.sqrt(2 * new.numel()))


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
    buffers, executor = method.begin(w, LAYERS), batched.BatchedExecutor(WHOLE)
    draws, found = buffers["fresh"].clone(), []
    drawn = {"learning_rate": torch.tensor([[rate]]), "stage": torch.tensor([[float(stage)]])}
    for k in range(1, steps + 1):
        _, g, _ = executor.gradients(w, *batch(k))
        method.step(w, g, buffers, drawn, k, LAYERS)
        found.append(outputs(w, images())[0])
    torch.testing.assert_close(torch.stack(found), reference(search, draws, stage, rate, steps), rtol=1e-3, atol=1e-4)


def test_arithmetic_is_that_of_the_widths_passed_through():
    each = [2 * 64 * width + 3 * width * width + 3 * width * 10 for width in (16, 32, 64)]
    told = growing.computed(np.array([3, 5, 12, np.nan]), np.array([4, 4, 5, 4]), (16, 32, 64), 2)
    expected = [2 * 3 * each[0], 2 * (4 * each[0] + each[1]), 2 * (5 * each[0] + 5 * each[1] + 2 * each[2])]
    assert told[:3].tolist() == expected and np.isnan(told[3])
    assert growing.computed(np.array([7.0]), np.array([2.0]), (64,), 16).tolist() == [16 * 7 * each[2]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"first": 48}, r"first: 48 is not allowed; it must be one of \(16, 32, 64\)"),
        ({"first": 32, "doublings": 2}, "doublings: 2 is not allowed; it must be a whole number from 0 to 1"),
        ({"first": 16, "scaled": 1}, "scaled: 1 is not allowed; it must be True or False"),
        ({"first": 16, "batch_size": 4000}, "batch_size: 4000 is not allowed"),
        ({"first": 16, "workload": "digits-cnn"}, "workload: 'digits-cnn' is not allowed; it must be digits-mlp"),
    ],
)
def test_searches_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Search(**wrong)
