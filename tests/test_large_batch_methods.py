"""LARS, CLARS, LAMB, Adam with beta2 held, and averaged weights, each against a plain reference and in its limits."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import (
    batched,
    flattening,
    lockstep,
    sequential,
    training_state,
)
from lib.measuring import one_cell, sweeps
from lib.methods import METHODS, lars, method
from lib.records import results
from lib.studies.cells import Cell
from lib.studies.study import Study
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


# One example's gradient at once, or many; from 64 examples on small images are multiplied whole.
@pytest.mark.parametrize(("count", "together"), [(1, 2**18), (9, 1), (65, 2**18)])
@pytest.mark.parametrize("density", [None, 0.4])
@pytest.mark.parametrize("name", NETWORKS)
def test_norms_are_those_of_examples_taken_one_by_one(name, count, density, together, monkeypatch):
    monkeypatch.setattr(batched, "MAX_GRADIENT_ENTRIES", together)
    monkeypatch.setattr(sequential, "MAX_GRADIENT_ENTRIES", together)
    build, shape = NETWORKS[name]
    nets, w, mask = started(build, density=density)
    x, y = examples(shape, count)
    for kind in kinds_for(build()):
        executor = kind(build(), torch.float64, smoothing=0.1)
        losses, g, alive, norms = executor.gradients_with_norms(w, x, y, mask)
        plain = executor.gradients(w, x, y, mask)
        assert torch.allclose(losses, plain[0]) and torch.allclose(g, plain[1], atol=1e-6) and torch.equal(alive, plain[2])
        for t, net in enumerate(nets):
            own = None if mask is None else mask[t]
            assert norms[t].tolist() == pytest.approx([n.item() for n in mean_norms(net, x, y, own, 0.1)], rel=1e-5)


def doubled():
    """A layer that is used twice, so that an example's gradient is a sum of two products."""
    layer = nn.Linear(8, 8)
    return nn.Sequential(nn.Flatten(), nn.Linear(30, 8), nn.ReLU(), layer, nn.ReLU(), layer, nn.Linear(8, 10))


def gained():
    """Parameters that belong to no product."""
    return nn.Sequential(nn.Flatten(), nn.Linear(30, 8, bias=False), nn.LayerNorm(8), nn.Linear(8, 10))


@pytest.mark.parametrize("density", [None, 0.4])
@pytest.mark.parametrize("build", [doubled, gained])
def test_norms_of_other_networks_are_those_of_examples_taken_one_by_one(build, density, monkeypatch):
    monkeypatch.setattr(sequential, "MAX_GRADIENT_ENTRIES", 1)
    nets, w, mask = started(build, density=density)
    x, y = examples((2, 3, 5), 9)
    _, _, _, norms = sequential.SequentialExecutor(build(), torch.float64).gradients_with_norms(w, x, y, mask)
    for t, net in enumerate(nets):
        expected = [norm.item() for norm in mean_norms(net, x, y, None if mask is None else mask[t])]
        assert norms[t].tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_inputs_and_derivatives_by_outputs_make_up_the_gradient(name):
    build, shape = NETWORKS[name]
    _, w, _ = started(build)
    x, y = examples(shape, 9)
    for kind in kinds_for(build()):
        executor = kind(build(), torch.float64)
        product = lambda h, d: ((d.mT @ h).flatten(1), d.sum(1))  # noqa: E731
        _, g, _, found = executor.gradients_with_layer_stats(w, x, y, None, product)
        parts = [part for pair in found.values() for part in pair]
        assert torch.allclose(torch.cat(parts, 1).float(), g.float(), atol=1e-6)


def test_a_network_with_batch_normalisation_has_no_gradients_of_single_examples():
    loop = sequential.SequentialExecutor(models.build("resnet-20"))
    with pytest.raises(ValueError, match="model: batch normalisation is not allowed"):
        loop.gradients_with_norms(loop.w[None], torch.zeros(2, 3, 32, 32), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match="messages: .* None with clars, which takes gradients of its own"):
        Cell("digits-mlp", 32, "clars", messages={"workers": 2})


# --- Against slow references -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("network", "density"), [("mlp", None), ("digits-cnn", 0.4)])
@pytest.mark.parametrize("name", SLOW)
def test_steps_are_those_of_a_slow_reference_layer_by_layer(name, network, density):
    drawn, steps, count = drawn_for(name), 6, 12
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


# --- Limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [None, 0.4])
@pytest.mark.parametrize("network", NETWORKS)
def test_at_batch_size_one_clars_is_lars_and_at_a_larger_one_it_is_the_slower(network, density):
    drawn = drawn_for("lars")
    one, other = (path(name, drawn, 20, network, density, count=1)[0] for name in ("lars", "clars"))
    assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)
    _, w, _ = started(NETWORKS[network][0], density=density)
    one, other = (path(name, drawn, 1, network, density, count=30)[0][0] - w for name in ("lars", "clars"))
    module = NETWORKS[network][0]()
    for layer in flattening.layers(module):
        far, near = (move[:, layer.where].norm(dim=1) for move in (one, other))
        assert (near < 0.9 * far).all() if len(layer.shape) > 1 else torch.allclose(near, far)


def test_without_layers_to_scale_lars_is_momentum_and_lamb_is_adam(monkeypatch):
    for name, base, more in (("lars", "momentum", {}), ("clars", "momentum", {}), ("lamb", "adam", {"beta2": 0.999})):
        drawn = drawn_for(name)
        whole = drawn | {word: torch.full((3, 1), value, dtype=torch.float64) for word, value in more.items()}
        with monkeypatch.context() as patch:
            patch.setattr(lars, "ratio", lambda w, length: torch.ones_like(length))
            ours = path(name, drawn)[0]
        assert torch.allclose(ours, path(base, whole)[0], rtol=1e-9, atol=1e-11)
        assert not torch.allclose(path(name, drawn)[0], ours, rtol=1e-3)


@pytest.mark.parametrize("length", [0.0, 1.0])
def test_a_warm_up_of_no_length_is_none(length):
    drawn = drawn_for("lars")
    warmed = path("lars-warmup", drawn | {"warmup_steps": torch.full((3, 1), length).double()})[0]
    assert torch.equal(warmed, path("lars", drawn)[0])


def test_a_warm_up_raises_the_rate_in_equal_steps_and_ends():
    drawn = drawn_for("lars") | {"momentum": torch.zeros(3, 1).double(), "warmup_steps": torch.full((3, 1), 4.0).double()}
    layer = (flattening.layers(nn.Linear(5, 2, bias=False))[0],)
    for k, share in ((1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0), (5, 1.0), (900, 1.0)):
        w, g = torch.ones(3, 10).double(), torch.arange(10.0).double().expand(3, 10).clone()
        METHODS["lars-warmup"].step(w, g, METHODS["lars-warmup"].begin(w, layer), drawn, k, layer)
        moved = (w - 1).norm(dim=1)
        assert torch.allclose(moved, share * drawn["learning_rate"][:, 0] * 10**0.5)  # a share of the weights' norm


@pytest.mark.parametrize("name", ["lars", "clars", "lamb"])
def test_the_size_of_gradients_does_not_matter(name):
    """So of every layer but, in LARS and CLARS, of biases; epsilon is next to nothing."""
    how, drawn, moved = METHODS[name], drawn_for(name), []
    _, start, _ = started(models.digits_cnn)
    parameters = flattening.layers(models.digits_cnn())
    push = torch.randn(start.shape, generator=torch.Generator().manual_seed(0)).double()
    for size in (1.0, 1e3):
        w = start.clone()
        buffers = how.begin(w.clone(), parameters)
        if name == "clars":
            buffers["norms"].fill_(2.0 * size)
        how.step(w, size * push, buffers, drawn, 1, parameters)
        moved.append(w - start)
    for layer in parameters:
        one, other = (move[:, layer.where] for move in moved)
        assert torch.allclose(other, one * (1e3 if name != "lamb" and len(layer.shape) == 1 else 1), rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("name", ["lars", "clars", "lamb"])
def test_layers_without_weights_or_without_a_gradient_stay_finite(name):
    how, drawn, parameters = METHODS[name], drawn_for(name), flattening.layers(nn.Linear(5, 2))
    zero, some = torch.zeros(3, 12).double(), torch.ones(3, 12).double()
    for w, g, stays in ((zero, zero, True), (some, zero, True), (zero, some, False)):
        after = w.clone()
        how.step(after, g.clone(), how.begin(after, parameters), drawn, 1, parameters)
        assert after.isfinite().all() and torch.equal(after, w) == stays


def test_adams_arms_are_adam_at_their_beta2():
    for name, beta2 in (("adam-fixed", [0.999] * 3), ("adam-half-life", [2 ** (-12 / h) for h in DRAWN["half_life"]])):
        drawn = drawn_for(name)
        whole = drawn | {"beta2": torch.tensor(beta2, dtype=torch.float64)[:, None]}
        assert torch.allclose(path(name, drawn)[0], path("adam", whole)[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 64, 512])
def test_of_an_average_of_squares_half_is_left_after_the_half_life(batch_size):
    """Whatever the batch size: it is counted in examples.  The cell itself tells the method how many a step has."""
    cell = Cell("digits-mlp", batch_size, "adam-half-life", trials=2, space="learning_rate=0.01,beta1=0.9,half_life=1024")
    trials, how = one_cell.start(cell), method(cell.algorithm)
    drawn, w = trials.at(1), torch.ones(2, 3)
    assert set(cell.draw()) == {"learning_rate", "beta1", "half_life"}, "the batch size is not drawn, and is no column"
    buffers = how.begin(w, ())
    buffers["square"].fill_(1.0)
    for k in range(1024 // batch_size):
        how.step(w, torch.zeros(2, 3), buffers, drawn, k + 1, ())
    assert torch.allclose(buffers["square"], torch.tensor(0.5), rtol=1e-3)


def test_an_average_of_no_half_life_is_the_last_iterate():
    drawn = drawn_for("momentum-ema")
    weights, buffers = path("momentum-ema", drawn | {"averaging_half_life": torch.zeros(3, 1).double()})
    assert torch.equal(METHODS["momentum-ema"].evaluated(weights[-1], buffers), weights[-1])
    weights, buffers = path("momentum-ema", drawn)
    assert not torch.allclose(METHODS["momentum-ema"].evaluated(weights[-1], buffers), weights[-1])


# --- In the engine -----------------------------------------------------------------------------------------------------

NEW = ("lars", "lars-warmup", "clars", "lamb", "adam-fixed", "adam-half-life", "momentum-ema")


@pytest.mark.parametrize(("name", "workload"), [*((name, "digits-mlp") for name in NEW), ("clars", "digits-cnn")])
def test_removed_weights_stay_removed_and_all_others_move(name, workload):
    cell = Cell(workload, 32, name, 0.9, trials=4)
    trials, executor, data = one_cell.start(cell), one_cell.executor(cell), datasets.load("digits").train
    how, parameters, w = method(name), flattening.layers(executor.module), trials.w.clone()
    buffers = how.begin(w, parameters)
    for k in range(1, 9):
        batch = data.x[32 * k : 32 * k + 32], data.y[32 * k : 32 * k + 32]
        lockstep.update(how, executor, parameters, trials, w, buffers, k, batch)
    removed = trials.mask == 0
    for found in (w, lockstep.validated(how, w, buffers)):
        assert not found[removed].any() and (found != trials.w).any(1).all()


@pytest.mark.parametrize(("name", "dies"), [("momentum", True), ("adam-fixed", True), ("lars", False), ("momentum-ema", False)])
def test_of_normalised_and_averaged_methods_no_trial_is_dropped_as_dead(name, dies):
    """Of a network that is off: a proof that it stays off takes a drift, and that of its average is not bounded."""
    data, executor = datasets.load("digits"), sequential.SequentialExecutor(models.build("mlp-64x2"))
    w = flattening.flatten(models.fresh("mlp-64x2", 0))[None]
    views = flattening.unflatten(w, executor.module)
    views[2][0], views[3][0] = -views[2][0].abs(), -1.0  # the second hidden layer
    words = {"learning_rate": 0.01, "momentum": 0.5, "beta1": 0.5, "warmup_steps": 2, "half_life": 300,
             "averaging_half_life": 1, "batch_size": 64}  # fmt: skip
    drawn = {word: torch.full((1, 1), float(words[word])) for word in (*METHODS[name].space, "batch_size")}
    trials = training_state.Trials(w, torch.ones_like(w), drawn)
    outcome = lockstep.train(executor, trials, data.train, data.validation, method=METHODS[name], batch_size=64,
                             goals=(0.0,), max_steps=90)  # fmt: skip
    assert outcome.cause[0] == ("dead" if dies else "") and outcome.silent[0] == outcome.last_step[0]


def test_what_is_validated_is_the_average(monkeypatch):
    """A search at an average that never moves finds the error of the first weights at every check."""
    own = METHODS["momentum-ema"]
    still = dataclasses.replace(
        own, evaluated=lambda w, buffers: buffers["first"],
        begin=lambda w, layers: own.begin(w, layers) | {"first": w.clone()},
    )  # fmt: skip
    monkeypatch.setitem(METHODS, "momentum-ema", still)
    cell = Cell("digits-mlp", 64, "momentum-ema", trials=4, stop="budget", max_steps=40)
    found, executor, data = one_cell.train_cell(cell), one_cell.executor(cell), datasets.load("digits")
    for split, within in ((data.validation, found.best_within), (data.test, found.test_within)):
        wrong = (executor.logits(one_cell.start(cell).w, split.x).argmax(2) != split.y).float().mean(1)
        assert torch.allclose(torch.from_numpy(within[:, -1]).float(), wrong)


def test_searches_are_measured_recorded_and_read_back(tmp_path):
    cells = tuple(Cell("digits-mlp", 64, name, trials=2, hits=1, max_steps=5) for name in NEW)
    frame = sweeps.results(Study("large", "", cells), "full", folder=tmp_path)
    assert set(frame.algorithm) == {*NEW} and not results.missing(Study("large", "", cells), tmp_path)
    for name, rows in frame.groupby("algorithm"):
        assert all(rows[word].between(axis.low, axis.high).all() for word, axis in METHODS[name].space.items())
        assert (rows.batch_size == 64).all()
