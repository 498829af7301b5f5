"""Scores are what they say, masks are exact, and what is removed stays removed."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import checkpoint, flattening, pruning, sequential
from lib.measuring import one_search
from lib.messages import Messages
from lib.methods import METHODS
from lib.studies.search import Search
from lib.workloads import models
from lib.workloads.catalogue import workload


def small():
    net = models.initialise(models.mlp(6, 5, classes=3), 0)
    x, y = torch.randn(250, 1, 2, 3, generator=torch.Generator().manual_seed(1)), torch.arange(250) % 3
    return net, x, y


def test_connection_sensitivity_is_the_derivative_by_the_mask():
    net, x, y = small()
    for p in net.parameters():  # biases too must have something to lose
        p.data += 0.05
    w = flattening.flatten(net)
    scores = pruning.scores("connection-sensitivity", w, sequential.SequentialExecutor(net), x, y, 0)
    reference = models.mlp(6, 5, classes=3).double()

    def loss(mask):
        total = 0.0
        for p, value in zip(reference.parameters(), flattening.unflatten(w.double() * mask, reference), strict=True):
            p.data = value
        for part in (slice(0, 100), slice(100, 200), slice(200, 250)):
            total += F.cross_entropy(reference(x[part].double()), y[part]).item()
        return total

    for i in range(len(w)):
        step = torch.zeros(len(w), dtype=torch.float64)
        step[i] = 1e-5
        derivative = (loss(1 + step) - loss(1 - step)) / 2e-5
        assert scores[i].item() == pytest.approx(abs(derivative), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("sparsity", [0.5, 0.999])
def test_masks_keep_exactly_the_promised_count(sparsity):
    for scores in (torch.rand(62_346), torch.zeros(1000), torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0]), torch.rand(4, 333)):
        mask = pruning.global_mask(scores, sparsity)
        assert set(mask.unique().tolist()) <= {0.0, 1.0}
        assert (mask.sum(-1) == max(1, round(scores.shape[-1] * (1 - sparsity)))).all()
        kept, gone = torch.where(mask > 0, scores, torch.inf), torch.where(mask > 0, -torch.inf, scores)
        assert (kept.amin(-1) >= gone.amax(-1)).all()


def test_random_scores_know_nothing_of_the_weights():
    """One seed draws both: a shared stream would make masks of the first layer's large or small weights."""
    of_layer = []
    for seed in range(30):
        w = flattening.flatten(models.fresh(workload("digits-mlp").model, seed))[:4096]
        of_layer.append(torch.stack([w, pruning.scores("random", w, None, None, None, seed)]))
    assert abs(torch.corrcoef(torch.cat(of_layer, 1))[0, 1]) < 0.01  # three standard errors of 122,880 pairs


@pytest.mark.parametrize("algorithm", METHODS)
def test_a_removed_weight_never_moves(algorithm):
    net, x, y = small()
    loop = sequential.SequentialExecutor(net)
    w = flattening.flatten(net)[None]
    mask = pruning.global_mask(w.abs(), 0.8)
    w = w * mask
    before, method = w.clone(), METHODS[algorithm]
    layers = flattening.layers(net)
    buffers, drawn = method.begin(w, layers), {name: torch.full((1, 1), 0.9) for name in method.space}
    drawn["batch_size"] = torch.full((1, 1), 50.0)
    for k in range(1, 31):
        batch = x[:50], y[:50]
        g = method.gradient(loop, w, batch, mask, buffers)[1] if method.gradient else loop.gradients(w, *batch)[1]
        method.step(w, g * mask, buffers, drawn | {"learning_rate": torch.full((1, 1), 0.5)}, k, layers)
    assert not w[mask == 0].any() and (w != before)[mask == 1].float().mean() > 0.5


def test_grasp_is_the_published_score_at_its_temperature():
    """As Wang et al. have it: -w H g of outputs over 200, g and H summed over two halves, the largest removed."""
    net, x, y = small()
    w, halves = flattening.flatten(net).double(), (slice(0, 125), slice(125, 250))

    def loss(v):
        return sum(F.cross_entropy(flattening.outputs(net, v, x[half].double()) / 200, y[half]) for half in halves)

    published = -w * (torch.autograd.functional.hessian(loss, w) @ torch.autograd.functional.jacobian(loss, w))

    # The mean over all is half of the sum of the halves' means, in gradient and curvature alike.
    mine = pruning.grasp(net, w, x.double(), y, temperature=200)
    assert torch.allclose(mine, -published / 4, rtol=1e-6, atol=1e-14)
    removed = published.argsort(descending=True)[: len(w) // 2]
    assert not pruning.global_mask(mine, 0.5)[removed].any()


def plain_synflow(net, x, sparsity, rounds):
    """Scores [P] of the last round as the published code takes them, |grad * w| in a module of sizes, and the products."""
    net = net.double()
    for p in net.parameters():
        p.data.abs_()
    size, left = flattening.flatten(net), torch.ones(models.parameter_count(net), dtype=torch.float64)
    for r in range(1, rounds + 1):
        for p, value in zip(net.parameters(), flattening.unflatten(size * left, net), strict=True):
            p.data = value.clone()
        net.zero_grad()
        net(torch.ones_like(x)).sum().backward()
        slopes = [flattening.memory_order(p.grad).reshape(-1) for p in net.parameters()]
        product = torch.cat(slopes) * size * left
        keep = round(len(size) * (1 - sparsity) ** (r / rounds))
        order = product.abs().argsort(descending=True, stable=True)
        left = torch.zeros_like(left).scatter_(0, order[:keep], 1.0)
    return product.abs(), product


@pytest.mark.parametrize("activation", [nn.ReLU, nn.GELU])
def test_synflow_is_the_published_code_where_outputs_may_fall_with_a_weight(activation):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), activation(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3)).double()
    x = torch.ones(1, 6, dtype=torch.float64)
    mine = pruning.synflow(net, flattening.flatten(net), x, 0.8, rounds=10)
    scores, products = plain_synflow(net, x, 0.8, rounds=10)
    assert (products < -1e-9).any(), "no product is negative, and nothing was tested"
    assert (mine >= 0).all() and torch.allclose(mine.double(), scores, rtol=1e-5)


def test_the_order_of_units_chooses_no_mask():
    """Paths of one weight in and one out tie, and so do all that lead to units that are off."""
    draw, masks = torch.randperm(50, generator=torch.Generator().manual_seed(1)), []
    for order in (torch.arange(50), draw):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(20, 50), nn.LayerNorm(50), nn.ReLU(), nn.Linear(50, 10))
        for part in (net[0].weight, net[0].bias, net[1].weight, net[1].bias):
            part.data = part.data[order]
        net[3].weight.data = net[3].weight.data[:, order]
        x = torch.ones(1, 20, dtype=torch.float64)
        scores = pruning.synflow(net, flattening.flatten(net), x, 0.97)
        mask = pruning.chosen("synflow", scores, 0.97)
        first, *_, last, _ = flattening.unflatten(mask, net)
        masks.append((first[order.argsort()], last[:, order.argsort()]))
    assert all(map(torch.equal, *masks))


@pytest.mark.parametrize(("method", "value"), [("grasp", torch.nan), ("synflow", -1.0)])
def test_scores_that_no_method_gives_are_refused(method, value):
    scores = 1 + torch.rand(50, generator=torch.Generator().manual_seed(0))
    scores[[7, 30]] = value
    refused = f"pruning: '{method}' gives 2 of 50 parameters scores such as .*; scores must be"
    with pytest.raises(pruning.ScoresError, match=refused):
        pruning.chosen(method, scores, 0.5)


UNPRUNED = Search("digits-mlp", 32, "momentum", 0.5, trials=4, max_steps=40, hits=4)


def test_a_trial_that_cannot_be_pruned_leaves_and_says_so(monkeypatch, tmp_path):
    cell, real = dataclasses.replace(UNPRUNED, messages=Messages(2, density=0.1)), one_search._scores
    reference = one_search.train_search(cell)
    monkeypatch.setattr(one_search, "_scores", lambda work, method, seed, *rest: real(work, method, seed, *rest) * (seed != 2))
    outcome = one_search.train_search(cell)
    others = np.array([0, 1, 3])
    assert outcome.status[2] == "infeasible" and outcome.cause[2] == "unpruned" and outcome.last_step[2] == 0
    assert not (outcome.cause[others] == "unpruned").any()
    assert np.array_equal(outcome.first[others], reference.first[others], equal_nan=True)
    monkeypatch.setattr(checkpoint, "SAVE_EVERY", 0.0)
    kept = {"checkpoint": checkpoint.Checkpoint(tmp_path / "cell.part")}
    one_search.train_search(dataclasses.replace(cell, max_steps=10), **kept)
    again = one_search.train_search(cell, **kept)
    assert again.steps == outcome.steps and not list(tmp_path.glob("*.set-aside"))
    assert list(again.cause) == list(outcome.cause) and np.array_equal(again.first, outcome.first, equal_nan=True)
