"""Muon and K-FAC are what they say: against plain implementations of one trial, in limits, and in what is exact."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import batched, flattening, sequential
from lib.methods import METHODS, ROTATED, kfac, muon, own_method, soap
from lib.workloads import models

torch.set_num_threads(1)


def two_convolutions():
    """Padding, strides, and images that are not square, which reveal whether rows and columns are exchanged."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 2), nn.ReLU(),
        nn.Flatten(), nn.Linear(24, 7), nn.ReLU(), nn.Linear(7, 5),
    )  # fmt: skip


def test_axes_that_the_library_does_not_find_stop_no_trial(monkeypatch):
    """It may return NaN for denormal numbers where it does not raise."""
    monkeypatch.setattr(torch.linalg, "eigh", lambda m: (m[0] * math.nan, m * math.nan))
    method, w = ROTATED["soap"], torch.randn(2, own_method.P)
    before, buffers = w.clone(), method.begin(w, own_method.LAYERS)
    drawn = {name: torch.full((2, 1), 0.1) for name in method.space}
    for k in (1, 2, 3):
        method.step(w, torch.randn(w.shape), buffers, drawn, k, own_method.LAYERS)
    assert w.isfinite().all() and (w != before).all()


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


def after_five_rounds(s):
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return s


def plain_muon(net, mask, batches, rate, momentum, ratio):
    """One trial by a module, singular values and torch's Adam; kernels as torch lays them out."""
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


@pytest.mark.parametrize(("network", "sparse"), [("mlp", False), ("convolutions", True)])
def test_muon_is_a_plain_muon_of_every_trial(network, sparse):
    nets, w, mask, batches = case(network, sparse=sparse)
    drawn = {"learning_rate": column(0.003, 0.05, 0.3), "momentum": column(0.5, 0.9, 0.99), "aux_ratio": column(1.0, 0.1, 0.003)}
    path, _ = trained("muon", batched.BatchedExecutor(nets[0], torch.float64), w, mask, batches, drawn)
    assert mask is None or not path[:, mask == 0].any()
    for t, net in enumerate(nets):
        in_place_of(net, w[t])
        plain = plain_muon(net, None if mask is None else mask[t], batches, *(drawn[name][t].item() for name in muon.SPACE))
        assert torch.allclose(path[:, t], plain, rtol=1e-4, atol=2e-6), network


# --- K-FAC ------------------------------------------------------------------------------------------------------------


def plain_factors(net, x, y):
    """Factors of every layer, one example at a time: patches by hand, each example's own loss."""
    factors, seen = {}, []
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
            a, g = factors.setdefault(m, (0, 0))
            a = a + sum(torch.outer(v, v) for v in inputs) / len(x)
            factors[m] = a, g + sum(torch.outer(v, v) for v in outputs) / len(outputs) / len(x)
    for hook in hooks:
        hook.remove()
    return factors


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


@pytest.mark.parametrize(
    ("network", "sparse", "kind", "name", "most"),
    [
        ("mlp", False, batched.BatchedExecutor, "kfac", 1e-3),
        ("convolutions", True, batched.BatchedExecutor, "kfac", 1e-3),
        ("convolutions", True, sequential.SequentialExecutor, "kfac-unclipped", math.inf),
    ],
)
def test_kfac_is_a_plain_kfac_of_every_trial(network, sparse, kind, name, most):
    nets, w, mask, batches = case(network, sparse=sparse)
    rates = (0.002, 0.01, 0.3) if name == "kfac" else (0.002, 0.01, 0.02)  # without a clip, large ones part soon
    drawn = {"learning_rate": column(*rates), "momentum": column(0.5, 0.9, 0.99), "damping": column(0.01, 1.0, 0.03)}
    path, _ = trained(name, kind(NETWORKS[network][0](), torch.float64), w, mask, batches, drawn)
    assert mask is None or not path[:, mask == 0].any()
    for t, net in enumerate(nets):
        in_place_of(net, w[t])
        plain = plain_kfac(net, None if mask is None else mask[t], batches, *(drawn[axis][t].item() for axis in kfac.SPACE), most)
        assert torch.allclose(path[:, t] - w[t], plain - w[t], rtol=1e-4, atol=1e-6)


# --- SOAP -------------------------------------------------------------------------------------------------------------

MATRICES = (
    flattening.Layer("first", slice(0, 12), (3, 4), "linear"),
    flattening.Layer("bias", slice(12, 17), (5,)),
    flattening.Layer("kernel", slice(17, 33), (4, 2, 1, 2), "convolution"),
)
SHARED = {"learning_rate": column(0.01, 0.1), "beta1": column(0.5, 0.9), "beta2": column(0.9, 0.99)}


def path_of(name, slopes, w, layers=MATRICES):
    """Weights after each step with these gradients [K, T, P], or a function of the weights."""
    method, w, path = METHODS_AND_SOAP[name], w.clone(), []
    buffers = method.begin(w.clone(), layers)
    for k, slope in enumerate(slopes, start=1):
        g = slope(w) if callable(slope) else slope.clone()
        method.step(w, g, buffers, SHARED, k, layers)
        path.append(w.clone())
    return torch.stack(path)


METHODS_AND_SOAP = METHODS | ROTATED


def drawn_slopes(steps, size=33, seed=0):
    return torch.randn(steps, 2, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def an_orthogonal(side):
    random = torch.Generator().manual_seed(side)
    return torch.linalg.qr(torch.randn(side, side, generator=random, dtype=torch.float64))[0]


def plain_soap(slopes, w, trial, every):
    """One trial, one matrix at a time, the mean in the weights' own coordinates, as the authors' code keeps it."""
    rate, beta1, beta2 = (values[trial].item() for values in SHARED.values())
    w, path = w[trial].clone(), []
    state = {layer.name: {"m": 0, "v": 0, "L": 0, "R": 0} for layer in MATRICES}
    for k, slope in enumerate(slopes[:, trial]):
        for layer in MATRICES:
            buf, g = state[layer.name], slope[layer.where]
            g = g.view(layer.shape[0], -1) if layer.kind else g[:, None]
            if k == 0:
                buf["U"], buf["V"] = (an_orthogonal(n) if layer.kind else torch.eye(n, dtype=g.dtype) for n in g.shape)
            else:
                buf["m"] = beta1 * buf["m"] + (1 - beta1) * g
                buf["v"] = beta2 * buf["v"] + (1 - beta2) * (buf["U"].T @ g @ buf["V"]) ** 2
                mean = buf["U"].T @ buf["m"] @ buf["V"] / (1 - beta1**k)
                move = buf["U"] @ (mean / ((buf["v"] / (1 - beta2**k)).sqrt() + 1e-8)) @ buf["V"].T
                w[layer.where] -= rate * move.reshape(-1)
            buf["L"], buf["R"] = beta2 * buf["L"] + g @ g.T, beta2 * buf["R"] + g.T @ g
            if layer.kind and k and k % every == 0:
                for side, average, dim in (("U", "L", 0), ("V", "R", 1)):
                    ahead = buf[average] @ buf[side]
                    order = (buf[side] * ahead).sum(0).argsort(descending=True)
                    buf[side], buf["v"] = torch.linalg.qr(ahead[:, order])[0], buf["v"].index_select(dim, order)
        path.append(w.clone())
    return torch.stack(path)


@pytest.mark.parametrize(("name", "every"), [("soap", 1), ("soap-10", 10)])
def test_soap_is_a_plain_soap_of_every_trial(name, every, monkeypatch):
    """Both are given the same first axes: those of a low-rank gradient are not unique."""
    monkeypatch.setattr(torch.linalg, "eigh", lambda a: (None, an_orthogonal(len(a)).flip(1)))
    slopes, w = drawn_slopes(25), torch.ones(2, 33, dtype=torch.float64)
    path = path_of(name, slopes, w)
    assert torch.equal(path[0], w)
    for trial in range(2):
        assert torch.allclose(path[:, trial], plain_soap(slopes, w, trial, every), rtol=1e-7, atol=1e-9)


def test_soap_without_axes_is_adam_from_its_second_step_to_the_bit(monkeypatch):
    monkeypatch.setattr(soap, "_first_axes", lambda *_: None)
    monkeypatch.setattr(soap, "_next_axes", lambda *_: None)
    slopes, w = drawn_slopes(20), torch.ones(2, 33, dtype=torch.float64)
    assert torch.equal(path_of("soap", slopes, w)[1:], path_of("adam", slopes[1:], w))


@pytest.mark.parametrize("name", ["soap", "soap-10", "adam"])
def test_soap_does_not_see_a_rotation_and_adam_does(name):
    """A quadratic loss of a square matrix, and the same with rows and columns rotated; tiny coordinates keep few digits."""
    u, v = an_orthogonal(6), an_orthogonal(6).T @ an_orthogonal(6).flip(1)
    layers = (flattening.Layer("square", slice(0, 36), (6, 6), "linear"),)
    aim, curves = drawn_slopes(2, 36, seed=1).unflatten(2, (6, 6))
    steep = curves.mT @ curves

    def turned(matrix):
        return (u @ matrix.view(-1, 6, 6) @ v).flatten(1)

    def slope(w):
        return ((w.view(-1, 6, 6) - aim) @ steep).flatten(1)

    def slope_turned(w):
        return turned(slope((u.T @ w.view(-1, 6, 6) @ v.T).flatten(1)))

    w = drawn_slopes(1, 36, seed=2)[0]
    path, turned_path = (path_of(name, [f] * 15, start, layers) for f, start in ((slope, w), (slope_turned, turned(w))))
    alike = [torch.allclose(turned(a), b, rtol=0, atol=1e-4) for a, b in zip(path, turned_path)]
    assert all(alike) if name != "adam" else not any(alike)
