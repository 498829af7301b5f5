"""Hyperparameters of the fastest trials: planted ones come out as planted, and what is too little known is left out."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from chapters.which_method import best_settings

SIZES = (4, 16, 64, 256)


def searched(algorithm, power, searches=5, sizes=SIZES, level=0.01, correlation=0.0, hits=60, trials=60):
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
    trials = pd.concat([searched("muon", 1.0, level=0.03), searched("adam", 0.5)])
    logs = best_settings.beside(trials, "muon", "adam")
    found = best_settings.by_size(logs).set_index("batch_size")
    assert found.middle.to_dict() == pytest.approx({b: 3 * b**0.5 for b in SIZES})
    assert found.low.to_numpy() == pytest.approx(found.high.to_numpy())  # the same luck in both, so none is left
    growth = best_settings.per_doubling(logs)
    assert growth.middle.item() == pytest.approx(2**0.5) and growth.searches.item() == 5
    assert best_settings.per_doubling(logs, 64).empty  # two sizes have no trend
    assert best_settings.beside(trials, "lars", "adam").empty


def test_intervals_are_students_and_wait_for_several_searches():
    logs = best_settings.middles(best_settings.fastest(searched("adam", 0.5)), "learning_rate")
    found = best_settings.by_size(logs).set_index("batch_size")
    low, high = stats.t.interval(0.9, 4, logs[16].mean(), stats.sem(logs[16]))
    assert (found.low[16], found.high[16]) == pytest.approx((np.exp(low), np.exp(high)))
    two = best_settings.middles(best_settings.fastest(searched("adam", 0.5, searches=2)), "learning_rate")
    assert best_settings.by_size(two).empty and best_settings.per_doubling(two).empty
    assert best_settings.by_size(pd.DataFrame()).empty


@pytest.mark.parametrize("correlation", [-0.9, 0.0])
def test_a_planted_correlation_is_found_among_many_trials(correlation):
    fast = best_settings.fastest(searched("kfac", 0.5, correlation=correlation, searches=40), 60)
    related = best_settings.by_size(best_settings.correlations(fast, "learning_rate", "damping"), np.tanh)
    assert related.middle.to_numpy() == pytest.approx(np.full(len(SIZES), correlation), abs=0.06)
    one = fast[(fast.replicate == 1) & (fast.batch_size == 16)]
    told = best_settings.correlations(one, "learning_rate", "damping").iloc[0, 0]
    assert np.tanh(told) == pytest.approx(np.corrcoef(np.log(one.learning_rate), np.log(one.damping))[0, 1])
