"""Local representation alignment and feedback alignment, against plain loops over layers and examples, and their limits."""

import numpy as np
import pytest
import torch
from torch import nn

from lib.engine import flattening, stacked
from lib.measuring import one_cell
from lib.methods import LOCAL, local_alignment
from lib.studies.cells import Cell
from lib.workloads import models

torch.set_num_threads(1)
WIDTHS, TRIALS, EXAMPLES = (7, 6, 5, 4, 3), 3, 8  # units from the inputs on
DEPTH = len(WIDTHS) - 1
RATE = torch.tensor([[0.1], [0.3], [0.02]], dtype=torch.float64)


def network(activation):
    parts = [nn.Flatten()]
    for inputs, outputs in zip(WIDTHS[:-1], WIDTHS[1:], strict=True):
        parts += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*parts[:-1])


@pytest.fixture(params=[nn.Tanh, nn.ReLU], ids=["tanh", "relu"])
def setting(request):
    """A stack in double precision, the layers, weights [T, P] whose biases are not zero, and a batch."""
    random = torch.Generator().manual_seed(3)
    module = network(request.param)
    w = torch.stack([flattening.flatten(models.initialise(module, seed)) for seed in range(TRIALS)]).double()
    w += 0.1 * torch.randn(w.shape, generator=random, dtype=torch.float64)
    x = torch.randn(EXAMPLES, 1, WIDTHS[0], 1, generator=random, dtype=torch.float64)
    y = torch.randint(WIDTHS[-1], (EXAMPLES,), generator=random)
    executor = stacked.Stack(module, torch.float64)
    return executor, flattening.layers(module), w, (x, y)


def of_layers(vector):
    """Weights and biases of every layer of one trial's flat vector, as NumPy arrays."""
    found, at = [], 0
    for inputs, outputs in zip(WIDTHS[:-1], WIDTHS[1:], strict=True):
        matrix = vector[at : at + inputs * outputs].reshape(outputs, inputs)
        at += inputs * outputs
        found.append((matrix, vector[at : at + outputs]))
        at += outputs
    return found


def slow(name, layers, feedback, x, y, activation):
    """The mean of an example's updates, flat [P], by the rules of the papers; feedback: matrices of layers 2 ... L."""
    f = np.tanh if activation is nn.Tanh else lambda z: np.maximum(z, 0)
    slope = (lambda z: 1 - np.tanh(z) ** 2) if activation is nn.Tanh else (lambda z: (z > 0).astype(float))
    beta = {"lra": 0.1, "lra-1": 1.0}.get(name)
    total = 0
    for example, label in zip(x, y, strict=True):
        h, z = [example], []
        for n, (weight, bias) in enumerate(layers):
            z.append(weight @ h[-1] + bias)
            h.append(f(z[-1]) if n < DEPTH - 1 else z[-1])
        odds = np.exp(z[-1] - z[-1].max())
        e, updates = odds / odds.sum() - np.eye(WIDTHS[-1])[label], []
        for n in reversed(range(DEPTH)):
            updates = [np.outer(e, h[n]).ravel(), e] + updates
            if n:
                way = feedback[n - 1] @ e
                e = slope(z[n - 1]) * way if beta is None else f(z[n - 1]) - f(z[n - 1] - beta * way)
        total = total + np.concatenate(updates) / len(y)
    return total


@pytest.mark.parametrize("name", LOCAL)
def test_five_steps_are_those_of_loops_over_layers_and_examples(name, setting):
    executor, layers, w, batch = setting
    method, activation = LOCAL[name], type(executor.module[2])
    x, y = batch[0].flatten(1).numpy(), batch[1].numpy()
    buffers, plain = method.begin(w.clone(), layers), w.numpy().copy()
    feedback = [[m[t].numpy().copy() for m in buffers.values()] for t in range(TRIALS)]
    for k in range(1, 6):
        losses, g, alive = method.gradient(executor, w, batch, None, buffers)
        assert alive.all() and torch.allclose(losses, executor.gradients(w, *batch)[0])
        method.step(w, g.double(), buffers, {"learning_rate": RATE}, k, layers)
        for t, rate in enumerate(RATE[:, 0].tolist()):
            g = slow(name, of_layers(plain[t]), feedback[t], x, y, activation)
            plain[t] -= rate * g
            if name != "feedback-alignment":
                feedback[t] = [m - rate * own.T for m, (own, _) in zip(feedback[t], of_layers(g)[1:], strict=True)]
    assert np.allclose(w.numpy(), plain, rtol=1e-5, atol=1e-7)  # gradients pass through float32
    for t in range(TRIALS):
        for m, own in zip(buffers.values(), feedback[t], strict=True):
            assert np.allclose(m[t].numpy(), own, rtol=1e-5, atol=1e-7)


def errors(method, setting, buffers):
    """An example's errors of every layer, by a method's own `gradient`: rows of the bias's gradient at batch size 1."""
    executor, layers, w, (x, y) = setting
    g = method.gradient(executor, w, (x[:1], y[:1]), None, buffers)[1].double()
    return [g[:, one.where] for one in layers if len(one.shape) == 1]


def test_with_a_small_beta_it_is_feedback_alignment_with_lower_layers_slowed_down(setting):
    _, layers, w, _ = setting
    buffers, beta = local_alignment.begin(w, layers), 1e-3
    plain = errors(local_alignment.FEEDBACK, setting, buffers)
    small = errors(local_alignment.aligning("x", "x", beta), setting, buffers)
    for n, (a, b) in enumerate(zip(plain, small, strict=True), start=1):
        assert torch.allclose(b / beta ** (DEPTH - n), a, rtol=0.02, atol=2e-3 * a.abs().max().item())
    large = errors(local_alignment.WIDE, setting, buffers)
    if isinstance(setting[0].module[2], nn.Tanh):
        assert not torch.allclose(large[0], plain[0], rtol=0.02, atol=2e-3 * plain[0].abs().max().item())


def test_with_the_transposed_weights_feedback_alignment_is_backpropagation(setting):
    executor, layers, w, batch = setting
    weights = [one for one in layers if one.kind]
    buffers = {one.name: w[:, one.where].unflatten(1, one.shape).mT for one in weights[1:]}
    g = local_alignment.FEEDBACK.gradient(executor, w, batch, None, buffers)[1]
    assert torch.allclose(g, executor.gradients(w, *batch)[1], rtol=1e-5, atol=1e-7)


def test_other_networks_are_refused_by_name(name="lra"):
    with pytest.raises(ValueError, match="model: 'Sequential' is not allowed; it must be a network of linear layers with tanh"):
        one_cell.train_cell(Cell("digits-cnn", 64, name, trials=2, max_steps=2))
