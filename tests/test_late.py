"""Late gradients: the engine against a plain loop, no delay against synchronous training, and what cells allow."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from chapters.late_workers import delays
from lib.engine import flattening, lockstep
from lib.measuring import one_cell
from lib.methods import METHODS, late
from lib.studies.cells import Cell
from lib.workloads import datasets, models

torch.set_num_threads(1)
SMALL = Cell("digits-mlp", 16, trials=6, stop="budget", max_steps=60)
TORCHS = {
    "sgd": lambda w, drawn: torch.optim.SGD([w], lr=drawn["learning_rate"]),
    "momentum": lambda w, drawn: torch.optim.SGD([w], lr=drawn["learning_rate"], momentum=drawn["momentum"]),
    "adam": lambda w, drawn: torch.optim.Adam([w], lr=drawn["learning_rate"], betas=(drawn["beta1"], drawn["beta2"])),
}


def same(a, b):
    for field, value in vars(a).items():
        if field != "wall_s":
            np.testing.assert_array_equal(getattr(b, field), value, err_msg=field)


@pytest.mark.parametrize("name", TORCHS)
def test_no_delay_is_synchronous_training_to_the_bit(name, monkeypatch):
    cell = dataclasses.replace(SMALL, algorithm=name)
    plain = one_cell.train_cell(cell)
    monkeypatch.setattr(one_cell, "trained_by", lambda cell: late.late(METHODS[cell.algorithm], 0))
    ring = one_cell.train_cell(cell, drop_dead=False)
    same(plain, ring)
    assert plain.best_error.min() < 0.5, "nothing was learned, and nothing compared"


def slow(cell, trial, delays):
    """One trial in a plain loop with PyTorch's own optimiser: every weight vector is kept, and looked up."""
    start, data = one_cell.start(cell, [trial]), datasets.load("digits")
    net = models.build("mlp-64x2")
    w = start.w[0].clone().requires_grad_()
    path = [w.detach().clone()]
    optimizer = TORCHS[cell.algorithm](w, {name: value.item() for name, value in start.drawn.items()})
    order = lockstep.batches(len(data.train.y), cell.batch_size, cell.replicate)
    names = [(name, p.shape) for name, p in net.named_parameters()]
    for step, tau in enumerate(delays):
        pick = next(order)
        old = path[max(0, step - tau)].clone().requires_grad_()
        parts = old.split([shape.numel() for _, shape in names])
        own = {name: part.view(shape) for (name, shape), part in zip(names, parts, strict=True)}
        loss = F.cross_entropy(torch.func.functional_call(net, own, data.train.x[pick].float()), data.train.y[pick])
        (w.grad,) = torch.autograd.grad(loss, old)
        optimizer.step()
        path.append(w.detach().clone())
    return torch.stack(path)


def quick(cell, steps):
    """The weights of all trials before and after every step, as the engine takes them: [steps + 1, T, P]."""
    trials, data, executor = one_cell.start(cell), datasets.load("digits").train, one_cell.executor(cell)
    how, parameters = one_cell.trained_by(cell), flattening.layers(executor.module)
    x, w = executor.inputs(data.x), trials.w.clone()
    buffers, order = how.begin(w.clone(), parameters), lockstep.batches(len(data.y), cell.batch_size, cell.replicate)
    path = [w.clone()]
    for step in range(1, steps + 1):
        pick = next(order)
        lockstep.update(how, executor, parameters, trials, w, buffers, step, (x[pick], data.y[pick]))
        path.append(w.clone())
    return torch.stack(path)


@pytest.mark.parametrize("name", TORCHS)
@pytest.mark.parametrize("delays", late.DELAYS)
def test_the_engine_takes_the_steps_of_a_plain_loop(name, delays):
    cell, steps = Cell("digits-mlp", 16, name, trials=4, replicate=5, staleness=3, delays=delays), 12
    drawn = [late.delay(3, delays, 5, step) for step in range(steps)]
    assert len(set(drawn)) == (1 if delays == "fixed" else 4)
    found = quick(cell, steps)
    timely = quick(dataclasses.replace(cell, staleness=0, delays="fixed"), steps)
    for trial in range(cell.trials):
        expected = slow(cell, trial, drawn)
        if expected.abs().max() < 100:  # no other is a path: it diverges
            torch.testing.assert_close(found[:, trial], expected, rtol=1e-4, atol=1e-5)
    assert (found[-1] - timely[-1]).abs().max() > 1e-3, "late gradients made no difference"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"delays": "uniform"}, "delays: 'uniform' is not allowed; it must be 'fixed' with staleness 0"),
        ({"staleness": 1, "algorithm": "kfac"}, "staleness: 1 is not allowed; it must be 0 with kfac"),
    ],
)
def test_cells_refuse_what_makes_no_sense(fields, message):
    with pytest.raises(ValueError, match=message):
        Cell("digits-mlp", 64, **fields)


def test_real_workers_push_late_gradients_that_train(tmp_path):
    job = delays.Job(workers=2, steps=150)
    delays.run([job], tmp_path)
    (row,) = delays.summary(delays.results([job], tmp_path)).itertuples()
    assert row.gradients == 150 and delays.missing([job], tmp_path) == []
    # Each update makes the gradients under way of the other worker later by one, whatever the pace: only the ends are left out.
    assert row.mean == pytest.approx(1, abs=0.05) and row.error < 0.5
