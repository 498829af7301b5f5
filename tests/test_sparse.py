"""The sparse executor computes what plain autograd does, of the weights that are left."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.engine import flattening, sparse_stacked, stacked
from lib.measuring import one_cell
from lib.studies.cells import Cell
from lib.workloads import models

pytestmark = pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="PyTorch without MKL")


def two_convolutions():
    """Padding, strides, and images that are not square, on which rows and columns would be found out if exchanged."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 2), nn.ReLU(),
        nn.Flatten(), nn.Linear(24, 7), nn.ReLU(), nn.Linear(7, 10),
    )  # fmt: skip


NETWORKS = {
    "mlp": (lambda: models.mlp(15, 8, 6), (15,)),
    "linear": (lambda: models.mlp(15), (15,)),
    "two convolutions": (two_convolutions, (2, 5, 7)),
    "digits-cnn": (models.digits_cnn, (1, 8, 8)),
}


def pruned(build, trials=4, density=0.3):
    """Networks in double precision, their weights and a mask that spares some biases, too."""
    random = torch.Generator().manual_seed(1)
    nets = [models.initialise(build(), seed).double() for seed in range(trials)]
    w = torch.stack([flattening.flatten(net) for net in nets])
    mask = (torch.rand(w.shape, generator=random) < density).double()
    return nets, w * mask, mask


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("together", [1, 2**21])  # one trial a group, or all
@pytest.mark.parametrize("density", [0.3, 0.06])  # with few units that matter, too
def test_sparse_gradients_are_those_of_plain_autograd(name, smoothing, together, density, monkeypatch):
    monkeypatch.setattr(sparse_stacked, "TOGETHER", together)
    build, shape = NETWORKS[name]
    nets, w, mask = pruned(build, density=density)
    x, y = torch.randn(9, *shape, generator=torch.Generator().manual_seed(2)).double(), torch.arange(9)
    losses, gradients, alive = sparse_stacked.Sparse(build(), torch.float64, smoothing=smoothing).gradients(w, x, y, mask)
    for t, net in enumerate(nets):
        names = dict(zip((n for n, _ in net.named_parameters()), flattening.unflatten(w[t], net), strict=True))
        own = {n: p.clone().requires_grad_() for n, p in names.items()}
        seen = []
        net[-1].register_forward_pre_hook(lambda _, inputs, seen=seen: seen.append(inputs[0]))
        loss = F.cross_entropy(torch.func.functional_call(net, own, x), y, label_smoothing=smoothing)
        loss.backward()
        for p, found in zip(net.parameters(), own.values(), strict=True):
            p.data = found.grad
        assert torch.allclose(gradients[t], (flattening.flatten(net) * mask[t]).float(), atol=1e-6)
        heard = flattening.unflatten(mask[t], net)[-2].any(0) if len(own) > 2 else ...
        assert losses[t] == pytest.approx(loss.item(), abs=1e-6) and alive[t] == seen[0][:, heard].any()


@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "linear"])
def test_the_units_that_matter_are_those_that_pass_something_on(name):
    """With positive inputs and weights and no bias, a unit is fed if it is on, and heard if it has a derivative."""
    build, shape = NETWORKS[name]
    nets, w, mask = pruned(build, density=0.06)
    mask[1:] *= torch.cat([torch.full((p.numel(),), float(p.dim() > 1)) for p in nets[0].parameters()])  # biases: the first's
    found = sparse_stacked.live(sparse_stacked.wires(build(), shape), mask)
    for t, net in enumerate(nets):
        for p, kept in zip(net.parameters(), flattening.unflatten(mask[t], net), strict=True):
            p.data = kept.clone()
        h, seen = torch.ones(1, *shape).double(), []
        for layer in net:
            h = layer(h)
            if isinstance(layer, nn.ReLU):
                h.retain_grad()
                seen.append(h)
        h.sum().backward()
        assert found[0].all() and found[-1].all()
        for unit, ours in zip(seen, found[1:-1], strict=True):
            expected = (unit.detach() > 0) & (unit.grad > 0)
            assert torch.equal(ours[t], expected.flatten()) and not expected.all()
    assert all(each.any() for each in found)


def test_a_trial_that_leaves_changes_no_bit_of_the_others():
    _, w, mask = pruned(models.digits_cnn, trials=12, density=0.05)
    w, mask = w.float(), mask.float()
    x, y = torch.randn(256, 1, 8, 8), torch.arange(256) % 10
    executor, rows = sparse_stacked.Sparse(models.digits_cnn()), torch.arange(12) % 5 != 3
    _, whole, _ = executor.gradients(w, x, y, mask)
    _, rest, _ = executor.gradients(w[rows], x, y, mask[rows])
    assert torch.equal(whole[rows], rest) and whole.any()


def test_a_sparse_network_with_every_unit_off_is_not_alive():
    _, w, mask = pruned(models.digits_cnn, trials=2)
    mask[0, 160 + 4608 : 160 + 4608 + 32] = 1  # the biases before the last layer
    w[0, 160 + 4608 : 160 + 4608 + 32] = -100
    _, gradients, alive = sparse_stacked.Sparse(models.digits_cnn(), torch.float64).gradients(w, torch.randn(5, 1, 8, 8).double(),
                                                                                      torch.arange(5), mask)  # fmt: skip
    assert alive.tolist() == [False, True] and not gradients[0, :-10].any()


def test_what_a_sparse_executor_cannot_run_is_refused():
    for model, dtype in (("resnet-8", torch.float32), ("simple-cnn", torch.float32), ("digits-cnn", torch.bfloat16)):
        with pytest.raises(ValueError, match="cannot be stacked|has no sparse executor; use Stack"):
            sparse_stacked.Sparse(models.build(model), dtype)


def test_trials_that_meet_the_goal_leave(monkeypatch):
    cell = Cell("digits-cnn", 64, sparsity=0.5, trials=16, hits=3, max_steps=300)
    dense = one_cell.train_cell(cell)
    monkeypatch.setitem(one_cell.SPARSE_FROM, "sparsity", 0.5)
    built = []
    start = sparse_stacked.Layer.__init__
    monkeypatch.setattr(sparse_stacked.Layer, "__init__", lambda self, *a: built.append(1) or start(self, *a))
    found = one_cell.train_cell(cell)
    assert np.array_equal(found.status, dense.status) and "complete" in found.status
    assert np.allclose(found.first, dense.first, rtol=0.12, equal_nan=True)  # two checks: rounding parts the paths
    left = len(set(found.last_step[found.status != "stopped"]))  # steps at which somebody left
    assert len(built) <= 3 * (1 + left), "matrices are built anew only when trials leave"


def test_very_sparse_cells_are_trained_so_and_measure_the_same(monkeypatch):
    cell = Cell("digits-cnn", 64, sparsity=0.95, trials=8, stop="budget", max_steps=64)
    assert isinstance(one_cell.executor(cell), sparse_stacked.Sparse)
    found = one_cell.train_cell(cell)
    monkeypatch.setitem(one_cell.SPARSE_FROM, "sparsity", 1.0)
    assert type(one_cell.executor(cell)) is stacked.Stack
    assert np.array_equal(found.best_error, one_cell.train_cell(cell).best_error) and found.best_error.min() < 0.7
