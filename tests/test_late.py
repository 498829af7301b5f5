"""Late gradients and noisy quadratics: models against simulations, the engine against a plain loop."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from chapters.other_workers import claims, delays, late
from chapters.theory import noisy_quadratic as nqm
from lib.claims import NO, YES
from lib.engine import flattening, lockstep
from lib.measuring import one_search
from lib.measuring.rerun import Walk
from lib.methods import METHODS, variants
from lib.studies.search import Search
from lib.workloads import datasets, models
from tests.conftest import TORCHS, on_sides, recorded, same

SMALL = Search("digits-mlp", 16, trials=6, stop="budget", max_steps=60)
NAMES = "sgd", "momentum", "adam"


@pytest.mark.parametrize("name", NAMES)
def test_no_delay_is_synchronous_training_to_the_bit(name, monkeypatch):
    cell = dataclasses.replace(SMALL, algorithm=name)
    plain = one_search.train_search(cell)
    monkeypatch.setattr(one_search, "trained_by", lambda cell: variants.late(METHODS[cell.algorithm], 0))
    ring = one_search.train_search(cell, drop_dead=False)
    same(plain, ring)
    assert plain.best_error.min() < 0.5, "nothing was learned, and nothing compared"


def slow(cell, trial, delays):
    """One trial in a plain loop with PyTorch's own optimiser: every weight vector is kept and looked up."""
    start, data = one_search.start(cell, [trial]), datasets.load("digits")
    net = models.build("mlp-64x2")
    w = start.w[0].clone().requires_grad_()
    path = [w.detach().clone()]
    optimizer = TORCHS[cell.algorithm]([w], {name: value.item() for name, value in start.drawn.items()})
    order = lockstep.batches(len(data.train), cell.batch_size, cell.replicate)
    for step, (tau, pick) in enumerate(zip(delays, order)):
        old = path[max(0, step - tau)].clone().requires_grad_()
        loss = F.cross_entropy(flattening.outputs(net, old, data.train.x[pick]), data.train.y[pick])
        (w.grad,) = torch.autograd.grad(loss, old)
        optimizer.step()
        path.append(w.detach().clone())
    return torch.stack(path)


def quick(cell, steps):
    """The weights of all trials before and after every step, as the engine takes them: [steps + 1, T, P]."""
    how = one_search.trained_by(cell), one_search.executor(cell), one_search.start(cell)
    run = Walk(*how, datasets.load("digits").train, cell.batch_size, cell.replicate)
    path = [run.w.clone()]
    for _ in range(steps):
        run.update()
        path.append(run.w.clone())
    return torch.stack(path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delays", variants.DELAYS)
def test_the_engine_takes_the_steps_of_a_plain_loop(name, delays):
    cell, steps = Search("digits-mlp", 16, name, trials=4, replicate=5, staleness=3, delays=delays), 12
    drawn = [variants.delay(3, delays, 5, step) for step in range(steps)]
    assert len(set(drawn)) == (1 if delays == "fixed" else 4)
    late_path = quick(cell, steps)
    timely = quick(dataclasses.replace(cell, staleness=0, delays="fixed"), steps)
    for trial in range(cell.trials):
        expected = slow(cell, trial, drawn)
        if expected.abs().max() < 100:  # the others diverge: no paths
            torch.testing.assert_close(late_path[:, trial], expected, rtol=1e-4, atol=1e-5)
    assert (late_path[-1] - timely[-1]).abs().max() > 1e-3, "late gradients made no difference"


def test_a_method_with_gradients_of_its_own_cannot_be_late():
    with pytest.raises(ValueError, match="staleness: 1 is not allowed; it must be 0 for digits-mlp with kfac"):
        Search("digits-mlp", 64, "kfac", staleness=1)


def test_real_workers_push_late_gradients_that_train(tmp_path):
    job = delays.Job(steps=150)
    delays.DELAYS.run([job], tmp_path)
    table = delays.DELAYS.results([job], tmp_path)
    assert table["count"].sum() == 150
    # Each update makes the other worker's pending gradient one step later, whatever the pace: only the ends are left out.
    assert np.average(table.delay, weights=table["count"]) == pytest.approx(1, abs=0.05) and table.error.max() < 0.5


C1, C2 = 2000.0, 25.0
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


@pytest.mark.parametrize("s", [0, 7])
def test_the_stability_limit_is_that_of_the_characteristic_polynomial(s):
    for share, stable in ((0.999, True), (1.001, False)):
        polynomial = np.zeros(s + 2)  # z^(s+1) - z^s + x
        polynomial[:2] += (1, -1)
        polynomial[-1] += share * late.stability_limit(s)
        assert (np.abs(np.roots(polynomial)).max() < 1) == stable


def searched(algorithm, s, factor=None):
    """Three searches of c1/B + f c2, f the floor's growth unless given; all share their scatter."""
    points = [*itertools.product((3, 4, 5), SIZES)]
    rows = pd.DataFrame(points, columns=["replicate", "batch_size"])
    scatter = np.random.default_rng(0).lognormal(0, 0.1, len(points))
    steps = (C1 / rows.batch_size + (factor or late.floor(s)) * C2) * scatter
    rows = rows.assign(split=rows.replicate, steps=steps, last_step=steps, **{"steps@0.04": steps})
    return recorded(rows, algorithm=algorithm, staleness=s, delays="fixed")


def test_growth_and_workers_are_those_planted():
    curves = late.curves(pd.concat([searched("sgd", s) for s in (0, 1, 7)]))
    growth = late.growth(curves).set_index("staleness")
    turns = late.without_waiting(curves, "sgd").set_index("workers")
    for s in (1, 7):
        f, workers = late.floor(s), s + 1
        planted = [(C1 / b + f * C2) / (C1 / b + C2) for b in (4, 256)]
        assert growth.loc[s, ["small", "large"]].tolist() == pytest.approx(planted)
        assert growth.small_low[s] <= growth.small[s] * (1 + 1e-9)
        sizes = np.array([b for b in SIZES if b * workers <= SIZES[-1]])
        planted = (C1 / sizes + f * C2) / workers / (C1 / (sizes * workers) + C2)
        assert turns.ratio[workers] == pytest.approx(np.exp(np.log(planted).mean()), rel=0.15)


@pytest.mark.parametrize(("rival", "verdict"), [(60.0, YES), (4.0, NO)])
def test_the_claims_follow_what_is_planted(rival, verdict, monkeypatch):
    table = [searched("sgd", 0), searched("sgd", 7)]
    table += [searched(m, s, f) for m in ("momentum", "adam") for s, f in ((0, 1.0), (7, rival))]
    monkeypatch.setattr(late, "measured", lambda: pd.concat(table))
    slower, beside_sgd = on_sides("A1", claims.late_over_timely()), on_sides("A2", claims.beside_sgd())
    assert [g.verdict for g in slower.groups] == 3 * [YES] and [g.verdict for g in beside_sgd.groups] == 2 * [verdict]


# Steps at the best constant rate, dimensions 10^4, target 0.01, on a coarse grid of rates: hence the tolerance.
STEPS = 6.03e6, 1.51e6, 3.84e5, 9.69e4, 2.60e4, 1.04e4, 8.3e3, 8.0e3, 7.0e3  # at 4^n


def test_a_table_of_other_code_is_recovered():
    model, sizes = nqm.power_law(10_000), 4 ** np.arange(len(STEPS))
    steps, chosen = nqm.best(model, sizes, np.r_[np.geomspace(1e-3, 1.9, 50), 1.94, 1.98])
    assert steps == pytest.approx(STEPS, rel=0.13)
    rates = np.array([rate for rate, _, _ in chosen])
    assert rates[:4] == pytest.approx([0.0034, 0.013, 0.050, 0.22], rel=0.2) and rates[-1] > 1.9


def losses_of(model, steps, batch_size, rate, momentum=0.0, average=None):
    """Mean losses [steps] of simulated runs, at the average of weights where there is one."""
    random, shape = np.random.default_rng(0), (5000, len(model.curvature))
    w, v, u = np.ones(shape), np.zeros(shape), np.ones(shape)
    losses = []
    for _ in range(steps):
        g = model.curvature * w + random.normal(size=shape) * np.sqrt(model.noise / batch_size)
        v = momentum * v + g
        w = w - rate * v
        u = w if average is None else average * u + (1 - average) * w
        losses.append(0.5 * (model.curvature * u**2).sum(1).mean())
    return np.array(losses)


@pytest.mark.parametrize(("momentum", "average"), [(0.9, None), (0, 0.95)])
def test_the_moments_are_those_of_simulated_runs(momentum, average):
    """Runs cross the target where the recursion says."""
    model = nqm.power_law(20, noise=0.5, target=0.25)
    steps = nqm.steps(model, np.array([4]), 0.05, momentum, average)
    path = losses_of(model, int(steps[0]), 4, 0.05, momentum, average)
    assert path[-1] <= model.target * 1.02
    assert min(path[:-1], default=1) >= model.target * 0.98
