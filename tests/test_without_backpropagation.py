"""Training without backpropagation: against loops over layers and flips, and where the answer is known."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from chapters.other_networks import local_errors
from chapters.other_networks.readouts import Descent, Readout, descent, features
from lib import BookError
from lib.claims import NO, YES
from lib.engine import batched, flattening
from lib.measuring import one_search
from lib.methods import LOCAL, local_alignment
from lib.studies.search import Search
from lib.workloads import models

WIDTHS, TRIALS, EXAMPLES = (7, 6, 5, 4, 3), 3, 8  # units from the inputs on
DEPTH = len(WIDTHS) - 1
RATE = torch.tensor([[0.1], [0.3], [0.02]], dtype=torch.float64)


def network(activation):
    parts = [(nn.Linear(*pair), activation()) for pair in itertools.pairwise(WIDTHS)]
    return nn.Sequential(nn.Flatten(), *itertools.chain(*parts))[:-1]


@pytest.fixture(params=[nn.Tanh, nn.ReLU], ids=["tanh", "relu"])
def setting(request):
    """A stack in double precision, the layers, weights [T, P] whose biases are not zero, and a batch."""
    random = torch.Generator().manual_seed(3)
    module = network(request.param)
    w = torch.stack([flattening.flatten(models.initialise(module, seed)) for seed in range(TRIALS)]).double()
    w += 0.1 * torch.randn(w.shape, generator=random, dtype=torch.float64)
    x = torch.randn(EXAMPLES, 1, WIDTHS[0], 1, generator=random, dtype=torch.float64)
    y = torch.randint(WIDTHS[-1], (EXAMPLES,), generator=random)
    executor = batched.BatchedExecutor(module, torch.float64)
    return executor, flattening.layers(module), w, (x, y)


def of_layers(vector):
    """Weights and biases of every layer of one trial's flat vector, as NumPy arrays."""
    sizes = [n for inputs, outputs in itertools.pairwise(WIDTHS) for n in (inputs * outputs, outputs)]
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    return [(w.reshape(len(bias), -1), bias) for w, bias in zip(parts[::2], parts[1::2])]


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
                feedback[t] = [m - rate * slope.T for m, (slope, _) in zip(feedback[t], of_layers(g)[1:], strict=True)]
    assert np.allclose(w.numpy(), plain, rtol=1e-5, atol=1e-7)  # gradients pass through float32
    for t, matrices in enumerate(feedback):
        assert all(np.allclose(m[t], matrix, rtol=1e-5, atol=1e-7) for m, matrix in zip(buffers.values(), matrices))


def errors(method, setting, buffers):
    """An example's errors of every layer, by a method's own `gradient`: rows of the bias's gradient at batch size 1."""
    executor, layers, w, (x, y) = setting
    g = method.gradient(executor, w, (x[:1], y[:1]), None, buffers)[1].double()
    return [g[:, layer.where] for layer in layers if len(layer.shape) == 1]


def test_with_equal_matrices_and_a_small_beta_errors_are_scaled_ones_of_feedback_alignment(setting):
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
    weights = [layer for layer in layers if layer.kind]
    buffers = {layer.name: w[:, layer.where].unflatten(1, layer.shape).mT for layer in weights[1:]}
    g = local_alignment.FEEDBACK.gradient(executor, w, batch, None, buffers)[1]
    assert torch.allclose(g, executor.gradients(w, *batch)[1], rtol=1e-5, atol=1e-7)


def test_other_networks_are_refused_by_name():
    with pytest.raises(BookError, match="step 1: model: 'Sequential' is not .* linear layers"):
        one_search.train_search(Search("digits-cnn", 64, "lra", trials=2, max_steps=2))


@pytest.fixture
def random():
    return np.random.default_rng(5)


def made(random, count, examples, whitened=False):
    """Features [examples, count], a target that no readout meets, and weights to begin with."""
    f, _ = features(random.standard_normal((examples, 8)), np.zeros((1, 8)), count, random, whitened)
    return f, random.choice([-1.0, 1.0], examples), random.random(count) < 0.5


@pytest.mark.parametrize(("batch_size", "flips", "take"), [(7, 5, "every"), (40, 12, "best")])
def test_a_run_is_that_of_a_loop_that_recomputes_every_error(batch_size, flips, take, random):
    f, target, start = made(random, 12, 40)
    readout, seed = Readout(f, target, start), 7
    assert [*descent(readout, Descent(12, batch_size, flips, take, steps=60), np.random.default_rng(seed))][-1] == 60
    w, drawn, queue = start.astype(int), np.random.default_rng(seed), []
    for _ in range(60):
        rows = range(40)
        if batch_size < 40:
            if len(queue) < batch_size:
                queue = queue + list(drawn.permutation(40))
            rows, queue = queue[:batch_size], queue[batch_size:]
        picked = drawn.integers(12, size=1) if flips == 1 else drawn.permutation(12)[:flips]

        def error(w, rows=rows):
            return sum((sum(f[n, i] * w[i] for i in range(12)) - target[n]) ** 2 for n in rows) / len(rows)

        tried = {i: error([1 - v if i == j else v for j, v in enumerate(w)]) - error(w) for i in picked}
        helpful = [i for i in picked if tried[i] < 0]
        for i in [min(helpful, key=tried.get)] if take == "best" and helpful else helpful:
            w[i] = 1 - w[i]
    assert np.array_equal(readout.w, w) and not np.array_equal(w, start)
    assert readout.error == pytest.approx(np.mean((f @ w - target) ** 2), rel=1e-12)


def test_of_uncorrelated_features_the_excess_falls_exponentially_with_the_number_of_features(random):
    """By the first visits alone: (1 - 1/N)^k on average."""
    f, target, start = made(random, 16, 50, whitened=True)
    steps, runs = (8, 16, 40), []
    for _ in range(400):
        readout = Readout(f, target, start)
        errors = [readout.error for _ in descent(readout, Descent(16, 50, steps=40), random)]
        runs.append([errors[k] for k in (0, *steps)])
    weights = np.arange(16)
    best = Readout(f, target, start)
    best.flip(weights[best.changes(weights) < 0])
    excess = np.mean(runs, 0) - best.error
    expected = [(1 - 1 / 16) ** k for k in steps]
    assert excess[1:] / excess[0] == pytest.approx(expected, rel=0.1)


def runs(shape, whitened=False):
    """Curves floor + (start - floor) shape(k / N), whose start and floor differ from run to run."""
    random, parts = np.random.default_rng(1), []
    for n in (64, 128, 256):
        steps = np.unique(np.geomspace(1, 24 * n, 300).astype(int))
        for replicate in range(6):
            floor, start = random.uniform(0.1, 0.3), random.uniform(1, 2)
            pace = np.append(0, steps) / n * random.lognormal(0, 0.05)
            values = floor + (start - floor) * shape(pace)
            run = {"step": np.append(0, steps), "training": values, "features": n, "replicate": replicate}
            parts.append(pd.DataFrame(run))
    return pd.concat(parts, ignore_index=True).assign(batch_size=1350, flips=1, whitened=whitened)


def test_an_exponential_whose_constant_is_the_number_of_features_is_found_to_be_one(judge):
    table = runs(lambda t: np.exp(-t))
    for n, part in table.groupby("features"):
        assert local_errors.folds(local_errors.excess(part))[0] / n == pytest.approx([1, 2, 3], rel=0.05)
    for effect in local_errors.convergence(table).slower:
        assert np.exp(effect.value) == pytest.approx(1, rel=0.1) and effect.low < 0.05 and effect.high > -0.05 and effect.n == 6
    assert {group.verdict for group in judge(table, "B3")[0].groups} == {YES}


def test_slow_tails_are_no_exponentials(judge):
    slow = runs(lambda t: (1 + t) ** -1.5)
    (claim,) = judge(pd.concat([slow, runs(lambda t: np.exp(-t), whitened=True)]), "B3")
    verdicts = {group.name: group.verdict for group in claim.groups}
    assert verdicts["64 features as they are"] == NO and verdicts["64 uncorrelated features"] == YES
