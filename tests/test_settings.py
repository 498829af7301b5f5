"""Learning rates, search spaces and budgets: planted settings come out as planted."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from chapters.accuracy import fixed_budgets
from chapters.metaparameters import claims as rules_of
from chapters.metaparameters import rate_rules
from chapters.which_method import best_settings
from lib.analysis.rate_rules import built_up, growth
from lib.methods import METHODS, spaces
from lib.methods.spaces import draw


def planted(power):
    """Five trials a batch size, the first the winner, whose effective learning rate grows as this power."""
    rows = []
    for b in 2 ** np.arange(0, 11, 2):
        steps = np.array([100, 110, 150, 299, 500])
        rate = 1e-3 * float(b) ** power * np.array([1, 1.1, 0.9, 1.05, 40])
        rows.append(pd.DataFrame({"workload": "digits-mlp", "batch_size": b, "trial": range(5), "steps": steps,
                                  "learning_rate": rate, "momentum": 0.5, "algorithm": "momentum", "sparsity": 0.0}))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def searched(powers, momentum=0.9):
    """`planted`, a search for every power."""
    parts = [planted(power).assign(replicate=n, split=n, momentum=momentum) for n, power in enumerate(powers)]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_planted_exponent_is_recovered_and_far_trials_do_not_count(power):
    """The fifth trial took five times the winner's steps, at forty times the rate."""
    (found,) = growth(searched([power], momentum=0.5)).itertuples()
    assert found.growth == pytest.approx(2**power) and found.growth_low <= 2**power <= found.growth_high
    assert (found.sizes, found.searches, found.effect.n, found.effect.freedom) == (6, 1, 1, 22)


def test_the_growth_over_searches_is_the_mean_of_their_slopes_with_students_interval():
    powers = np.array([0.4, 0.6, 0.7, 0.9])
    (found,) = growth(searched(powers, momentum=0.5)).itertuples()
    low, high = stats.t.interval(0.9, 3, powers.mean(), stats.sem(powers))
    assert (found.growth_low, found.growth, found.growth_high) == pytest.approx((2**low, 2 ** powers.mean(), 2**high))
    assert found.searches == found.effect.n == 4


def test_effective_rates_of_trials_too_short_for_their_momentum_do_not_count():
    """From batch size 16 on, momentum takes a tenth of the steps or more to build up, and the effective rate explodes."""
    trials = searched([0.5], momentum=0.5)
    short = trials.batch_size >= 256
    spoilt = trials.assign(momentum=trials.momentum.mask(short, 0.9999))
    (found,) = growth(spoilt).itertuples()
    assert found.growth == pytest.approx(2**0.5) and found.most == 64
    assert set(rate_rules.best_rates(spoilt).batch_size) == {1, 4, 16, 64}
    assert built_up(trials.drop(columns="momentum")).equals(trials.drop(columns="momentum"))  # none to build up


def test_slopes_are_judged_by_network_and_a_crowded_edge_is_noted():
    """On the paper's network the rate hardly grows, near the edge of the space; on another as the root, in three searches."""
    slow = searched([1.0], momentum=0.0).assign(workload="mnist-fc-128x3", learning_rate=lambda t: (t.batch_size / 1024) ** 0.2)
    trials = pd.concat([slow, searched([0.5] * 3, momentum=0.0)]).assign(algorithm="sgd", pruning="connection-sensitivity")
    one, root = rules_of.best_rate(trials)
    assert (one.name, one.own, one.n) == ("FC-128×3 on MNIST, SGD", True, 1) and one.effect == pytest.approx(2**0.2)
    assert rules_of.ALONE in one.note and "67\u00a0% at the upper edge of learning rate" in one.note
    assert (root.own, root.n, root.note) == (False, 3, "") and root.effect == pytest.approx(2**0.5)
    off, near = rules_of.off_the_rules(trials)
    assert off.effect == pytest.approx(2**0.3) and near.effect == pytest.approx(1) and near.high < rules_of.PER_DOUBLING < off.low


def test_the_authors_trial_two():
    """The run of the authors' code that is known: learning rate 0.001, momentum 0.98222, trial 2."""
    points = draw("lee2021", "momentum", 3)
    assert points["learning_rate"][2] == pytest.approx(1e-3) and points["momentum"][2] == pytest.approx(
        0.98222, abs=1e-5
    )


def test_the_first_sobol_points_by_hand():
    u = np.array([0.5, 0.75, 0.25, 0.375])  # van der Corput in base 2, Gray-code order, after its first point
    assert np.allclose(draw("lee2021", "sgd", 4)["learning_rate"], 1e-4 * 1e4**u)


def test_more_trials_extend_fewer():
    replicate = 3
    few, many = (draw("lee2021", "nesterov", n, decay=True, replicate=replicate) for n in (32, 100))
    for name, values in few.items():
        assert np.array_equal(values, many[name][:32])


@pytest.mark.parametrize(("algorithm", "space"), [("adam", "lee2021"), ("nesterov", "low-momentum")])
def test_points_stay_in_their_intervals_and_fill_them(algorithm, space):
    """Those that a method shares with Lee et al. (2021) are the named space's, the others its own."""
    drawn, own = draw(space, algorithm, 100, decay=True), METHODS[algorithm].space
    assert list(drawn) == [*own, "decay_steps", "end_factor"]
    for name, values in drawn.items():
        shared = spaces.LEE2021.get(name) == own.get(name, spaces.LEE2021.get(name))
        axis = spaces.SPACES[space].get(name, spaces.LEE2021[name]) if shared else own[name]
        assert axis.low <= values.min() * (1 + 1e-12) and values.max() <= axis.high * (1 + 1e-12)
        places = axis.place(values)
        assert axis.low == axis.high or places.min() < 0.05 and places.max() > 0.95


SIZES = (4, 16, 64, 256)


def planted_searches(algorithm, power, searches=5, sizes=SIZES, level=0.01, correlation=0.0, hits=60, trials=60):
    """Searches whose trials are the faster, the nearer they are to a rate level * B^power; damping goes with it as B^-1."""
    cells = []
    for b, search in itertools.product(sizes, range(1, searches + 1)):
        random = np.random.default_rng([b, search])  # the same luck, whatever the method
        off, other = random.standard_normal((2, trials))
        near = np.argsort(np.abs(off))
        steps = np.full(trials, np.nan)
        steps[near[:hits]] = 10 + np.arange(hits)
        damping = correlation * off + (1 - correlation**2) ** 0.5 * other
        cells.append(pd.DataFrame({
            "workload": "digits-mlp", "algorithm": algorithm, "pruning": "connection-sensitivity", "sparsity": 0.0,
            "batch_size": b, "trials": trials, "replicate": search, "split": search, "goal": 0.04, "trial": range(trials),
            "last_step": 99.0, "learning_rate": level * b**power * np.exp(off), "damping": np.exp(damping) / b,
            "steps": steps, "steps@0.04": steps, "steps@0.1": steps,
        }))  # fmt: skip
    return pd.concat(cells, ignore_index=True)


def test_a_ratio_of_rates_is_that_planted_within_searches_and_grows_as_planted():
    trials = pd.concat([planted_searches("muon", 1.0, level=0.03), planted_searches("adam", 0.5)])
    logs = best_settings.beside(trials, "muon", "adam")
    found = best_settings.by_size(logs).set_index("batch_size")
    assert found.middle.to_dict() == pytest.approx({b: 3 * b**0.5 for b in SIZES})
    assert found.low.to_numpy() == pytest.approx(found.high.to_numpy())  # the same luck in both, so none is left
    growth = best_settings.per_doubling(logs)
    assert growth.middle.item() == pytest.approx(2**0.5) and growth.searches.item() == 5
    assert best_settings.per_doubling(logs, 64).empty  # two sizes have no trend
    assert best_settings.beside(trials, "lars", "adam").empty


def test_intervals_are_students_and_wait_for_several_searches():
    logs = best_settings.middles(best_settings.fastest(planted_searches("adam", 0.5)), "learning_rate")
    found = best_settings.by_size(logs).set_index("batch_size")
    low, high = stats.t.interval(0.9, 4, logs[16].mean(), stats.sem(logs[16]))
    assert (found.low[16], found.high[16]) == pytest.approx((np.exp(low), np.exp(high)))
    two = best_settings.middles(best_settings.fastest(planted_searches("adam", 0.5, searches=2)), "learning_rate")
    assert best_settings.by_size(two).empty and best_settings.per_doubling(two).empty
    assert best_settings.by_size(pd.DataFrame()).empty


@pytest.mark.parametrize("correlation", [-0.9, 0.0])
def test_a_planted_correlation_is_found_among_many_trials(correlation):
    fast = best_settings.fastest(planted_searches("kfac", 0.5, correlation=correlation, searches=40), 60)
    related = best_settings.by_size(best_settings.correlations(fast, "learning_rate", "damping"), np.tanh)
    assert related.middle.to_numpy() == pytest.approx(np.full(len(SIZES), correlation), abs=0.06)
    one = fast[(fast.replicate == 1) & (fast.batch_size == 16)]
    told = best_settings.correlations(one, "learning_rate", "damping").iloc[0, 0]
    assert np.tanh(told) == pytest.approx(np.corrcoef(np.log(one.learning_rate), np.log(one.damping))[0, 1])


def test_what_smoothing_saves_over_several_searches_is_the_mean_of_their_trends():
    """Searches at whose smallest batch sizes other errors lie: each trend is its own, whatever its level."""
    planted = np.array([0.01, 0.02, 0.03])
    rows = [
        {"workload": "w", "replicate": n, "batch_size": 2**j, "label_smoothing": s, "test": n - (s > 0) * planted[n] * j}
        for n in range(3)
        for j in range(4)
        for s in (0.0, 0.1)
    ]
    found = fixed_budgets.helped(pd.DataFrame(rows))["w", 0.1]
    ends = stats.t.interval(0.9, 2, planted.mean(), stats.sem(planted))
    assert found.n == 3 and (found.value, found.low, found.high) == pytest.approx((planted.mean(), *ends))
    level = fixed_budgets.risen(pd.DataFrame(rows))["w"]
    assert (level.value, level.low, level.high, level.n) == pytest.approx((0, 0, 0, 3))


def test_a_trend_covers_a_planted_one_as_often_as_it_says():
    r = np.random.default_rng(0)
    sizes = pd.Series(2 ** np.arange(11))
    inside = []
    for _ in range(1000):
        found = fixed_budgets.trend(sizes, pd.Series(0.05 + 0.001 * np.arange(11) + 0.004 * r.normal(size=11)))
        inside.append(found.low <= 0.001 <= found.high)
    assert 0.87 < np.mean(inside) < 0.93
    assert np.isnan(fixed_budgets.trend(sizes[:2], sizes[:2]).value)
