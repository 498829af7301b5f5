"""LARS, CLARS, LAMB, Adam with beta2 held, and averaged weights, each against a plain reference and in its limits."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import batched, flattening, sequential
from lib.measuring import one_search
from lib.methods import EVERY, METHODS
from lib.studies.search import Search
from lib.workloads import datasets, models
from tests.test_preconditioning import column, in_place_of, trained

torch.set_num_threads(1)


def pooled():
    """Padding, strides, pooling, and images that are not square, which reveal whether rows and columns are exchanged."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(3, 4, 2, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(8, 7), nn.ReLU(), nn.Linear(7, 10),
    )  # fmt: skip


NETWORKS = {
    "pooled": (pooled, (2, 4, 9), sequential.SequentialExecutor),
    "digits-cnn": (models.digits_cnn, (1, 8, 8), batched.BatchedExecutor),
}
DRAWN = {
    "learning_rate": column(0.002, 0.01, 0.03), "momentum": column(0.9, 0.5, 0.95), "beta1": column(0.9, 0.7, 0.95),
    "warmup_steps": column(3.5, 1.0, 40.0), "averaging_half_life": column(1.0, 4.0, 30.0),
}  # fmt: skip


def started(build):
    """Three networks in double precision with biases, their weights, and a mask that spares some of both."""
    random = torch.Generator().manual_seed(1)
    nets = [models.initialise(build(), seed).double() for seed in range(3)]
    w = torch.stack([flattening.flatten(net) for net in nets])
    w += 0.1 * torch.randn(w.shape, generator=random)
    mask = (torch.rand(w.shape, generator=random) < 0.4).double()
    for net, row in zip(nets, w * mask, strict=True):
        in_place_of(net, row)
    return nets, w * mask, mask


def batches(shape, steps, count):
    """Standard normal examples of ten classes."""
    x = torch.randn(count * steps, *shape, generator=torch.Generator().manual_seed(2)).double()
    return list(zip(x.split(count), (torch.arange(count * steps) % 10).split(count), strict=True))


def path(name, steps, network="digits-cnn", count=12):
    """The trials' weights after every step, in double precision except for gradients."""
    build, shape, kind = NETWORKS[network]
    _, w, mask = started(build)
    return trained(name, kind(build(), torch.float64), w, mask, batches(shape, steps, count), DRAWN)[0]


def gradients(net, x, y, mask):
    """Plain autograd's, one per parameter tensor; zero where the mask [P] is."""
    slopes = torch.autograd.grad(F.cross_entropy(net(x), y), [*net.parameters()])
    return [g * m for g, m in zip(slopes, flattening.unflatten(mask, net), strict=True)]


def mean_norms(net, x, y, mask):
    """Those of examples' own gradients, taken one by one: a number per parameter tensor."""
    by_example = [gradients(net, x[i : i + 1], y[i : i + 1], mask) for i in range(len(y))]
    return [sum(g.norm() for g in slopes) / len(y) for slopes in zip(*by_example, strict=True)]


def trusted(p, length):
    size = p.norm()
    return size / length if size > 0 and length > 0 else 1.0


def slow_lars(params, g, lengths, state, drawn, k):
    for n, p in enumerate(params):
        v = state.setdefault(n, torch.zeros_like(p))
        rate = drawn["learning_rate"] * (trusted(p, lengths[n]) if p.dim() > 1 else 1)
        v.mul_(drawn["momentum"]).add_(g[n] * rate)
        p -= v


def slow_warmed_lars(params, g, lengths, state, drawn, k):
    rate = drawn["learning_rate"] * min(1, k / drawn["warmup_steps"])
    slow_lars(params, g, lengths, state, {**drawn, "learning_rate": rate}, k)


def slow_lamb(params, g, lengths, state, drawn, k):
    for n, p in enumerate(params):
        mean, square = state.setdefault(n, (torch.zeros_like(p), torch.zeros_like(p)))
        mean.mul_(drawn["beta1"]).add_((1 - drawn["beta1"]) * g[n])
        square.mul_(0.999).add_((1 - 0.999) * g[n] ** 2)
        u = mean / (1 - drawn["beta1"] ** k) / ((square / (1 - 0.999**k)).sqrt() + 1e-8)
        p -= drawn["learning_rate"] * trusted(p, u.norm()) * u


SLOW = {"lars": slow_lars, "lars-warmup": slow_warmed_lars, "clars": slow_lars, "lamb": slow_lamb}


@pytest.mark.parametrize("name", SLOW)
def test_steps_are_those_of_a_slow_reference_layer_by_layer(name):
    build, shape, _ = NETWORKS["digits-cnn"]
    ours = path(name, 6)
    nets, _, mask = started(build)
    for t, net in enumerate(nets):
        drawn, state = {word: values[t].item() for word, values in DRAWN.items()}, {}
        for k, batch in enumerate(batches(shape, 6, 12), start=1):
            g = gradients(net, *batch, mask[t])
            norms = [slope.norm() for slope in g]
            lengths = mean_norms(net, *batch, mask[t]) if name == "clars" else norms
            with torch.no_grad():
                SLOW[name]([*net.parameters()], g, lengths, state, drawn, k)
            assert torch.allclose(ours[k - 1, t], flattening.flatten(net), rtol=1e-4, atol=1e-5)


def test_the_average_is_torchs():
    """`AveragedModel` starts from the first weights that it is shown: those before the first step."""
    method, base = METHODS["momentum-ema"], METHODS["momentum"]
    nets, w, _ = started(models.digits_cnn)
    decays = [2 ** (-1 / half) for half in DRAWN["averaging_half_life"][:, 0].tolist()]
    kind = torch.optim.swa_utils.get_ema_multi_avg_fn
    means = [torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=kind(d)) for net, d in zip(nets, decays, strict=True)]
    plain, buffers, theirs = w.clone(), method.begin(w.clone(), ()), base.begin(w.clone(), ())
    random = torch.Generator().manual_seed(0)
    for k in range(21):
        if k:
            g = torch.randn(w.shape, generator=random).double()
            method.step(w, g.clone(), buffers, DRAWN, k, ())
            base.step(plain, g, theirs, DRAWN, k, ())
            assert torch.equal(w, plain), "what is averaged does not train otherwise"
        for mean, net, row in zip(means, nets, plain, strict=True):
            in_place_of(net, row)
            mean.update_parameters(net)
        expected = torch.stack([flattening.flatten(mean.module) for mean in means])
        assert torch.allclose(method.evaluated(w, buffers), expected, rtol=1e-8, atol=1e-10)


def test_at_batch_size_one_clars_is_lars_and_at_a_larger_one_it_is_the_slower():
    lars, clars = (path(name, 20, "pooled", count=1) for name in ("lars", "clars"))
    assert torch.allclose(lars, clars, rtol=1e-5, atol=1e-6)
    _, w, _ = started(pooled)
    lars, clars = (path(name, 1, "pooled", count=30)[0] - w for name in ("lars", "clars"))
    for layer in flattening.layers(pooled()):
        far, near = (move[:, layer.where].norm(dim=1) for move in (lars, clars))
        assert (near < 0.9 * far).all() if len(layer.shape) > 1 else torch.allclose(near, far)


def test_what_is_validated_is_the_average(monkeypatch):
    """A search with an average that never moves finds the error of the first weights at every check."""
    base = METHODS["momentum-ema"]
    still = dataclasses.replace(
        base, evaluated=lambda w, buffers: buffers["first"],
        begin=lambda w, layers: base.begin(w, layers) | {"first": w.clone()},
    )  # fmt: skip
    monkeypatch.setitem(EVERY, "momentum-ema", still)
    cell = Search("digits-mlp", 64, "momentum-ema", trials=4, stop="budget", max_steps=40)
    outcome, executor, data = one_search.train_search(cell), one_search.executor(cell), datasets.load("digits")
    for split, errors in ((data.validation, outcome.best_within), (data.test, outcome.test_within)):
        wrong = (executor.logits(one_search.start(cell).w, split.x).argmax(2) != split.y).float().mean(1)
        assert torch.allclose(torch.from_numpy(errors[:, -1]).float(), wrong)
