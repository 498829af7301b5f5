"""Spiking neurons: against loops, against snnTorch where it is installed, and where the answer is known."""

import numpy as np
import pytest
import torch
from torch import nn

from chapters.spiking import neurons
from lib.engine import batched, flattening
from lib.engine.sequential import SequentialExecutor
from lib.workloads import models

TIME, EXAMPLES, UNITS = 25, 6, 5


@pytest.fixture
def currents():
    """Inputs of neurons [EXAMPLES, TIME, UNITS] that excite some often, some now and then, some never."""
    random = torch.Generator().manual_seed(1)
    return 0.25 * torch.randn(EXAMPLES, TIME, UNITS, generator=random) + torch.linspace(-0.2, 0.6, UNITS)


def slow(given, leak, resets, weight):
    """Spikes of one neuron with inputs [time], and the derivative of their sum, weighted [time], by these, in loops."""
    u, spikes, above = 0.0, [], []
    for value in given:
        u = leak * u + value - (neurons.THRESHOLD * spikes[-1] if resets and spikes else 0)
        spikes.append(float(u > neurons.THRESHOLD))
        above.append(u - neurons.THRESHOLD)
    slopes = [1 / (1 + neurons.SLOPE * abs(a)) ** 2 for a in above]
    derivative = [
        sum(weight[later] * slopes[later] * leak ** (later - t) for later in range(t, len(given))) for t in range(len(given))
    ]
    return spikes, derivative


@pytest.mark.parametrize(("leak", "resets"), [(0.9, True), (0.9, False), (1.0, True), (0.0, False)])
def test_a_layer_fires_and_passes_gradients_as_a_loop_over_neurons_does(currents, leak, resets):
    given = currents.double().requires_grad_()
    weight = torch.linspace(1, 2, TIME, dtype=torch.float64)
    spikes = neurons.Spiking(leak, resets)(given)
    (spikes * weight[:, None]).sum().backward()
    assert 0 < spikes.mean() < 1
    for example in range(EXAMPLES):
        for unit in range(UNITS):
            fired, derivative = slow(currents[example, :, unit].double().tolist(), leak, resets, weight.tolist())
            assert spikes[example, :, unit].tolist() == fired
            np.testing.assert_allclose(given.grad[example, :, unit], derivative, rtol=1e-12)


def test_a_layer_is_that_of_snntorch(currents):
    """With the same leak, threshold, reset by subtraction and surrogate derivative."""
    snntorch = pytest.importorskip("snntorch", reason="snntorch, which is compared with, is not installed")
    theirs = snntorch.Leaky(
        beta=neurons.LEAK, threshold=neurons.THRESHOLD, reset_mechanism="subtract",
        spike_grad=snntorch.surrogate.fast_sigmoid(slope=neurons.SLOPE),
    )  # fmt: skip
    own, other = (currents.clone().requires_grad_() for _ in range(2))
    state, found = theirs.init_leaky(), []
    for t in range(TIME):
        spike, state = theirs(other[:, t], state)
        found.append(spike)
    expected, spikes = torch.stack(found, 1), neurons.Spiking()(own)
    assert torch.equal(spikes, expected) and 0 < spikes.mean() < 1
    for fired in (spikes, expected):
        (fired * torch.linspace(1, 2, TIME)[:, None]).sum().backward()
    torch.testing.assert_close(own.grad, other.grad, rtol=1e-5, atol=1e-7)


def excited(module, seed):
    """The network with weights large enough that units of both layers fire."""
    models.initialise(module, seed)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(3) if p.dim() > 1 else p.add_(0.1)
    return module


def test_without_leak_and_reset_one_time_step_is_a_threshold_network():
    module, x = excited(neurons.network(1, leak=1.0, resets=False), 3), torch.rand(40, 1, 8, 8)
    h = x.flatten(1)
    linear = [layer for layer in module if isinstance(layer, nn.Linear)]
    for layer in linear[:-1]:
        h = (layer(h) > neurons.THRESHOLD).float()
        assert 0 < h.mean() < 1
    torch.testing.assert_close(module(x), linear[-1](h))


def test_without_leak_and_reset_a_steady_input_is_counted_up():
    """After t steps of 0.3 the potential is 0.3 t: above 1 from the fourth on."""
    spikes = neurons.Spiking(leak=1.0, resets=False)(torch.full((1, 6, 1), 0.3))
    assert spikes.flatten().tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("time", [0, 1, 8])
def test_all_trials_at_once_are_the_trials_one_by_one(time):
    w = torch.stack([flattening.flatten(excited(neurons.network(time), seed)).clone() for seed in range(3)])
    x, y = torch.rand(20, 1, 8, 8), torch.arange(20) % 10
    fast, plain = (kind(neurons.network(time)) for kind in (batched.BatchedExecutor, SequentialExecutor))
    for found, expected in zip(fast.gradients(w, x, y)[:2], plain.gradients(w, x, y)[:2], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(fast.logits(w, x), plain.logits(w, x), rtol=1e-4, atol=1e-5)


def test_activity_counts_spikes_and_silent_units():
    module, x = excited(neurons.network(8), 3), torch.rand(50, 1, 8, 8)
    rate, silent, first = neurons.activity(module, x)
    h = neurons.Steady(8)(module[1](x.flatten(1)))
    one = neurons.Spiking()(h)
    two = neurons.Spiking()(module[4](one))
    both = torch.cat([one, two], -1)
    assert rate == pytest.approx(float(both.mean())) and first == pytest.approx(float(one.mean()))
    assert silent == pytest.approx(float((both.amax((0, 1)) == 0).float().mean()))
