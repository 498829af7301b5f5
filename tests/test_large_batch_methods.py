"""LARS, CLARS, LAMB, Adam with beta2 held, and averaged weights, each against a plain reference and in its limits."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import batched, flattening, sequential
from lib.measuring import one_search
from lib.methods import EVERY, METHODS, method
from lib.studies.search import Search
from lib.workloads import datasets, models

torch.set_num_threads(1)


def pooled():
    """Padding, strides, pooling, and images that are not square, on which rows and columns would be found out if exchanged."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(3, 4, 2, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(8, 7), nn.ReLU(), nn.Linear(7, 10),
    )  # fmt: skip


NETWORKS = {
    "pooled": (pooled, (2, 4, 9), sequential.SequentialExecutor),
    "digits-cnn": (models.digits_cnn, (1, 8, 8), batched.BatchedExecutor),
}


def started(build, trials=3, density=0.4):
    """Networks in double precision with biases, their weights, and a mask that spares some of both."""
    random = torch.Generator().manual_seed(1)
    nets = [models.initialise(build(), seed).double() for seed in range(trials)]
    w = torch.stack([flattening.flatten(net) for net in nets])
    w += 0.1 * torch.randn(w.shape, generator=random)
    mask = (torch.rand(w.shape, generator=random) < density).double()
    for net, row in zip(nets, w * mask, strict=True):
        set_weights(net, row)
    return nets, w * mask, mask


def set_weights(net, row):
    for p, own in zip(net.parameters(), flattening.unflatten(row, net), strict=True):
        p.data = own.clone()


def gradients(net, x, y, mask):
    """Plain autograd's for these examples, as a list by parameter tensor; zero where the mask [P] is."""
    found = torch.autograd.grad(F.cross_entropy(net(x), y), [*net.parameters()])
    return [g * m for g, m in zip(found, flattening.unflatten(mask, net), strict=True)]


def mean_norms(net, x, y, mask):
    """Of examples' own gradients, taken one after another: a number a parameter tensor."""
    each = [gradients(net, x[i : i + 1], y[i : i + 1], mask) for i in range(len(y))]
    return [sum(g.norm() for g in own) / len(y) for own in zip(*each, strict=True)]


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
    "learning_rate": [0.002, 0.01, 0.03], "momentum": [0.9, 0.5, 0.95], "beta1": [0.9, 0.7, 0.95],
    "warmup_steps": [3.5, 1.0, 40.0], "averaging_half_life": [1.0, 4.0, 30.0],
}  # fmt: skip


def drawn_for(name):
    """Of three trials, in double precision."""
    return {word: torch.tensor(DRAWN[word]).double()[:, None] for word in METHODS[name].space}


def batches(shape, steps, count):
    """Standard normal examples of ten classes."""
    x = torch.randn(count * steps, *shape, generator=torch.Generator().manual_seed(2)).double()
    y = torch.arange(count * steps) % 10
    return list(zip(x.split(count), y.split(count), strict=True))


def path(name, drawn, steps, network="digits-cnn", count=12):
    """The trials' weights after every step, in double precision but for gradients."""
    build, shape, kind = NETWORKS[network]
    _, w, mask = started(build)
    how, executor = method(name), kind(build(), torch.float64)
    parameters = flattening.layers(executor.module)
    buffers, found = how.begin(w.clone(), parameters), []
    for k, batch in enumerate(batches(shape, steps, count), start=1):
        if how.gradient:
            g = how.gradient(executor, w, batch, mask, buffers)[1]
        else:
            g = executor.gradients(w, *batch, mask)[1]
        how.step(w, g.double(), buffers, drawn, k, parameters)
        found.append(w.clone())
    return torch.stack(found)


@pytest.mark.parametrize("name", SLOW)
def test_steps_are_those_of_a_slow_reference_layer_by_layer(name):
    build, shape, _ = NETWORKS["digits-cnn"]
    drawn = drawn_for(name)
    ours = path(name, drawn, 6)
    nets, _, mask = started(build)
    for t, net in enumerate(nets):
        own, state = {word: values[t].item() for word, values in drawn.items()}, {}
        for k, batch in enumerate(batches(shape, 6, 12), start=1):
            g = gradients(net, *batch, mask[t])
            lengths = mean_norms(net, *batch, mask[t]) if name == "clars" else [one.norm() for one in g]
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
            set_weights(net, row)
            mean.update_parameters(net)
        expected = torch.stack([flattening.flatten(mean.module) for mean in means])
        assert torch.allclose(how.evaluated(w, buffers), expected, rtol=1e-8, atol=1e-10)


def test_at_batch_size_one_clars_is_lars_and_at_a_larger_one_it_is_the_slower():
    drawn = drawn_for("lars")
    one, other = (path(name, drawn, 20, "pooled", count=1) for name in ("lars", "clars"))
    assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)
    _, w, _ = started(pooled)
    one, other = (path(name, drawn, 1, "pooled", count=30)[0] - w for name in ("lars", "clars"))
    for layer in flattening.layers(pooled()):
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
    cell = Search("digits-mlp", 64, "momentum-ema", trials=4, stop="budget", max_steps=40)
    found, executor, data = one_search.train_search(cell), one_search.executor(cell), datasets.load("digits")
    for split, within in ((data.validation, found.best_within), (data.test, found.test_within)):
        wrong = (executor.logits(one_search.start(cell).w, split.x).argmax(2) != split.y).float().mean(1)
        assert torch.allclose(torch.from_numpy(within[:, -1]).float(), wrong)
