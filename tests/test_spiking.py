"""Spiking neurons: against loops, against snnTorch if installed, and where the answer is known."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from chapters.other_networks import neurons
from chapters.other_networks import spiking as experiments
from lib.engine import batched, flattening, vocabulary
from lib.engine.sequential import SequentialExecutor
from lib.measuring import rerun
from lib.workloads import datasets, models

TIME, EXAMPLES, UNITS = 25, 6, 5
WEIGHT = torch.linspace(1, 2, TIME, dtype=torch.float64)


@pytest.fixture
def currents():
    """Inputs [EXAMPLES, TIME, UNITS] that excite some neurons often, some seldom, some never."""
    random = torch.Generator().manual_seed(1)
    return 0.25 * torch.randn(EXAMPLES, TIME, UNITS, generator=random) + torch.linspace(-0.2, 0.6, UNITS)


def fire(inputs):
    """What the layer makes of inputs [..., TIME, units]."""
    return neurons.Spiking(inputs.shape[-2])(inputs.flatten(0, 1)).reshape(inputs.shape)


def slow(inputs, leak, reset):
    """Spikes of one neuron with inputs [time], and the slope of their weighted sum [time]."""
    u, spikes, above, weight = 0.0, [], [], WEIGHT.tolist()
    for current in inputs:
        u = leak * u + current - (reset * spikes[-1] if spikes else 0)
        spikes.append(float(u > neurons.THRESHOLD))
        above.append(u - neurons.THRESHOLD)
    slopes, times = [1 / (1 + neurons.SLOPE * abs(a)) ** 2 for a in above], range(len(inputs))

    def reach(t):
        return sum(weight[s] * slopes[s] * leak ** (s - t) for s in times[t:])

    return spikes, [reach(t) for t in times]


@pytest.mark.parametrize(("leak", "reset"), [(0.9, 1.0), (0.9, 0.0), (1.0, 1.0), (0.0, 0.0)])
def test_a_layer_fires_and_passes_gradients_as_loops_do(currents, leak, reset, monkeypatch):
    monkeypatch.setattr(neurons, "LEAK", leak)
    monkeypatch.setattr(neurons, "RESET", reset)
    inputs = currents.double().requires_grad_()
    spikes = fire(inputs)
    (spikes * WEIGHT[:, None]).sum().backward()
    assert 0 < spikes.mean() < 1
    for example, unit in itertools.product(range(EXAMPLES), range(UNITS)):
        fired, slopes = slow(currents[example, :, unit].double().tolist(), leak, reset)
        assert spikes[example, :, unit].tolist() == fired
        np.testing.assert_allclose(inputs.grad[example, :, unit], slopes, rtol=1e-12)


def test_a_layer_is_that_of_snntorch(currents):
    """With the same leak, threshold, reset by subtraction and surrogate derivative."""
    snntorch = pytest.importorskip("snntorch", reason="snntorch, which is compared with, is not installed")
    surrogate = snntorch.surrogate.fast_sigmoid(slope=neurons.SLOPE)
    shape = {"beta": neurons.LEAK, "threshold": neurons.THRESHOLD, "reset_mechanism": "subtract"}
    theirs = snntorch.Leaky(**shape, spike_grad=surrogate)
    inputs, their_inputs = (currents.clone().requires_grad_() for _ in range(2))
    state, steps = theirs.init_leaky(), []
    for t in range(TIME):
        spike, state = theirs(their_inputs[:, t], state)
        steps.append(spike)
    expected, spikes = torch.stack(steps, 1), fire(inputs)
    assert torch.equal(spikes, expected) and 0 < spikes.mean() < 1
    for fired in (spikes, expected):
        (fired * WEIGHT.float()[:, None]).sum().backward()
    torch.testing.assert_close(inputs.grad, their_inputs.grad, rtol=1e-5, atol=1e-7)


def excited(module, seed):
    """The network with weights large enough that units of both layers fire."""
    models.initialise(module, seed)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(3) if p.dim() > 1 else p.add_(0.1)
    return module


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_without_leak_and_reset_one_time_step_is_a_threshold_network(model, monkeypatch):
    monkeypatch.setattr(neurons, "LEAK", 1.0)
    monkeypatch.setattr(neurons, "RESET", 0.0)
    module, x = excited(neurons.network(1, model), 3), torch.rand(40, 1, 8, 8)
    *hidden, last = (m for m in module.modules() if isinstance(m, nn.Conv2d | nn.Linear))
    h = x if model == "cnn" else x.flatten(1)
    for layer in hidden:
        h = (layer(h) > neurons.THRESHOLD).float()
    assert 0 < h.mean() < 1
    torch.testing.assert_close(module(x), last(h.flatten(1)))


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize("time", [0, 1, 8])
def test_all_trials_at_once_are_the_trials_one_by_one(time, model):
    w = torch.stack([flattening.flatten(excited(neurons.network(time, model), seed)).clone() for seed in range(3)])
    x, y = torch.rand(20, 1, 8, 8), torch.arange(20) % 10
    fast, plain = (kind(neurons.network(time, model)) for kind in (batched.BatchedExecutor, SequentialExecutor))
    for values, expected in zip(fast.gradients(w, x, y)[:2], plain.gradients(w, x, y)[:2], strict=True):
        torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(fast.logits(w, x), plain.logits(w, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time", [0, 4])
def test_a_winner_is_trained_again_until_it_meets_the_goal_and_no_further(time):
    digits = datasets.load("digits", 1)
    search = rerun.MomentumSearch(
        network=lambda: neurons.network(time), training=digits.train, validation=digits.validation, goals=(0.3, 0.5),
        search=experiments.Search(time, 64, trials=6, max_steps=200), drop_dead=not time,
    )  # fmt: skip
    x, y = digits.validation.x, digits.validation.y

    def error(module):
        return float((module(x).argmax(1) != y).double().mean())

    for winner, module in rerun.winners(search):
        earlier = vocabulary.last_check(int(winner["steps"]) - 1)
        assert error(module) <= winner["goal"] < error(rerun.retrain(search, winner["trial"], earlier))


def planted(ratio, noise=0.02):
    """Records of searches whose units fire so many times as often as rectifiers are on."""
    random, rows = np.random.default_rng(1), []
    for search in experiments.planned():
        rate = (ratio if search.time else 1) * 0.5 * np.exp(noise * random.standard_normal())
        rows.append(vars(search) | {"goal": experiments.JUDGED[search.model], "steps": 100.0, "rate": rate})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("ratio", "verdict"), [(0.5, "yes"), (1.0, "no"), (0.8, "unclear")])
def test_the_rule_says_what_is_planted(ratio, verdict, judge):
    ((group,),) = (claim.groups for claim in judge(planted(ratio), "U1"))
    assert group.verdict == verdict and group.n == 5 and group.effect == pytest.approx(ratio, rel=0.05)
