"""The networks are those of the papers, to the parameter."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib.engine import batched, flattening, sequential
from lib.workloads import models
from lib.workloads.tasks import TASKS

COUNTS = {
    "simple-cnn": 62_346,
    "resnet-8": 75_050,
    "digits-cnn": 6_090,
    "mlp-64x2": 8_970,
    "resnet-20": 269_722,
    "lenet-5": 61_706,
}
IMAGES = {
    "resnet-8": (3, 32, 32),
    "resnet-20": (3, 32, 32),
    "simple-cnn": (1, 28, 28),
    "lenet-5": (1, 28, 28),
}


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_are_counted_and_initialised_by_variance_scaling(name):
    module = models.initialise(models.build(name), 7)
    assert models.parameter_count(module) == COUNTS[name]
    scales = {id(m.weight) for m in module.modules() if isinstance(m, torch.nn.BatchNorm2d)}
    for p in module.parameters():
        if p.dim() == 1:
            assert (p == (id(p) in scales)).all()
        else:
            std = p[0].numel() ** -0.5
            assert p.abs().max() <= 2 * std / models.TRUNCATED_STD
            assert p.std().item() == pytest.approx(std, rel=4 / np.sqrt(2 * p.numel()))
    w, again, another = (flattening.flatten(models.fresh(name, seed)) for seed in (7, 7, 8))
    assert torch.equal(w, again) and not torch.equal(w, another)


def test_pooling_before_the_relu_is_the_same_function():
    module, x = models.initialise(models.build("simple-cnn"), 0), torch.randn(4, 1, 28, 28)
    conv1, conv2, last = module[0], module[3], module[7]
    h = F.max_pool2d(F.relu(conv1(x)), 2)
    h = F.max_pool2d(F.relu(conv2(h)), 2)
    assert torch.allclose(last(h.flatten(1)), module(x), atol=1e-6)


def test_resnet_against_a_second_writing():
    module, x = models.initialise(models.build("resnet-8"), 1), torch.randn(3, 3, 32, 32)
    p = list(module.parameters())
    h = F.conv2d(x, *p[:2], padding=1)
    for n, stride in enumerate((1, 2, 2)):
        a = h.clamp(min=0)
        b = F.conv2d(a, *p[4 * n + 2 : 4 * n + 4], stride=stride, padding=1).clamp(min=0)
        b = F.conv2d(b, *p[4 * n + 4 : 4 * n + 6], padding=1)
        if stride == 2:
            half = sum(a[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)) / 4
            h = torch.cat([half, torch.zeros_like(half)], 1)
        h = b + h
    logits = F.linear(h.clamp(min=0).mean((2, 3)), *p[-2:])
    assert torch.allclose(logits, module(x), atol=1e-5)


def test_resnet_20_against_a_second_writing():
    module, x = models.initialise(models.build("resnet-20"), 1), torch.randn(6, 3, 32, 32)
    for norm in (m for m in module.modules() if isinstance(m, torch.nn.BatchNorm2d)):
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
    *p, weight, bias = module.parameters()
    groups = iter(zip(p[::3], p[1::3], p[2::3]))

    def normalised(h, stride=1):
        kernel, gain, shift = next(groups)
        h = F.conv2d(h, kernel, stride=stride, padding=1)
        h = h - h.mean((0, 2, 3), keepdim=True)
        h = h / (h.square().mean((0, 2, 3), keepdim=True) + 1e-5).sqrt()
        return h * gain[:, None, None] + shift[:, None, None]

    h = normalised(x).relu()
    for channels in [16] * 3 + [32] * 3 + [64] * 3:
        halved = channels > h.shape[1]
        inner = normalised(normalised(h, 1 + halved).relu())
        if halved:
            empty = torch.zeros(6, channels // 4, *inner.shape[2:])
            h = torch.cat([empty, h[:, :, ::2, ::2], empty], 1)
        h = (inner + h).relu()
    assert torch.allclose(F.linear(h.mean((2, 3)), weight, bias), module(x), atol=1e-4)
    assert torch.equal(module(x), module.eval()(x))  # no running averages


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("kind", [sequential.SequentialExecutor, batched.BatchedExecutor])
def test_executors_equal_plain_autograd(name, kind):
    if kind is batched.BatchedExecutor and not batched.fits(models.build(name)):
        pytest.skip("no rule for a layer of it")
    shape = IMAGES.get(name, (1, 8, 8))
    # in double precision, where rounding does not carry a unit across the kink of its ReLU
    x, y = torch.randn(6, *shape).double(), torch.arange(6) % 10
    nets = [models.initialise(models.build(name), s) for s in range(3)]
    w = torch.stack([flattening.flatten(n) for n in nets])
    executor = kind(models.build(name), torch.float64)
    losses, gradients, alive = executor.gradients(w, executor.inputs(x), y)
    logits = executor.logits(w, executor.inputs(x))
    for t, net in enumerate(nets):
        out = net.double()(x)
        F.cross_entropy(out, y).backward()
        for p in net.parameters():
            p.data = p.grad
        assert torch.allclose(gradients[t], flattening.flatten(net).float(), atol=1e-5) and alive[t]
        assert torch.allclose(logits[t], out.float(), atol=1e-5)
        assert losses[t] == pytest.approx(F.cross_entropy(out, y).item(), abs=1e-5)


@pytest.mark.parametrize("name", ["mlp-64x2", "digits-cnn"])
@pytest.mark.parametrize("parts", [1, 2, 6])
def test_shares_of_a_batch_have_the_gradients_of_their_own_examples(name, parts):
    x, y = torch.randn(72, 1, 8, 8), torch.arange(72) % 10
    nets = [models.initialise(models.build(name), seed) for seed in range(3)]
    w = torch.stack([flattening.flatten(net) for net in nets])
    alone = sequential.SequentialExecutor(models.build(name))
    for executor in (alone, batched.BatchedExecutor(models.build(name))):
        together = executor.gradients_by_worker(w, executor.inputs(x), y, parts)
        for p, rows in enumerate(torch.arange(72).chunk(parts)):
            expected = alone.gradients(w, alone.inputs(x[rows]), y[rows])
            for ours, theirs in zip(together, expected, strict=True):
                assert torch.allclose(ours[p], theirs, atol=1e-6)


def test_the_recurrent_network_against_a_second_writing():
    module = models.fresh("lstm-128", 3)
    assert models.parameter_count(module) == 65 * 64 + 4 * 128 * (64 + 128 + 2) + 65 * 129
    x = torch.randint(0, 65, (2, 7), generator=torch.Generator().manual_seed(0))
    hidden, state = torch.zeros(2, 128), torch.zeros(2, 128)
    p, expected = dict(module.named_parameters()), []
    for symbols in x.T:
        inner = p["symbol.weight"][symbols] @ p["memory.weight_ih_l0"].T
        inner = inner + hidden @ p["memory.weight_hh_l0"].T
        inner = inner + p["memory.bias_ih_l0"] + p["memory.bias_hh_l0"]
        let_in, keep, new, let_out = inner.chunk(4, 1)
        state = keep.sigmoid() * state + let_in.sigmoid() * new.tanh()
        hidden = let_out.sigmoid() * state.tanh()
        expected.append(hidden @ p["head.weight"].T + p["head.bias"])
    assert torch.allclose(module(x), torch.stack(expected, 1), atol=1e-6)


def test_the_recurrent_network_is_looped_with_its_own_gradients():
    module, cost = models.fresh("lstm-128", 3), TASKS["cross-entropy"]
    x, y = torch.randint(0, 65, (2, 4, 7), generator=torch.Generator().manual_seed(1))
    loss = F.cross_entropy(module(x).flatten(0, 1), y.flatten())
    slopes = torch.autograd.grad(loss, list(module.parameters()))
    expected = torch.cat([g.flatten() for g in slopes])
    loop = sequential.SequentialExecutor(models.build("lstm-128"), task=cost)
    losses, gradients, alive = loop.gradients(flattening.flatten(module)[None], x, y)
    assert alive.all() and torch.allclose(losses[0], loss.detach())
    assert torch.allclose(gradients[0], expected, atol=1e-7)
