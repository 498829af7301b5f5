"""Training where the data lie: where it is a large batch, and where the answer is known."""

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

NETWORKS = {"MLP": "mlp-64x2", "CNN": "digits-cnn"}


@pytest.fixture(params=NETWORKS)
def setting(request):
    """A network, weights [3, P], rates [3, 1], and three clients' batches of seven images."""
    name = NETWORKS[request.param]
    w = torch.stack([flattening.flatten(models.fresh(name, seed)) for seed in range(3)])
    x, y = torch.randn(3, 7, 1, 8, 8), torch.randint(10, (3, 7))
    return models.build(name), w, torch.tensor([[0.1], [0.3], [0.02]]), x, y


def clients(x, y):
    """Endless iterators of one batch each."""
    return [iter(lambda own=own: own, None) for own in zip(x, y, strict=True)]


def test_one_local_step_on_equal_shards_is_a_large_batch(setting):
    net, w, rate, x, y = setting
    executor = batched.BatchedExecutor(net)
    found = a_round(executor.gradients, w, rate, clients(x, y), 1, AVERAGING)
    g = executor.gradients(w, x.flatten(0, 1), y.flatten())[1]
    assert torch.allclose(found, w - rate * g, rtol=1e-5, atol=1e-6)
    more = a_round(executor.gradients, w, rate, clients(x, y), 2, AVERAGING)
    twice = found - rate * executor.gradients(found, x.flatten(0, 1), y.flatten())[1]
    assert not torch.allclose(more, twice, rtol=1e-5, atol=1e-6)


def test_averaging_is_that_of_loops_over_clients_and_steps(setting):
    net, w, rate, x, y = setting
    found = a_round(batched.BatchedExecutor(net).gradients, w, rate, clients(x, y), 4, AVERAGING)
    for start, own, end in zip(w, rate, found, strict=True):
        weights = []
        for images, labels in zip(x, y, strict=True):
            local = start
            for _ in range(4):
                local = local - own * whole(net, local, images, labels)
            weights.append(local)
        assert torch.allclose(end, torch.stack(weights).mean(0), rtol=1e-4, atol=1e-5)


def whole(net, w, x, y):
    """The gradient of the network that nobody cut, [P]."""
    w = w.detach().requires_grad_()
    loss = nn.functional.cross_entropy(flattening.outputs(net, w, x), y)
    return torch.autograd.grad(loss, w)[0]


def test_gradients_of_a_split_network_are_those_of_the_whole_to_the_bit(setting):
    net, w, _, x, y = setting
    halves, images, labels = Halves(net), x.flatten(0, 1), y.flatten()
    for own in w:
        losses, found = halves.gradients(own[None], images, labels)
        inner = own.detach().requires_grad_()
        passed = torch.vmap(lambda w: flattening.outputs(net, w, images))(inner[None])
        each = nn.functional.cross_entropy(passed.mT, labels[None], reduction="none").mean(1)
        (expected,) = torch.autograd.grad(each.sum(), inner)
        assert torch.equal(found[0], expected) and torch.equal(losses, each.detach())
    answers = flattening.outputs(halves.server, w[0, halves.size :], halves.sent(w[0], images))
    assert torch.equal(answers, flattening.outputs(net, w[0], images))
    every = halves.gradients(w, images, labels)[1]
    one_by_one = torch.stack([whole(net, own, images, labels) for own in w])
    assert torch.allclose(every, one_by_one, rtol=1e-4, atol=1e-6)


def test_turns_are_steps_of_one_client_after_the_other(setting):
    net, w, rate, x, y = setting
    found = a_round(Halves(net).gradients, w, rate, clients(x, y), 2, TURNS)
    for start, own, end in zip(w, rate, found, strict=True):
        for images, labels in zip(x, y, strict=True):
            for _ in range(2):
                start = start - own * whole(net, start, images, labels)
        assert torch.allclose(end, start, rtol=1e-4, atol=1e-5)


def test_a_network_without_a_cut_is_refused_by_name():
    allowed = "model: 'Sequential' is not allowed; it must be a sequence of layers with a ReLU"
    with pytest.raises(ValueError, match=allowed):
        Halves(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)))


@pytest.mark.parametrize(("skewed", "least", "most"), [(False, 8, 10), (True, 1, 4)])
def test_shards_share_the_examples_and_skewed_ones_have_few_labels(skewed, least, most):
    y = torch.arange(1350) % 10
    places = shards(y, 10, skewed, 3)
    assert places.shape == (10, 135) and sorted(places.flatten().tolist()) == list(range(1350))
    assert all(least <= len(y[own].unique()) <= most for own in places)
    assert not torch.equal(places, shards(y, 10, skewed, 4))


def test_costs_are_counted_by_hand():
    """MLP 64-64-64-10; CNN of 16 kernels at 16 places, 32 at 4 places, and 128 last inputs."""
    mlp, cnn = (Halves(models.build(name)) for name in NETWORKS.values())
    found = experiments.costs(Search("digits-mlp", AVERAGING, 9), mlp)
    assert found["sent"] == 2 * (64 * 65 * 2 + 65 * 10)
    assert found["adds"] == 9 * 15 * (2 * 4096 + 3 * 4096 + 3 * 640)
    assert found["cut_sent"] == 135 * (2 * 64 + 1) + 2 * 64 * 65 and found["cut_adds"] == 135 * 8192
    turns = experiments.costs(Search("digits-cnn", TURNS, 2), cnn)
    assert turns["adds"] == turns["cut_adds"] == 30 * 2 * 9 * 16 * 16
    assert turns["sent"] == turns["cut_sent"] == 30 * (2 * 256 + 1) + 2 * 160
    whole = experiments.costs(Search("digits-cnn", AVERAGING, 1), cnn)
    assert whole["adds"] == 15 * (2 * 9 * 16 * 16 + 3 * 16 * 9 * 32 * 4 + 3 * 1280)


def test_a_search_tells_the_first_round_at_each_goal():
    search = Search("digits-mlp", TURNS, 9, max_rounds=3, trials=4, replicate=7)
    found = search.measure()
    assert len(found) == 4
    hard, easy = found["rounds@0.04"], found["rounds@0.1"]
    assert easy.notna().any() and (hard.isna() | (easy <= hard)).all() and easy.max() <= 3


def planted(turns, whole):
    """Trials in which a search takes 10 rounds by an epoch of averaging, and so many by others."""
    rounds = {federated.EPOCH: 10, federated.TURNS: turns, federated.WHOLE: whole}
    rows, luck = [], enumerate((0.95, 1.0, 1.05, 1.02), start=1)
    cases = itertools.product(experiments.NETWORKS, (False, True), rounds, luck)
    for network, skewed, arm, (replicate, times) in cases:
        easy = rounds[arm] * times
        hard = np.nan if skewed else easy
        rows.append((network, skewed, *experiments.ARMS[arm][:3], replicate, hard, easy))
    names = ["workload", "skewed", "way", "local_steps", "batch_size", "replicate"]
    found = pd.DataFrame(rows, columns=[*names, "rounds@0.04", "rounds@0.1"])
    return found.assign(sent=5, adds=4, cut_sent=3, cut_adds=2)


@pytest.mark.parametrize(("turns", "whole", "verdict"), [(5, 30, YES), (12, 10, NO)])
def test_planted_rounds_are_judged_as_they_are(turns, whole, verdict, judge):
    for told in judge(planted(turns, whole), "F1", "F2"):
        assert [group.verdict for group in told.groups] == [verdict] * 4
