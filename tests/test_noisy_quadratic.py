"""The noisy quadratic model against its own simulation and a table of other code, and our analysis against it."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis import followed_paths, scaling
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


@pytest.mark.parametrize(("momentum", "average"), [(0.0, None), (0.9, None), (0.0, 0.95)])
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


def test_rates_beyond_stability_never_arrive():
    assert np.isinf(nqm.steps(nqm.power_law(10), np.array([1e6]), 2.1)).all()


def test_noise_moves_the_whole_curve_along_the_batch_axis():
    """c -> s c is B -> B / s: the model has no other scale for the batch size."""
    rates, sizes = np.geomspace(1e-3, 1.9, 25), 2.0 ** np.arange(0, 12, 2)
    plain, _ = nqm.best(nqm.power_law(100), sizes, rates)
    noisy, _ = nqm.best(nqm.power_law(100, noise=4), 4 * sizes, rates)
    assert plain == pytest.approx(noisy)


def test_momentum_gains_nothing_at_small_batches_and_much_at_large():
    model, sizes = nqm.power_law(1000), np.array([1, 65536])
    rates = np.geomspace(1e-5, 1.999, 80)
    plain, _ = nqm.best(model, sizes, rates)
    heavy, chosen = nqm.best(model, sizes, rates, (0.0, 0.9, 0.99))
    assert heavy[0] == pytest.approx(plain[0], rel=0.1) and heavy[1] < plain[1] / 3
    assert chosen[1][0] > 2  # with momentum, larger rates than any that SGD bears are stable, and tried


def test_the_gradient_along_a_path_is_that_of_simulated_runs():
    model, rate, b, random = nqm.power_law(20, noise=0.5), 0.3, 4, np.random.default_rng(0)
    points = nqm.path(model, b, rate, 40, 5)
    w, squares = np.ones((20_000, 20)), {}
    for step in range(1, 41):
        w = w - rate * (model.curvature * w + random.normal(size=w.shape) * np.sqrt(model.noise / b))
        squares[step] = ((model.curvature * w) ** 2).sum(1).mean()
    assert points.square.tolist() == pytest.approx([squares[step] for step in points.step], rel=0.02)


def test_below_the_bend_the_noise_scale_predicts_it_to_a_factor():
    model, sizes, rates = nqm.power_law(1000), 4.0 ** np.arange(5), np.geomspace(1e-3, 1.99, 60)
    whole = nqm.curve(model, 4.0 ** np.arange(9), rates)
    bend = scaling.fit_hyperbola(whole.batch_size, whole.steps).critical
    paths = [nqm.path(model, r.batch_size, r.rate, r.steps) for r in nqm.curve(model, sizes, rates).itertuples()]
    found = followed_paths.noise_scales(pd.concat(paths))
    assert (found[["noise_scale", "apart"]] / bend).stack().between(1 / 2.6, 2.6).all()


def test_a_search_of_the_model_is_a_table_like_any_other():
    table = nqm.searched(nqm.power_law(50, target=0.1), [4, 64], 20, 0)
    found = scaling.steps_to_result(table, 0.1)
    assert found.batch_size.tolist() == [4, 64] and (found.trials == 20).all() and found.steps.is_monotonic_decreasing


def test_bad_models_are_refused():
    with pytest.raises(ValueError, match="noise: -1 is not allowed; it must be positive"):
        nqm.power_law(10, -1)
    with pytest.raises(ValueError, match="target: 10 is not allowed; it must be below the loss at the start, 1.46"):
        nqm.power_law(10, target=10)
