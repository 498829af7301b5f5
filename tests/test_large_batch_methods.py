"""LARS, CLARS, LAMB, Adam with beta2 held, and averaged weights, each against a plain reference and in its limits."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import batched, flattening, sequential
from lib.measuring import one_cell
from lib.methods import EVERY, METHODS, method
from lib.studies.cells import Cell
from lib.workloads import datasets, models

torch.set_num_threads(1)


def pooled():
    """Padding, strides, pooling, and images that are not square, on which rows and columns would be found out if exchanged."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(3, 4, 2, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(8, 7), nn.ReLU(), nn.Linear(7, 10),
    )  # fmt: skip


NETWORKS = {
    "mlp": (lambda: models.mlp(30, 8, 6), (2, 3, 5)),
    "pooled": (pooled, (2, 4, 9)),
    "digits-cnn": (models.digits_cnn, (1, 8, 8)),
}


def started(build, trials=3, density=None):
    """Networks in double precision with biases, their weights, and a mask that spares some of both, or None."""
    random = torch.Generator().manual_seed(1)
    nets = [models.initialise(build(), seed).double() for seed in range(trials)]
    w = torch.stack([flattening.flatten(net) for net in nets])
    w += 0.1 * torch.randn(w.shape, generator=random)
    mask = None if density is None else (torch.rand(w.shape, generator=random) < density).double()
    w = w if mask is None else w * mask
    for net, row in zip(nets, w, strict=True):
        for p, own in zip(net.parameters(), flattening.unflatten(row, net), strict=True):
            p.data = own.clone()
    return nets, w, mask


def gradients(net, x, y, mask=None, smoothing=0.0):
    """Plain autograd's for these examples, as a list by parameter tensor; zero where the mask [P] is."""
    found = torch.autograd.grad(F.cross_entropy(net(x), y, label_smoothing=smoothing), [*net.parameters()])
    return [g if mask is None else g * m for g, m in zip(found, left(net, mask), strict=True)]


def left(net, mask):
    return [None] * len([*net.parameters()]) if mask is None else flattening.unflatten(mask, net)


def mean_norms(net, x, y, mask=None, smoothing=0.0):
    """Of examples' own gradients, taken one after another: a number a parameter tensor."""
    each = [gradients(net, x[i : i + 1], y[i : i + 1], mask, smoothing) for i in range(len(y))]
    return [sum(g.norm() for g in own) / len(y) for own in zip(*each, strict=True)]


def kinds_for(module):
    """The executors that can train it, the one for small networks first."""
    return [batched.BatchedExecutor] * batched.fits(module) + [sequential.SequentialExecutor]


def examples(shape, count):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(2)).double(), torch.arange(count) % 10


def trusted(p, length):
    size = p.norm()
    return size / length if size > 0 and length > 0 else 1.0


def slow_lars(params, g, lengths, state, own, k):
    rate = own["learning_rate"] * min(1, k / own.get("warmup_steps", 1))
    for n, p in enumerate(params):
        v = state.setdefault(n, torch.zeros_like(p))
        v.mul_(own["momentum"]).add_(g[n] * rate * (trusted(p, lengths[n]) if p.dim() > 1 else 1))
        p -= v


def slow_lamb(params, g, lengths, state, own, k):
    for n, p in enumerate(params):
        mean, square = state.setdefault(n, (torch.zeros_like(p), torch.zeros_like(p)))
        mean.mul_(own["beta1"]).add_((1 - own["beta1"]) * g[n])
        square.mul_(0.999).add_((1 - 0.999) * g[n] ** 2)
        u = mean / (1 - own["beta1"] ** k) / ((square / (1 - 0.999**k)).sqrt() + 1e-8)
        p -= own["learning_rate"] * trusted(p, u.norm()) * u


SLOW = {"lars": slow_lars, "lars-warmup": slow_lars, "clars": slow_lars, "lamb": slow_lamb}
DRAWN = {
    "learning_rate": [0.002, 0.01, 0.03], "momentum": [0.9, 0.5, 0.95], "beta1": [0.9, 0.7, 0.95], "beta2": [0.9, 0.99, 0.999],
    "warmup_steps": [3.5, 1.0, 40.0], "half_life": [100.0, 300.0, 5000.0], "averaging_half_life": [1.0, 4.0, 30.0],
    "batch_size": [12.0] * 3,
}  # fmt: skip


def drawn_for(name):
    """Of three trials, in double precision."""
    return {word: torch.tensor(DRAWN[word]).double()[:, None] for word in (*METHODS[name].space, "batch_size")}


def path(name, drawn, steps=12, network="digits-cnn", density=None, count=12):
    """The trials' weights after every step, in double precision but for gradients, and the buffers at last."""
    build, shape = NETWORKS[network]
    _, w, mask = started(build, density=density)
    how, executor = method(name), kinds_for(build())[0](build(), torch.float64)
    parameters = flattening.layers(executor.module)
    x, y = examples(shape, count * steps)
    buffers, found = how.begin(w.clone(), parameters), []
    for k, batch in enumerate(zip(x.split(count), y.split(count), strict=True), start=1):
        if how.gradient:
            g = how.gradient(executor, w, batch, mask, buffers)[1]
        else:
            g = executor.gradients(w, *batch, mask)[1]
        how.step(w, g.double(), buffers, drawn, k, parameters)
        found.append(w.clone())
    return torch.stack(found), buffers


@pytest.mark.parametrize("name", SLOW)
def test_steps_are_those_of_a_slow_reference_layer_by_layer(name):
    network, density, drawn, steps, count = "digits-cnn", 0.4, drawn_for(name), 6, 12
    build, shape = NETWORKS[network]
    ours, _ = path(name, drawn, steps, network, density, count)
    nets, _, mask = started(build, density=density)
    x, y = examples(shape, count * steps)
    for t, net in enumerate(nets):
        own, state = {word: values[t].item() for word, values in drawn.items()}, {}
        kept = None if mask is None else mask[t]
        for k, batch in enumerate(zip(x.split(count), y.split(count), strict=True), start=1):
            g = gradients(net, *batch, kept)
            lengths = mean_norms(net, *batch, kept) if name == "clars" else [one.norm() for one in g]
            with torch.no_grad():
                SLOW[name]([*net.parameters()], g, lengths, state, own, k)
            assert torch.allclose(ours[k - 1, t], flattening.flatten(net), rtol=1e-4, atol=1e-5)


def test_the_average_is_torchs():
    """`AveragedModel` starts from the first weights that it is shown: those before the first step."""
    how, base, drawn = METHODS["momentum-ema"], METHODS["momentum"], drawn_for("momentum-ema")
    nets, w, _ = started(models.digits_cnn)
    decays = [2 ** (-1 / half) for half in DRAWN["averaging_half_life"]]
    kind = torch.optim.swa_utils.get_ema_multi_avg_fn
    means = [torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=kind(d)) for net, d in zip(nets, decays, strict=True)]
    for mean, net in zip(means, nets, strict=True):
        mean.update_parameters(net)
    plain, buffers, theirs = w.clone(), how.begin(w.clone(), ()), base.begin(w.clone(), ())
    random = torch.Generator().manual_seed(0)
    for k in range(1, 21):
        g = torch.randn(w.shape, generator=random).double()
        how.step(w, g.clone(), buffers, drawn, k, ())
        base.step(plain, g, theirs, drawn, k, ())
        assert torch.equal(w, plain), "what is averaged does not train otherwise"
        for mean, net, row in zip(means, nets, plain, strict=True):
            for p, own in zip(net.parameters(), flattening.unflatten(row, net), strict=True):
                p.data = own.clone()
            mean.update_parameters(net)
        expected = torch.stack([flattening.flatten(mean.module) for mean in means])
        assert torch.allclose(how.evaluated(w, buffers), expected, rtol=1e-8, atol=1e-10)


def test_at_batch_size_one_clars_is_lars_and_at_a_larger_one_it_is_the_slower():
    network, density, drawn = "pooled", 0.4, drawn_for("lars")
    one, other = (path(name, drawn, 20, network, density, count=1)[0] for name in ("lars", "clars"))
    assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)
    _, w, _ = started(NETWORKS[network][0], density=density)
    one, other = (path(name, drawn, 1, network, density, count=30)[0][0] - w for name in ("lars", "clars"))
    module = NETWORKS[network][0]()
    for layer in flattening.layers(module):
        far, near = (move[:, layer.where].norm(dim=1) for move in (one, other))
        assert (near < 0.9 * far).all() if len(layer.shape) > 1 else torch.allclose(near, far)


def test_what_is_validated_is_the_average(monkeypatch):
    """A search at an average that never moves finds the error of the first weights at every check."""
    own = METHODS["momentum-ema"]
    still = dataclasses.replace(
        own, evaluated=lambda w, buffers: buffers["first"],
        begin=lambda w, layers: own.begin(w, layers) | {"first": w.clone()},
    )  # fmt: skip
    monkeypatch.setitem(EVERY, "momentum-ema", still)
    cell = Cell("digits-mlp", 64, "momentum-ema", trials=4, stop="budget", max_steps=40)
    found, executor, data = one_cell.train_cell(cell), one_cell.executor(cell), datasets.load("digits")
    for split, within in ((data.validation, found.best_within), (data.test, found.test_within)):
        wrong = (executor.logits(one_cell.start(cell).w, split.x).argmax(2) != split.y).float().mean(1)
        assert torch.allclose(torch.from_numpy(within[:, -1]).float(), wrong)
