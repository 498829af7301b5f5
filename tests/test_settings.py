"""Learning rates, search spaces and budgets: planted settings come out as planted."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from chapters.accuracy import fixed_budgets
from lib.methods import METHODS, spaces
from lib.methods.spaces import draw


def test_the_authors_trial_two():
    """The one known run of the authors' code."""
    points = draw("lee2021", "momentum", 3)
    assert points["learning_rate"][2] == pytest.approx(1e-3)
    assert points["momentum"][2] == pytest.approx(0.98222, abs=1e-5)


def test_the_first_sobol_points_by_hand():
    u = np.array([0.5, 0.75, 0.25, 0.375])  # van der Corput in base 2, Gray-code order
    assert np.allclose(draw("lee2021", "sgd", 4)["learning_rate"], 1e-4 * 1e4**u)


def test_more_trials_extend_fewer():
    few, many = (draw("lee2021", "nesterov", n, decay=True, replicate=3) for n in (32, 100))
    assert all(np.array_equal(values, many[name][:32]) for name, values in few.items())


@pytest.mark.parametrize(("algorithm", "space"), [("adam", "lee2021"), ("nesterov", "low-momentum")])
def test_points_stay_in_their_intervals_and_fill_them(algorithm, space):
    """Intervals shared with Lee et al. (2021) are the named space's, the others the method's own."""
    drawn, axes = draw(space, algorithm, 100, decay=True), METHODS[algorithm].space
    assert list(drawn) == [*axes, "decay_steps", "end_factor"]
    for name, values in drawn.items():
        shared = spaces.LEE2021.get(name) == axes.get(name, spaces.LEE2021.get(name))
        axis = spaces.SPACES[space].get(name, spaces.LEE2021[name]) if shared else axes[name]
        assert axis.low <= values.min() * (1 + 1e-12) and values.max() <= axis.high * (1 + 1e-12)
        places = axis.place(values)
        assert axis.low == axis.high or places.min() < 0.05 and places.max() > 0.95


def test_what_smoothing_saves_over_several_searches_is_the_mean_of_their_trends():
    """Each trend is its own, whatever its level."""
    planted = np.array([0.01, 0.02, 0.03])
    cases = itertools.product(range(3), range(4), (0.0, 0.1))
    rows = [(n, 2**j, s, n - (s > 0) * planted[n] * j) for n, j, s in cases]
    names = ["replicate", "batch_size", "label_smoothing", "test"]
    table = pd.DataFrame(rows, columns=names).assign(workload="w")
    saved = fixed_budgets.helped(table)["w", 0.1]
    ends = stats.t.interval(0.9, 2, planted.mean(), stats.sem(planted))
    assert saved.n == 3 and saved.value == pytest.approx(planted.mean())
    assert (saved.low, saved.high) == pytest.approx(ends)
    level = fixed_budgets.risen(table)["w"]
    assert (level.value, level.low, level.high, level.n) == pytest.approx((0, 0, 0, 3))


def test_a_trend_covers_a_planted_one_as_often_as_it_says():
    r, doublings, inside = np.random.default_rng(0), np.arange(11), []
    sizes = pd.Series(2**doublings)
    for _ in range(1000):
        errors = pd.Series(0.05 + 0.001 * doublings + 0.004 * r.normal(size=11))
        trend = fixed_budgets.trend(sizes, errors)
        inside.append(trend.low <= 0.001 <= trend.high)
    assert 0.87 < np.mean(inside) < 0.93
    assert np.isnan(fixed_budgets.trend(sizes[:2], sizes[:2]).value)
