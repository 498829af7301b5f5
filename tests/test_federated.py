"""Training where the data lie: where it equals a large batch, and where the answer is known."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from chapters.other_workers import federated
from chapters.other_workers import federated_experiments as experiments
from chapters.other_workers.federated_experiments import AVERAGING, TURNS, Search, a_round
from lib.claims import NO, YES
from lib.engine import batched, flattening
from lib.engine.clients import Halves, shards
from lib.workloads import models


@pytest.fixture(params=["mlp-64x2", "digits-cnn"])
def setting(request):
    """A network, weights [3, P], rates [3, 1], and three clients' batches of seven images."""
    w = torch.stack(
        [flattening.flatten(models.fresh(request.param, seed)) for seed in range(3)]
    )
    x, y = torch.randn(3, 7, 1, 8, 8), torch.randint(10, (3, 7))
    return models.build(request.param), w, torch.tensor([[0.1], [0.3], [0.02]]), x, y


def clients(x, y):
    """Endless iterators of one batch each."""
    return [itertools.repeat(batch) for batch in zip(x, y)]


def test_one_local_step_on_equal_shards_is_a_large_batch(setting):
    net, w, rate, x, y = setting
    gradients = batched.BatchedExecutor(net).gradients
    once, twice = (a_round(gradients, w, rate, clients(x, y), n, AVERAGING) for n in (1, 2))
    for ends, alike in (once, True), (twice, False):
        w = w - rate * gradients(w, x.flatten(0, 1), y.flatten())[1]
        assert torch.allclose(ends, w, rtol=1e-5, atol=1e-6) == alike


def gradient(net, w, x, y):
    """That of the uncut network, [P]."""
    w = w.detach().requires_grad_()
    loss = nn.functional.cross_entropy(flattening.outputs(net, w, x), y)
    return torch.autograd.grad(loss, w)[0]


@pytest.mark.parametrize("way", [AVERAGING, TURNS])
def test_a_round_is_that_of_loops_over_clients_and_steps(way, setting):
    net, w, rates, x, y = setting
    executor = batched.BatchedExecutor(net) if way == AVERAGING else Halves(net)
    ends = a_round(executor.gradients, w, rates, clients(x, y), 3, way)
    for start, rate, end in zip(w, rates, ends, strict=True):
        weights = []
        for images, labels in zip(x, y, strict=True):
            local = weights[-1] if weights and way == TURNS else start
            for _ in range(3):
                local = local - rate * gradient(net, local, images, labels)
            weights.append(local)
        expected = torch.stack(weights).mean(0) if way == AVERAGING else weights[-1]
        assert torch.allclose(end, expected, rtol=1e-4, atol=1e-5)


def test_gradients_of_a_split_network_are_those_of_the_whole_to_the_bit(setting):
    net, w, _, x, y = setting
    halves, images, labels = Halves(net), x.flatten(0, 1), y.flatten()
    for row in w:
        losses, g = halves.gradients(row[None], images, labels)
        inner = row.detach().requires_grad_()
        logits = torch.vmap(lambda w: flattening.outputs(net, w, images))(inner[None])
        loss = nn.functional.cross_entropy(logits.mT, labels[None], reduction="none").mean(1)
        (expected,) = torch.autograd.grad(loss.sum(), inner)
        assert torch.equal(g[0], expected) and torch.equal(losses, loss.detach())
    answers = flattening.outputs(halves.server, w[0, halves.size :], halves.sent(w[0], images))
    assert torch.equal(answers, flattening.outputs(net, w[0], images))


def test_a_network_without_a_cut_is_refused_by_name():
    allowed = "model: 'Sequential' is not allowed; it must be a sequence of layers with a ReLU"
    with pytest.raises(ValueError, match=allowed):
        Halves(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)))


@pytest.mark.parametrize(("skewed", "least", "most"), [(False, 8, 10), (True, 1, 4)])
def test_shards_share_the_examples_and_skewed_ones_have_few_labels(skewed, least, most):
    y = torch.arange(1350) % 10
    places = shards(y, 10, skewed, 3)
    assert places.shape == (10, 135) and sorted(places.flatten().tolist()) == list(range(1350))
    assert all(least <= len(y[shard].unique()) <= most for shard in places)
    assert not torch.equal(places, shards(y, 10, skewed, 4))


def test_costs_are_counted_by_hand():
    """MLP 64-64-64-10; CNN of 16 kernels at 16 places, 32 at 4 places, and 128 last inputs."""
    mlp, cnn = (Halves(models.build(name)) for name in ("mlp-64x2", "digits-cnn"))
    epoch = experiments.costs(Search("digits-mlp", AVERAGING, 9), mlp)
    assert epoch["sent"] == 2 * (64 * 65 * 2 + 65 * 10)
    assert epoch["adds"] == 9 * 15 * (2 * 4096 + 3 * 4096 + 3 * 640)
    assert (
        epoch["cut_sent"] == 135 * (2 * 64 + 1) + 2 * 64 * 65
        and epoch["cut_adds"] == 135 * 8192
    )
    turns = experiments.costs(Search("digits-cnn", TURNS, 2), cnn)
    assert turns["adds"] == turns["cut_adds"] == 30 * 2 * 9 * 16 * 16
    assert turns["sent"] == turns["cut_sent"] == 30 * (2 * 256 + 1) + 2 * 160
    step = experiments.costs(Search("digits-cnn", AVERAGING, 1), cnn)
    assert step["adds"] == 15 * (2 * 9 * 16 * 16 + 3 * 16 * 9 * 32 * 4 + 3 * 1280)


def test_a_search_tells_the_first_round_at_each_goal():
    rounds = Search("digits-mlp", TURNS, 9, max_rounds=3, trials=4, replicate=7).measure()
    hard, easy = rounds["rounds@0.04"], rounds["rounds@0.1"]
    assert (
        len(rounds) == 4
        and easy.notna().any()
        and (hard.isna() | (easy <= hard)).all()
        and easy.max() <= 3
    )


def planted(turns, whole):
    """Trials: a search takes 10 rounds with an epoch of averaging, and these with others."""
    rounds = {federated.EPOCH: 10, federated.TURNS: turns, federated.WHOLE: whole}
    rows, luck = [], enumerate((0.95, 1.0, 1.05, 1.02), start=1)
    cases = itertools.product(experiments.NETWORKS, (False, True), rounds, luck)
    for network, skewed, arm, (replicate, times) in cases:
        easy = rounds[arm] * times
        rows.append(
            (
                network,
                skewed,
                *experiments.ARMS[arm][:3],
                replicate,
                np.nan if skewed else easy,
                easy,
            )
        )
    trials = pd.DataFrame(
        rows, columns=[*federated.POINT, "replicate", "rounds@0.04", "rounds@0.1"]
    )
    return trials.assign(sent=5, adds=4, cut_sent=3, cut_adds=2)


@pytest.mark.parametrize(("turns", "whole", "verdict"), [(5, 30, YES), (12, 10, NO)])
def test_planted_rounds_are_judged_as_they_are(turns, whole, verdict, judge):
    for claim in judge(planted(turns, whole), "F1", "F2"):
        assert [group.verdict for group in claim.groups] == [verdict] * 4
