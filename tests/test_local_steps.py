"""Local steps with an outer step: where the answer is known, and against plain loops."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from chapters.disputed import local_steps
from chapters.disputed import local_steps_experiments as experiments
from chapters.disputed.local_steps_experiments import DILOCO, INNER, SPARSE, Search
from chapters.disputed.replicas import Replicas
from lib.claims import NO, YES
from lib.engine import batched, flattening
from lib.methods import METHODS
from lib.workloads import models

ONE = torch.ones(2, 1)
ADAM = {
    "learning_rate": torch.tensor([[0.01], [0.003]]),
    "beta1": 0.9 * ONE,
    "beta2": 0.999 * ONE,
}
SGD = {"learning_rate": torch.tensor([[0.3], [0.1]])}


@pytest.fixture
def net():
    """An executor, its layers, and weights [2, P]."""
    executor = batched.BatchedExecutor(models.build("mlp-64x2"))
    w = torch.stack([flattening.flatten(models.fresh("mlp-64x2", seed)) for seed in range(2)])
    return executor, flattening.layers(executor.module), w


def examples(replicas):
    """A replica's batches, each unlike the last."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(replicas, 40, 6, 1, 8, 8, generator=random)
    return x, torch.randint(10, (replicas, 40, 6), generator=random)


def replicas_of(net, inner, drawn, batches, outer=ONE, **options):
    executor, layers, w = net
    streams = [itertools.cycle(zip(*pair)) for pair in zip(*batches)]
    return Replicas(
        METHODS[inner], executor.gradients, layers, w, drawn, streams, outer, **options
    )


def test_one_replica_without_an_outer_step_is_the_inner_method_to_the_bit(net):
    executor, layers, w = net
    x, y = examples(1)
    replica = replicas_of(net, "adam", ADAM, (x, y), momentum=0.0)
    state, method = METHODS["adam"].begin(w.clone(), layers), METHODS["adam"]
    for k in range(1, 31):
        g = executor.gradients(w, x[0, k - 1], y[0, k - 1])[1]
        method.step(w, g, state, dict(ADAM), k, layers)
        if k % 5 == 0:
            assert torch.equal(replica.round(5), w), k
    assert not torch.equal(replicas_of(net, "adam", ADAM, (x, y)).round(5), replica.round(5))


@pytest.mark.parametrize("replicas", [2, 4])
def test_single_steps_of_sgd_on_equal_shards_are_data_parallelism(net, replicas):
    executor, _, w = net
    x, y = examples(replicas)
    single = replicas_of(net, "sgd", SGD, (x, y), momentum=0.0)
    for k in range(4):
        g = executor.gradients(w, x[:, k].flatten(0, 1), y[:, k].flatten())[1]
        w = w - SGD["learning_rate"] * g
        assert torch.allclose(single.round(1), w, rtol=1e-4, atol=1e-6)
    several = replicas_of(net, "sgd", SGD, (x, y), momentum=0.0).round(4)
    assert not torch.allclose(several, w, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kept", [0.0, 0.9, 1.0])
def test_sending_all_is_plain_averaging_whatever_is_kept(net, kept):
    plain = replicas_of(net, "adam", ADAM, examples(3), momentum=0.0)
    sparse = replicas_of(net, "adam", ADAM, examples(3), density=1.0, kept=kept)
    for _ in range(4):
        assert torch.equal(plain.round(3), sparse.round(3))


def changes(net, batches, w, states, k):
    """What each replica's weights lost in three steps of Adam, in a loop."""
    executor, layers, _ = net
    for x, y, state in zip(*batches, states):
        weights = w.clone()
        for step in range(3 * k, 3 * k + 3):
            g = executor.gradients(weights, x[step], y[step])[1]
            hparams = dict(ADAM)
            METHODS["adam"].step(weights, g, state, hparams, step + 1, layers)
        yield w.double() - weights.double()


def test_the_outer_step_is_that_of_torch(net):
    _, layers, w = net
    batches, rate = examples(2), 0.7 * ONE
    replicas = replicas_of(net, "adam", ADAM, batches, rate)
    states = [METHODS["adam"].begin(w.clone(), layers) for _ in range(2)]
    shared = w.double().requires_grad_()
    outer = torch.optim.SGD([shared], lr=rate[0].double().item(), momentum=0.9, nesterov=True)
    for k in range(5):
        shared.grad = sum(changes(net, batches, shared.detach().float(), states, k)) / 2
        outer.step()
        with torch.no_grad():
            shared.copy_(shared.float())  # as replicas get them
        assert torch.allclose(
            replicas.round(3), shared.detach().float(), rtol=1e-5, atol=1e-7
        ), k


def test_the_sparse_form_keeps_what_it_does_not_send(net):
    _, layers, w = net
    batches = examples(2)
    replicas = replicas_of(net, "adam", ADAM, batches, 0.5 * ONE, density=0.03)
    states = [METHODS["adam"].begin(w.clone(), layers) for _ in range(2)]
    unsent, count = [np.zeros(w.shape) for _ in range(2)], round(0.03 * w.shape[1])
    for k in range(5):
        total = np.zeros(w.shape)
        for replica, change in enumerate(changes(net, batches, w, states, k)):
            unsent[replica] = 0.9 * unsent[replica] + change.numpy()
            for trial, row in enumerate(unsent[replica]):
                top = np.argsort(-abs(row))[:count]
                total[trial, top] += row[top]
                row[top] = 0
        w = (w.double() - 0.5 * torch.from_numpy(total) / 2).float()
        assert torch.allclose(replicas.round(3), w, rtol=1e-4, atol=1e-6), k


def test_a_search_tells_rounds_and_bytes(monkeypatch):
    monkeypatch.setitem(experiments.MOST_STEPS, 64, 150)
    sparse = Search(SPARSE, 2, 5, 64, 0.03, replicate=9, trials=8)
    trials, size = sparse.measure(), 64 * 16 + 16 + 16 * 16 + 16 + 16 * 10 + 10
    assert (
        len(trials) == 8
        and set(trials.bytes) == {8 * round(0.03 * size)}
        and trials.outer_rate.between(0.2, 1).all()
    )
    inner = Search(INNER, 1, 5, 64, replicate=9, trials=8)
    assert set(inner.drawn()["outer_rate"]) == {1.0}
    assert (inner.drawn()["learning_rate"] == sparse.drawn()["learning_rate"]).all()
    rounds = inner.measure()["rounds@0.1"]
    assert rounds.notna().any() and rounds.max() <= 30


def planted(alone, sparse):
    """Trials: one replica takes so many times Adam's rounds, the sparse form so many times DiLoCo's."""
    rows = []
    for arm in experiments.arms():
        factor = alone if arm[:2] == (DILOCO, 1) else sparse if arm[0] == SPARSE else 1
        for replicate, times in enumerate((0.95, 1.0, 1.05, 1.02), start=1):
            about = dict(zip(local_steps.ARM, arm), replicate=replicate, bytes=8.0)
            rows.append({**about, "rounds@0.05": 10 * factor * times})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("alone", "sparse", "verdict"), [(0.6, 0.7, YES), (1.3, 1.2, NO)])
def test_planted_rounds_are_judged_as_they_are(alone, sparse, verdict, judge):
    for claim in judge(planted(alone, sparse), "D1", "D2"):
        assert {group.verdict for group in claim.groups} == {verdict}
