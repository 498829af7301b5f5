"""Local representation alignment and feedback alignment, against plain loops over layers and examples, and their limits."""

import numpy as np
import pytest
import torch
from torch import nn

from lib.engine import batched, flattening, sequential
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
    executor = batched.BatchedExecutor(module, torch.float64)
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


def test_feedback_moves_as_the_transposed_weights_do_and_begins_as_large_but_unrelated():
    cell = Cell("digits-mlp-tanh", 32, "lra", trials=4)
    trials, executor = one_cell.start(cell), one_cell.executor(cell)
    layers, data, method = flattening.layers(executor.module), cell.work.train(), LOCAL["lra"]
    w, batch = trials.w.clone(), (executor.inputs(data.x[:32]), data.y[:32])
    buffers = method.begin(w, layers)
    first = {one.name: w[:, one.where].unflatten(1, one.shape).mT.clone() for one in layers if one.name in buffers}
    assert len(first) == 2
    apart = {name: buffers[name] - m for name, m in first.items()}
    for name, m in first.items():
        assert torch.allclose(m.flatten(1).sort(1)[0], buffers[name].flatten(1).sort(1)[0])
        assert abs(torch.corrcoef(torch.stack([m.flatten(), buffers[name].flatten()]))[0, 1]) < 0.1
    for k in range(1, 6):
        g = method.gradient(executor, w, batch, None, buffers)[1]
        method.step(w, g, buffers, {"learning_rate": torch.full((4, 1), 0.5)}, k, layers)
    for one in (one for one in layers if one.name in buffers):
        now = w[:, one.where].unflatten(1, one.shape).mT
        assert (now - first[one.name]).abs().max() > 0.01
        assert torch.allclose(buffers[one.name] - now, apart[one.name], atol=1e-5)


@pytest.mark.parametrize("name", LOCAL)
def test_a_loop_takes_the_same_gradients_and_masks_hold(name, setting):
    executor, layers, w, batch = setting
    mask = (torch.rand(w.shape, generator=torch.Generator().manual_seed(1)) < 0.6).double()
    buffers, loop = LOCAL[name].begin(w * mask, layers), sequential.SequentialExecutor(network(type(executor.module[2])), torch.float64)  # noqa: E501
    g, other = (LOCAL[name].gradient(one, w * mask, batch, mask, buffers)[1] for one in (executor, loop))
    assert torch.equal(g, other) and not g[mask == 0].any() and g[mask == 1].any()


@pytest.mark.parametrize("name", LOCAL)
def test_a_trial_that_leaves_changes_no_bit_of_the_others(name):
    cell = Cell("digits-mlp-tanh", 32, name, trials=5)
    trials, executor, data = one_cell.start(cell), one_cell.executor(cell), cell.work.train()
    layers, batch = flattening.layers(executor.module), (executor.inputs(data.x[:32]), data.y[:32])

    def trained(rows):
        w = trials.w[rows].clone()
        buffers, drawn = LOCAL[name].begin(w, layers), {"learning_rate": trials.drawn["learning_rate"][rows]}
        for k in range(1, 6):
            LOCAL[name].step(w, LOCAL[name].gradient(executor, w, batch, None, buffers)[1], buffers, drawn, k, layers)
        return w

    assert torch.equal(trained([0, 1, 2, 3, 4])[[1, 4]], trained([1, 4]))


@pytest.mark.parametrize("name", LOCAL)
def test_other_networks_are_refused_by_name(name):
    with pytest.raises(ValueError, match="model: 'Sequential' is not allowed; it must be a network of linear layers with tanh"):
        one_cell.train_cell(Cell("digits-cnn", 64, name, trials=2, max_steps=2))


@pytest.mark.parametrize("kind", [batched.BatchedExecutor, sequential.SequentialExecutor])
def test_a_network_of_tanh_has_autograds_gradients(kind):
    cell = Cell("digits-mlp-tanh", 16, "sgd", trials=2)
    module, data = models.build(cell.work.model), cell.work.train()
    trials, batch = one_cell.start(cell), (data.x[:16], data.y[:16])
    losses, g, alive = kind(module).gradients(trials.w.clone(), *batch)
    for t, seed in enumerate(one_cell.seeds(cell)):
        net = models.fresh(cell.work.model, seed)
        loss = nn.functional.cross_entropy(net(batch[0]), batch[1])
        loss.backward()
        assert torch.allclose(g[t], torch.cat([p.grad.flatten() for p in net.parameters()]), atol=1e-6)
        assert losses[t] == pytest.approx(loss.item(), abs=1e-6) and alive[t]


def test_units_with_tanh_that_give_zero_are_not_dead():
    cell = Cell("digits-mlp-tanh", 16, "sgd", trials=1)
    executor, data = one_cell.executor(cell), cell.work.train()
    w = one_cell.start(cell).w
    w[:, : 64 * 64 + 64] = 0  # the first layer
    _, g, alive = executor.gradients(w, data.x[:16], data.y[:16])
    assert alive.all() and g[:, 64 * 64 : 64 * 64 + 64].any()
