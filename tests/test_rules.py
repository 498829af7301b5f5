"""Rules for the learning rate: planted winners come out with their exponent, and guides pass through the start."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from chapters.metaparameters import claims as rules_of
from lib.analysis import rate_rules


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
    (found,) = rate_rules.growth(searched([power], momentum=0.5)).itertuples()
    assert found.growth == pytest.approx(2**power) and found.growth_low <= 2**power <= found.growth_high
    assert (found.sizes, found.searches, found.effect.n, found.effect.freedom) == (6, 1, 1, 22)


def test_the_growth_over_searches_is_the_mean_of_their_slopes_with_students_interval():
    powers = np.array([0.4, 0.6, 0.7, 0.9])
    (found,) = rate_rules.growth(searched(powers, momentum=0.5)).itertuples()
    low, high = stats.t.interval(0.9, 3, powers.mean(), stats.sem(powers))
    assert (found.growth_low, found.growth, found.growth_high) == pytest.approx((2**low, 2 ** powers.mean(), 2**high))
    assert found.searches == found.effect.n == 4


def test_effective_rates_of_trials_too_short_for_their_momentum_do_not_count():
    """From batch size 16 on, momentum takes a tenth of the steps or more to build up, and the effective rate explodes."""
    trials = searched([0.5], momentum=0.5)
    short = trials.batch_size >= 256
    spoilt = trials.assign(momentum=trials.momentum.mask(short, 0.9999))
    (found,) = rate_rules.growth(spoilt).itertuples()
    assert found.growth == pytest.approx(2**0.5) and found.most == 64
    every = rate_rules.near_best(spoilt, 16)
    assert set(every.batch_size[every.which == "effective learning rate"]) == {1, 4, 16, 64}
    assert set(every.batch_size[every.which == "learning rate"]) == {1, 4, 16, 64, 256, 1024}
    assert rate_rules.built_up(trials.drop(columns="momentum")).equals(trials.drop(columns="momentum"))  # none to build up


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
