"""The noisy quadratic model against its own simulation and a table of other code, and our analysis against it."""

import numpy as np
import pytest

from lib.analysis import noisy_quadratic as nqm

# Steps at the best constant rate, dimensions 10^4, target 0.01, on a coarse grid of rates: hence the tolerance.
TABLE = {
    1: 6.03e6,
    4: 1.51e6,
    16: 3.84e5,
    64: 9.69e4,
    256: 2.60e4,
    1024: 1.04e4,
    4096: 8.3e3,
    16384: 8.0e3,
    65536: 7.0e3,
}


def test_a_table_of_other_code_is_recovered():
    model, sizes = nqm.power_law(10_000), np.array(list(TABLE))
    found, chosen = nqm.best(model, sizes, np.r_[np.geomspace(1e-3, 1.9, 50), 1.94, 1.98])
    assert found == pytest.approx(np.array(list(TABLE.values())), rel=0.13)
    rates = np.array([rate for rate, _, _ in chosen])
    assert rates[:4] == pytest.approx([0.0034, 0.013, 0.050, 0.22], rel=0.2) and rates[-1] > 1.9


@pytest.mark.parametrize(("momentum", "average"), [(0.9, None), (0.0, 0.95)])
def test_the_moments_are_those_of_simulated_runs(momentum, average):
    """Mean loss over many simulated runs at the step at which the recursion crosses the target, and just before."""
    model, rate, b, random = nqm.power_law(20, noise=0.5, target=0.25), 0.05, 4, np.random.default_rng(0)
    crossing = int(nqm.steps(model, np.array([b]), rate, momentum, average)[0])
    w, v = np.ones((20_000, 20)), np.zeros((20_000, 20))
    u = w.copy()
    losses = []
    for _ in range(crossing):
        g = model.curvature * w + random.normal(size=w.shape) * np.sqrt(model.noise / b)
        v = momentum * v + g
        w = w - rate * v
        u = w if average is None else average * u + (1 - average) * w
        losses.append(0.5 * (model.curvature * u**2).sum(1).mean())
    assert losses[-1] <= model.target * 1.01 and min(losses[:-1]) >= model.target * 0.99


def test_without_noise_the_steps_do_not_depend_on_the_batch_and_are_those_of_the_slowest_dimension():
    model = nqm.Model(np.array([1.0]), np.array([1e-12]), target=0.5e-4)
    assert nqm.steps(model, np.array([1, 1024]), 0.1) == pytest.approx(np.ceil(np.log(1e-4) / np.log(0.9**2)))


def test_bad_models_are_refused():
    with pytest.raises(ValueError, match="noise: -1 is not allowed; it must be a positive"):
        nqm.power_law(10, -1)
    with pytest.raises(ValueError, match="target: 10 is not allowed; it must be below the loss at the start, 1.46"):
        nqm.power_law(10, target=10)


@pytest.mark.parametrize(("power", "batch_size", "average"), [(1.0, 16, None), (0.5, 256, 0.9)])
def test_a_preconditioned_model_is_preconditioned_gradients_in_simulated_runs(power, batch_size, average):
    """Runs with h^(-power) times the gradient, in the weights themselves, cross the target where the recursion says."""
    model, random = nqm.power_law(20, noise=0.5, target=0.25), np.random.default_rng(1)
    rate = 0.02 * batch_size**0.5
    crossing = int(nqm.steps(nqm.preconditioned(model, power), np.array([batch_size]), rate, average=average)[0])
    w = np.ones((20_000, 20))
    u, losses = w.copy(), []
    for _ in range(crossing):
        g = model.curvature * w + random.normal(size=w.shape) * np.sqrt(model.noise / batch_size)
        w = w - rate * model.curvature**-power * g
        u = w if average is None else average * u + (1 - average) * w
        losses.append(0.5 * (model.curvature * u**2).sum(1).mean())
    assert losses[-1] <= model.target * 1.01 and min(losses[:-1], default=1) >= model.target * 0.99


def test_with_the_curvature_known_small_batches_follow_the_closed_form_and_one_step_is_the_floor():
    """All directions shrink alike: the loss is (1 - a)^(2k) (start - floor) + floor, and floor = a sum(noise) / (2 - a) / 2B."""
    model = nqm.power_law(1000)
    own = nqm.preconditioned(model, 1.0)
    a = np.geomspace(1e-8, 1e-3, 20_001) * nqm.SMALL
    floor = a / (2 - a) * own.noise.sum() / nqm.SMALL / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        taken = np.log((model.target - floor) / (model.start - floor)) / (2 * np.log1p(-a))
    c1, c2 = nqm.constants(own)
    assert c1 == pytest.approx(np.nanmin(taken[floor < model.target]) * nqm.SMALL, rel=0.01) and c2 == 1


def test_predictions_are_the_limits_of_their_kinds():
    found = nqm.predictions(nqm.power_law(200)).set_index("algorithm")
    assert list(found.index) == list(nqm.KINDS) and found.over_critical["sgd"] == 1
    assert found.c2["momentum"] < found.c2["sgd"] / 3 and found.over_c1["momentum"] == pytest.approx(1, rel=0.02)
    assert found.c2["momentum-ema"] == found.c2["momentum"] and found.c1["momentum-ema"] < found.c1["momentum"] / 2
    assert found.c2["kfac"] == 1 and found.c2["kfac"] < found.c2["adam"] < found.c2["momentum"]
    with pytest.raises(ValueError, match="curvature"):
        nqm.constants(nqm.Model(np.array([2.0]), np.array([1.0])))
