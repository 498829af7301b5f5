"""Muon and K-FAC are what they say: against plain implementations of one trial, in limits, and in what is exact."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import batched, flattening, sequential
from lib.measuring import one_cell
from lib.methods import METHODS, kfac, muon
from lib.studies.cells import Cell
from lib.workloads import models

torch.set_num_threads(1)


def two_convolutions():
    """Padding, strides, and images that are not square, on which rows and columns would be found out if exchanged."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 2), nn.ReLU(),
        nn.Flatten(), nn.Linear(24, 7), nn.ReLU(), nn.Linear(7, 5),
    )  # fmt: skip


NETWORKS = {"mlp": (lambda: models.mlp(12, 8, 6, classes=5), (1, 3, 4)), "convolutions": (two_convolutions, (2, 5, 7))}
KEPT = 0.6


def case(name, trials=3, examples=16, sparse=False):
    """Networks in double precision, their weights [T, P], a mask or None, and batches of examples with labels."""
    build, shape = NETWORKS[name]
    random = torch.Generator().manual_seed(3)
    nets = [models.initialise(build(), seed).double() for seed in range(trials)]
    w = torch.stack([flattening.flatten(net) for net in nets])
    mask = (torch.rand(w.shape, generator=random) < KEPT).double() if sparse else None
    x = torch.randn(4, examples, *shape, generator=random, dtype=torch.float64)
    y = torch.randint(5, (4, examples), generator=random)
    return nets, w if mask is None else w * mask, mask, list(zip(x, y))


def column(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


def trained(name, executor, w, mask, batches, drawn):
    """Weights after each of the batches."""
    method, layers, path = METHODS[name], flattening.layers(executor.module), []
    w = w.clone()
    buffers = method.begin(w.clone(), layers)
    for k, batch in enumerate(batches, start=1):
        if method.gradient:
            _, g, _ = method.gradient(executor, w, batch, mask, buffers)
        else:
            _, g, _ = executor.gradients(w, *batch, mask)
        method.step(w, g.to(w.dtype), buffers, drawn, k, layers)
        path.append(w.clone())
    return torch.stack(path), buffers


def in_place_of(net, values):
    """The module's parameters become `values` [P]."""
    for p, value in zip(net.parameters(), flattening.unflatten(values, net), strict=True):
        p.data = value.clone()


# --- Muon -------------------------------------------------------------------------------------------------------------


def after_five_rounds(s):
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return s


@pytest.mark.parametrize("shape", [(64, 64), (16, 9), (32, 144), (10, 200)])
def test_five_rounds_keep_the_directions_and_bring_the_lengths_near_one(shape):
    """Singular vectors stay, singular values take five steps of the scalar map, those of some size end in the published band."""
    u = torch.randn(4, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * column(1, 1e-3, 1e4, 7)[..., None]
    left, lengths, right = torch.linalg.svd(u, full_matrices=False)
    relative = lengths / u.norm(dim=(1, 2))[:, None]
    expected = left @ torch.diag_embed(after_five_rounds(relative)) @ right
    found = muon.orthogonal(u)
    assert torch.allclose(found, expected, rtol=1e-3, atol=1e-4)  # the norm of the second is no longer far from SMALLEST
    large = relative > 0.02
    ends = torch.linalg.svdvals(found)[large]
    assert large.float().mean() > 0.8 and ends.min() > 0.67 and ends.max() < 1.21
    polar = left @ right
    assert ((found * polar).sum((1, 2)) / found.norm(dim=(1, 2)) / polar.norm(dim=(1, 2)) > 0.95).all()
    assert torch.allclose(muon.orthogonal(u.float()), found.float(), atol=1e-4)


def plain_muon(net, mask, batches, rate, momentum, ratio):
    """One trial by a module, singular values and torch's Adam; kernels as torch lays them."""
    weights = [p for p in net.parameters() if p.dim() > 1][:-1]
    others = [p for p in net.parameters() if all(p is not q for q in weights)]
    adam = torch.optim.Adam(others, lr=ratio * rate, betas=(0.9, 0.95), eps=1e-10)
    left = [torch.ones_like(p) for p in net.parameters()] if mask is None else flattening.unflatten(mask, net)
    left, means, path = dict(zip(net.parameters(), left)), {p: 0 for p in weights}, []
    for x, y in batches:
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        for p in net.parameters():
            p.grad *= left[p]
        for p in weights:
            means[p] = momentum * means[p] + (1 - momentum) * p.grad
            u = ((1 - momentum) * p.grad + momentum * means[p]).flatten(1)
            a, s, b = np.linalg.svd(u.numpy(), full_matrices=False)
            u = torch.from_numpy(a * after_five_rounds(s / (np.linalg.norm(u) + 1e-7)) @ b) * math.sqrt(max(1, len(u) / u.shape[1]))
            p.data -= rate * u.view(p.shape) * left[p]
        adam.step()
        path.append(flattening.flatten(net))
    return torch.stack(path)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("network", NETWORKS)
def test_muon_is_a_plain_muon_of_every_trial(network, sparse):
    nets, w, mask, batches = case(network, sparse=sparse)
    drawn = {"learning_rate": column(0.003, 0.05, 0.3), "momentum": column(0.5, 0.9, 0.99), "aux_ratio": column(1.0, 0.1, 0.003)}
    path, _ = trained("muon", batched.BatchedExecutor(nets[0], torch.float64), w, mask, batches, drawn)
    assert mask is None or not path[:, mask == 0].any()
    for t, net in enumerate(nets):
        in_place_of(net, w[t])
        own = plain_muon(net, None if mask is None else mask[t], batches, *(drawn[name][t].item() for name in muon.SPACE))
        assert torch.allclose(path[:, t], own, rtol=1e-4, atol=2e-6), network


def test_a_matrix_that_begins_at_zero_is_not_taken_for_removed():
    nets, w, _, batches = case("mlp", trials=2)
    (hidden,) = [layer for layer in flattening.layers(nets[0]) if layer.name == "3.weight"]
    w[:, hidden.where] = 0
    w[:, flattening.layers(nets[0])[3].where] = 0.1  # biases: units that are on
    drawn = {"learning_rate": column(0.1, 0.1), "momentum": column(0.9, 0.9), "aux_ratio": column(0.1, 0.1)}
    path, _ = trained("muon", batched.BatchedExecutor(nets[0], torch.float64), w, None, batches, drawn)
    assert (path[0][:, hidden.where] != 0).float().mean() > 0.9


# --- What executors show of layers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("examples", [16, 80])  # with a convolution as patches, and as one matrix
@pytest.mark.parametrize("kind", [batched.BatchedExecutor, sequential.SequentialExecutor])
@pytest.mark.parametrize("network", NETWORKS)
def test_inputs_and_derivatives_make_up_the_gradient(network, kind, examples):
    """Of every layer, derivatives times inputs are the gradient of the weight as it lies in w, and their sum the bias's."""
    nets, w, mask, ((x, y), *_) = case(network, examples=examples, sparse=True)
    executor = kind(nets[0], torch.float64)
    plain = executor.gradients(w, x, y, mask)
    *found, looks = executor.gradients_with_layer_stats(w, x, y, mask, lambda h, d: (d.mT @ h, d.sum(1)))
    for ours, theirs in zip(found, plain, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)
    layers = {layer.name: layer for layer in flattening.layers(nets[0])}
    assert list(looks) == [name for name, layer in layers.items() if layer.kind] and len(looks) > 2
    for name, parts in looks.items():
        for part, layer in zip(parts, (layers[name], layers[name.replace("weight", "bias")]), strict=True):
            assert torch.allclose((part.flatten(1) * mask[:, layer.where]).float(), plain[1][:, layer.where].float(), atol=1e-6)


def test_kinds_of_parameters():
    net = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 3), nn.LayerNorm(3), nn.Linear(3, 2))
    assert [layer.kind for layer in flattening.layers(net)] == ["", "linear", "", "", "", "last", ""]
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3, groups=2), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))
    assert [layer.kind for layer in flattening.layers(net)] == ["convolution", "", "", "", "", "", "last", ""]


# --- K-FAC ------------------------------------------------------------------------------------------------------------


def plain_factors(net, x, y):
    """Factors of every layer, an example at a time: patches by hand, each example's own loss."""
    found, seen = {}, []
    layers = [m for m in net if isinstance(m, (nn.Linear, nn.Conv2d))]

    def keep(m, inputs, out):
        out.retain_grad()
        seen.append((m, inputs[0].detach(), out))

    hooks = [m.register_forward_hook(keep) for m in layers]
    for n in range(len(x)):
        seen.clear()
        F.cross_entropy(net(x[n : n + 1]), y[n : n + 1]).backward()
        for m, h, out in seen:
            inputs, outputs = [h[0]], [out.grad[0]]
            if isinstance(m, nn.Conv2d):
                (k, _), (s, _), (p, _) = m.kernel_size, m.stride, m.padding
                h = F.pad(h, (p, p, p, p))[0]
                places = [(i, j) for i in range(out.shape[2]) for j in range(out.shape[3])]
                inputs = [h[:, i * s : i * s + k, j * s : j * s + k].reshape(-1) for i, j in places]
                outputs = [out.grad[0, :, i, j] for i, j in places]
            inputs = [torch.cat([v, torch.ones(1, dtype=v.dtype)]) for v in inputs]
            a, g = found.setdefault(m, (0, 0))
            a = a + sum(torch.outer(v, v) for v in inputs) / len(x)
            found[m] = a, g + sum(torch.outer(v, v) for v in outputs) / len(outputs) / len(x)
    for hook in hooks:
        hook.remove()
    return found


def plain_kfac(net, mask, batches, rate, momentum, damping, most=1e-3):
    """One trial, by a module, loops over examples and places, and linear equations with whole Kronecker products."""
    left = [torch.ones_like(p) for p in net.parameters()] if mask is None else flattening.unflatten(mask, net)
    left, average, v, path = dict(zip(net.parameters(), left)), {}, {p: 0 for p in net.parameters()}, []
    for k, (x, y) in enumerate(batches, start=1):
        share = max(1 / k, 0.05)
        for m, new in plain_factors(net, x, y).items():
            average[m] = [share * n + (1 - share) * old for n, old in zip(new, average.get(m, (0, 0)))]
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        moves, total = {}, 0
        for m, (a, g) in average.items():
            for p in m.parameters():
                p.grad *= left[p]
            slope = torch.cat([m.weight.grad.flatten(1), m.bias.grad[:, None]], 1).reshape(-1)
            fisher = torch.kron(g, a)
            move = torch.linalg.solve(fisher + damping * torch.eye(len(fisher), dtype=a.dtype), slope)
            total += (move @ slope).item()
            move = move.view(len(m.bias), -1)
            moves |= {m.weight: move[:, :-1].reshape(m.weight.shape), m.bias: move[:, -1]}
        clip = min(1, math.sqrt(most / abs(rate**2 * total)))
        for p in net.parameters():
            v[p] = momentum * v[p] + clip * moves[p] * left[p]
            p.data -= rate * v[p]
        path.append(flattening.flatten(net))
    return torch.stack(path)


@pytest.mark.parametrize(("name", "most"), [("kfac", 1e-3), ("kfac-unclipped", math.inf)])
@pytest.mark.parametrize("kind", [batched.BatchedExecutor, sequential.SequentialExecutor])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("network", NETWORKS)
def test_kfac_is_a_plain_kfac_of_every_trial(network, sparse, kind, name, most):
    nets, w, mask, batches = case(network, sparse=sparse)
    rates = (0.002, 0.01, 0.3) if name == "kfac" else (0.002, 0.01, 0.02)  # without a clip, large ones part soon
    drawn = {"learning_rate": column(*rates), "momentum": column(0.5, 0.9, 0.99), "damping": column(0.01, 1.0, 0.03)}
    path, _ = trained(name, kind(NETWORKS[network][0](), torch.float64), w, mask, batches, drawn)
    assert mask is None or not path[:, mask == 0].any()
    for t, net in enumerate(nets):
        in_place_of(net, w[t])
        own = plain_kfac(net, None if mask is None else mask[t], batches, *(drawn[one][t].item() for one in kfac.SPACE), most)
        assert torch.allclose(path[:, t] - w[t], own - w[t], rtol=1e-4, atol=1e-6)


def edged():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 5))


@pytest.mark.parametrize("kind", [batched.BatchedExecutor, sequential.SequentialExecutor])
def test_rounding_switches_no_unit_on(kind):
    """Of trial i, channel i is off but exactly on the edge where patches are blank, and unit i has no weights: both stay so."""
    nets, random, trials = [models.initialise(edged(), 0).double() for _ in range(4)], torch.Generator().manual_seed(2), range(4)
    masks = torch.ones(4, models.parameter_count(nets[0]), dtype=torch.float64)
    first, first_bias, second, second_bias, *_ = flattening.layers(nets[0])
    for i, net in enumerate(nets):
        net[0].weight.data[i] = -net[0].weight.data[i].abs()
        masks[i, second.where].view(6, 64)[i] = 0
    w = torch.stack([flattening.flatten(net) for net in nets]) * masks
    x = torch.rand(6, 8, 1, 6, 6, generator=random, dtype=torch.float64) + 0.1
    x[..., :3, :3] = 0
    batches = list(zip(x, torch.randint(5, (6, 8), generator=random)))
    drawn = {"learning_rate": column(*[0.1] * 4), "momentum": column(*[0.9] * 4), "damping": column(*[1e-3] * 4)}
    path, _ = trained("kfac", kind(edged(), torch.float64), w, masks, batches, drawn)
    for layer in (first_bias, second_bias):
        biases = path[:, :, layer.where]
        assert not biases[:, trials, trials].any() and (biases[-1] != 0).sum() > 8


@pytest.mark.parametrize("from_step", [1, 4])
def test_a_factor_without_a_decomposition_costs_its_trial_alone(from_step, monkeypatch):
    """The trial keeps its last axes, and stands still while it has none; no bit of the others changes."""
    nets, w, _, batches = case("mlp")
    drawn = {"learning_rate": column(0.01, 0.01, 0.01), "momentum": column(0.9, 0.9, 0.9), "damping": column(0.1, 0.1, 0.1)}
    executor, batches = batched.BatchedExecutor(nets[0], torch.float64), batches * 2
    whole, _ = trained("kfac", executor, w, None, batches, drawn)
    seen = batches[: from_step - 1]
    before = trained("kfac", executor, w, None, seen, drawn)[1] if seen else kfac.METHOD.begin(w, flattening.layers(nets[0]))
    eigh, of_the_first = torch.linalg.eigh, {"steps": 0}

    def fails(factor):
        of_the_first["steps"] += factor.shape[0] == 13  # the first layer's inputs, which all trials share
        if factor.storage_offset() == factor.numel() and of_the_first["steps"] >= from_step:  # the second trial's
            raise torch.linalg.LinAlgError("failed to converge")
        return eigh(factor)

    monkeypatch.setattr(torch.linalg, "eigh", fails)
    path, buffers = trained("kfac", executor, w, None, batches, drawn)
    assert torch.equal(path[:, [0, 2]], whole[:, [0, 2]]) and path.isfinite().all()
    assert torch.equal(path[: from_step - 1], whole[: from_step - 1]) and not torch.equal(path[-1, 1], whole[-1, 1])
    for name in ("3.weight inputs", "5.weight outputs"):
        for part in ("axes", "curves"):
            assert torch.equal(buffers[f"{name} {part}"][1], before[f"{name} {part}"][1])
            assert not torch.equal(buffers[f"{name} {part}"][0], before[f"{name} {part}"][0])
    assert torch.equal(path[-1, 1], w[1]) == (from_step == 1)


def looked(net, w, batch):
    """K-FAC's buffers and gradients after one step's look at a batch."""
    executor, layers = sequential.SequentialExecutor(net, torch.float64), flattening.layers(net)
    buffers = kfac.METHOD.begin(w, layers)
    _, g, _ = kfac.METHOD.gradient(executor, w, batch, None, buffers)
    return layers, buffers, g.to(w.dtype)


@pytest.mark.parametrize("same_inputs", [False, True])
def test_the_product_of_factors_is_the_fisher_matrix_where_it_must_be(same_inputs):
    """Of one layer: with one example, and with any number that have one input: the average of g g^T of each example."""
    net = models.initialise(models.mlp(6, classes=5), 0).double()
    random = torch.Generator().manual_seed(2)
    x = torch.randn(1, 6, generator=random, dtype=torch.float64).expand(7 if same_inputs else 1, -1)
    y = torch.randint(5, (len(x),), generator=random)
    _, buffers, _ = looked(net, flattening.flatten(net)[None], (x, y))
    fisher = 0
    for n in range(len(x)):
        net.zero_grad()
        F.cross_entropy(net(x[n : n + 1]), y[n : n + 1]).backward()
        g = torch.cat([net[1].weight.grad, net[1].bias.grad[:, None]], 1).flatten()
        fisher = fisher + torch.outer(g, g) / len(x)
    assert torch.allclose(torch.kron(buffers["1.weight outputs"][0], buffers["1.weight inputs"][0]), fisher, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("network", NETWORKS)
def test_with_much_damping_kfac_is_momentum(network):
    nets, w, _, batches = case(network)
    rate, momentum, damping = column(0.1, 0.3, 1.0), column(0.5, 0.9, 0.99), 1e8
    executor = batched.BatchedExecutor(nets[0], torch.float64)
    drawn = {"learning_rate": rate * 1e-3, "momentum": momentum, "damping": column(*[damping] * 3)}
    path, _ = trained("kfac", executor, w, None, batches[:1] * 4, drawn)
    plain, _ = trained("momentum", executor, w, None, batches[:1] * 4, drawn | {"learning_rate": rate * 1e-3 / damping})
    moved, expected = path[-1] - w, plain[-1] - w
    assert torch.allclose(moved, expected, rtol=1e-4, atol=1e-5 * expected.abs().max().item())


def test_a_step_changes_the_network_no_more_than_the_clip_allows():
    """Rate squared times the step's product with the gradient: below the clip as it is, above it brought down to it."""
    nets, w, _, batches = case("mlp")
    layers, buffers, g = looked(nets[0], w, batches[0])
    for rate in (1e-4, 1.0):
        drawn = {"learning_rate": column(*[rate] * 3), "momentum": column(0, 0, 0), "damping": column(1e-3, 0.01, 0.1)}
        after, own = w.clone(), {name: buffer.clone() for name, buffer in buffers.items()}
        kfac.METHOD.step(after, g.clone(), own, drawn, 1, layers)
        change = rate * ((w - after) * g).sum(1)  # rate^2 clip g' . g
        if rate == 1.0:
            unclipped = change**2 / kfac.CLIP  # clip g'.g with clip = sqrt(CLIP / g'.g)
            assert (change > kfac.CLIP).all() and torch.allclose(change, (unclipped * kfac.CLIP).sqrt())
            assert torch.allclose((change / unclipped) ** 2 * unclipped, torch.full_like(change, kfac.CLIP))
        else:
            assert (0 < change).all() and (change < kfac.CLIP).all()


def test_a_stale_decomposition_is_the_last_one_and_a_fresh_one_the_factors(monkeypatch):
    nets, w, _, batches = case("mlp", trials=2)
    drawn = {"learning_rate": column(0.1, 0.3), "momentum": column(0.9, 0.5), "damping": column(0.01, 0.1)}
    executor = batched.BatchedExecutor(nets[0], torch.float64)
    fresh, buffers = trained("kfac", executor, w, None, batches, drawn)
    for name in ("1.weight inputs", "3.weight outputs", "5.weight inputs"):
        axes, curves = buffers[f"{name} axes"], buffers[f"{name} curves"]
        assert torch.allclose(axes @ torch.diag_embed(curves) @ axes.mT, buffers[name], atol=1e-10)
    monkeypatch.setattr(kfac, "EVERY_STEP", 1)
    assert torch.equal(trained("kfac", executor, w, None, batches, drawn)[0], fresh), "small sides are never stale"
    monkeypatch.setattr(kfac, "INTERVALS", ((12, 1), (128, 3)))  # the first layer's 13 inputs alone are a large side
    now, first, third = (trained("kfac", executor, w, None, batches[:k], drawn)[1] for k in (2, 1, 3))
    for large, small in (("1.weight inputs axes", "3.weight inputs axes"), ("1.weight inputs curves", "5.weight outputs curves")):
        assert torch.equal(now[large], first[large]) and not torch.equal(now[large], third[large])
        assert not torch.equal(now[small], first[small])
    assert not torch.equal(now["1.weight inputs"], first["1.weight inputs"])


def test_sides_and_their_intervals():
    assert [kfac.interval(side) for side in (10, 128, 129, 512, 801, 1025)] == [1, 1, 10, 10, 20, 20]


def test_what_has_no_factors_moves_by_momentum():
    norm = nn.BatchNorm1d(6, track_running_stats=False)
    net = models.initialise(nn.Sequential(nn.Flatten(), nn.Linear(12, 6), norm, nn.ReLU(), nn.Linear(6, 5)), 0).double()
    w, batches = flattening.flatten(net)[None], case("mlp")[3]
    layers, buffers, g = looked(net, w, batches[0])
    drawn = {"learning_rate": column(0.2), "momentum": column(0.9), "damping": column(0.01)}
    after = w.clone()
    for k in (1, 2):
        kfac.METHOD.step(after, g.clone(), buffers, drawn, k, layers)
    for layer in layers:
        plain = torch.allclose(after[:, layer.where], (w - 0.2 * (1 + 1.9) * g)[:, layer.where], atol=1e-7)
        assert plain == layer.name.startswith("2."), layer.name


@pytest.mark.parametrize("size", [1e12, 1e20, math.inf])
def test_a_trial_that_diverges_changes_no_bit_of_the_others(size):
    nets, w, _, batches = case("convolutions")
    w, batches = w.float(), [(x.float(), y) for x, y in batches]
    drawn = {"learning_rate": column(0.1, 0.1, 0.1), "momentum": column(0.9, 0.9, 0.9), "damping": column(1e-5, 0.1, 1.0)}
    drawn = {name: values.float() for name, values in drawn.items()}
    executor = batched.BatchedExecutor(two_convolutions())
    path, _ = trained("kfac", executor, w, None, batches, drawn)
    wild = w.clone()
    wild[1] *= size
    others, _ = trained("kfac", executor, wild, None, batches, drawn)
    assert torch.equal(path[:, [0, 2]], others[:, [0, 2]])


@pytest.mark.parametrize("algorithm", ["muon", "kfac"])
@pytest.mark.parametrize(("workload", "sparsity"), [("digits-mlp", 0), ("digits-cnn", 0.7)])
def test_a_trial_that_leaves_changes_no_bit_of_the_others(workload, sparsity, algorithm):
    """Matrices here have sides of 9, 65, 129 and 145, where products and eigenvectors of many differ from those of few."""
    cell = Cell(workload, 32, algorithm, sparsity, trials=8)
    trials, executor, data = one_cell.start(cell), one_cell.executor(cell), cell.work.train()
    batches = [(data.x[at : at + 32], data.y[at : at + 32]) for at in (0, 32, 64)]
    whole, _ = trained(algorithm, executor, trials.w, trials.mask, batches, trials.drawn)
    for rows in ([1, 3, 5, 7], [2, 6], [4]):
        left = trials.keep(rows)
        part, _ = trained(algorithm, executor, left.w, left.mask, batches, left.drawn)
        assert torch.equal(whole[:, rows], part)
