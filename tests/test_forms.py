"""A curve's form, tested against the scatter of its searches: the truth is kept, what departs is told and by how much."""

import numpy as np
import pandas as pd
import pytest

from chapters.theory import claims as theory
from lib.analysis import scaling
from lib.claims.claim import REGISTRY, judged

SIZES = 2.0 ** np.arange(11)


def searches(steps, n, random, scatter=0.2, level=0.3):
    """ln K* [n, m] of searches that each have a level of their own, and scatter about it."""
    return np.log(steps) + level * random.standard_normal((n, 1)) + scatter * random.standard_normal((n, len(steps)))


def curve(logs, sizes=SIZES):
    table = pd.DataFrame(logs, pd.MultiIndex.from_arrays([range(len(logs))] * 2, names=scaling.SEARCH), sizes.astype(int))
    return scaling.Curve(table, table.isna(), 0.3)


SHORT = SIZES[::2]  # no exponent is fitted, which takes the time


def test_the_true_form_does_not_depart(n=3):
    random = np.random.default_rng(n)
    found = [scaling.test_form(SHORT, searches(1e3 / SHORT + 20, n, random)) for _ in range(100)]
    assert np.mean([f.depart_low == 1 for f in found]) > 0.88, "its interval holds one"


def test_a_planted_departure_is_found_with_its_size():
    """A sharp corner, max(c1/B, c2), lies off every c1/B + c2; fitted to the corner itself, by how much is known."""
    corner = np.maximum(1e3 / SHORT, 20)
    known = np.exp(np.sqrt(scaling.fit(SHORT, np.log(corner)[None]).loss[0] / len(SHORT)))
    random = np.random.default_rng(0)
    found = [scaling.test_form(SHORT, searches(corner, 12, random)) for _ in range(100)]
    assert known > 1.1 and np.median([f.depart for f in found]) == pytest.approx(known, rel=0.02)
    assert 0.82 < np.mean([f.depart_low < known < f.depart_high for f in found]) < 0.98
    assert np.mean([f.p_value < 0.05 for f in found]) > 0.9


def test_the_exponent_is_recovered_and_the_freer_form_predicts_what_is_left_out():
    steps = 1e3 / SIZES**0.8 + 20
    found = scaling.tests_of_form({("w", "m", "p", 0.0): curve(searches(steps, 20, np.random.default_rng(1), 0.05))}).iloc[0]
    assert found.exponent == pytest.approx(0.8, abs=0.02) and found.off_free < 0.5 * found.off
    assert found.p_value < 0.001 and found.searches == 20 and found.freedom == 9


def verdicts(key, sparse):
    random = np.random.default_rng(2)
    curves = {("digits-mlp", "sgd", "connection-sensitivity", s): curve(searches(steps, 20, random, 0.1))
              for s, steps in ((0.0, 1e3 / SIZES + 20), (0.9, sparse))}  # fmt: skip
    return [g.verdict for g in judged(REGISTRY.claims[key], REGISTRY.functions[key](curves)).groups]


def test_a_straight_power_law_fails_where_the_dense_curve_bends_and_a_shifted_curve_does_not():
    assert theory.form_over_dense and verdicts("L2", 3e3 / SIZES + 50) == ["for"]
    assert verdicts("L2", 1e3 / SIZES**0.6) == ["against"]


def test_the_theory_can_fail():
    for steps, verdict in ((1e3 / SIZES**0.6, "against"), (np.maximum(1e3 / SIZES, 20), "against"), (1e3 / SIZES + 20, "for")):
        own = curve(searches(steps, 20, np.random.default_rng(3), 0.1))
        groups = REGISTRY.functions["L6"]({("digits-mlp", "sgd", "connection-sensitivity", 0.0): own})
        assert [g.verdict for g in judged(REGISTRY.claims["L6"], groups).groups] == [verdict]
