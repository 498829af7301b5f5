"""Forms of a scaling curve recover what was planted, and predict a curve that was planted to follow from others."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis import curve_forms

SIZES = 2.0 ** np.arange(0, 15)


def curve(steps):
    return pd.DataFrame({"batch_size": SIZES, "steps": steps})


PLANTED = {
    "c1/B + c2": [5e4, 80],
    "c1/B": [5e4],
    "c1/B^p": [5e4, 0.6],
    "c1/B^p + c2": [5e4, 80, 0.8],
    "c2 (1 + (Bc/B)^a)^(1/a)": [5e4, 80, 1.7],
}


@pytest.mark.parametrize("form", curve_forms.FORMS)
def test_every_form_recovers_what_was_planted_and_predicts_what_was_left_out(form):
    planted = np.log(PLANTED[form])
    steps = np.exp(curve_forms.FORMS[form](planted, np.log(SIZES)))
    assert curve_forms.fit_form(form, SIZES, steps) == pytest.approx(planted, abs=1e-4)
    assert np.abs(curve_forms.left_out(form, SIZES, steps)).max() < 1e-3


def test_the_right_form_predicts_best():
    """A planted bend sharper than the hyperbola's is told apart through 3 % of noise."""
    noise = np.exp(0.03 * np.random.default_rng(0).normal(size=len(SIZES)))
    steps = noise * np.exp(curve_forms.FORMS["c2 (1 + (Bc/B)^a)^(1/a)"](np.log([5e4, 80, 3]), np.log(SIZES)))
    error = {form: np.sqrt(np.mean(curve_forms.left_out(form, SIZES, steps) ** 2)) for form in curve_forms.FORMS}
    assert min(error, key=error.get) == "c2 (1 + (Bc/B)^a)^(1/a)"


def test_forms_refuse_too_few_points_and_unknown_names():
    with pytest.raises(ValueError, match="2 points are not enough for 3 constants"):
        curve_forms.fit_form("c1/B^p + c2", [1, 2], [2, 1])
    with pytest.raises(ValueError, match="form: 'line' is unknown"):
        curve_forms.fit_form("line", SIZES, SIZES)
    with pytest.raises(ValueError, match="steps: nan is not allowed; every value must be positive and finite"):
        curve_forms.fit_form("c1/B", [1, 2], [2, np.nan])


def test_one_sparsity_is_predicted_from_the_others():
    """c1 and c2 planted as powers of the density: the curve left out is recovered."""
    rows = [curve(5e3 * (1 - s) ** -0.5 / SIZES + 20 * (1 - s) ** -0.3).assign(sparsity=s) for s in (0, 0.5, 0.7, 0.9)]
    for s in (0, 0.7, 0.9):
        assert np.allclose(
            curve_forms.predict_curve(pd.concat(rows), s), rows[[0, 0.5, 0.7, 0.9].index(s)].steps, rtol=1e-3
        )
    with pytest.raises(ValueError, match="1 other curves are not enough"):
        curve_forms.predict_curve(pd.concat(rows[:2]), 0.5)


def planted(density, sizes=SIZES):
    return 5e3 / (density * sizes) + 20 / density**0.5


def searches(sparsity, factor=1.0, steps=planted, random=None, replicate=0):
    """Every trial takes its own multiple of the steps of c1/B + c2, both constants powers of the density."""
    own = np.geomspace(1, 4, 20) if random is None else None
    rows = [factor * k * (own if random is None else 1 + random.gamma(2, size=100)) for k in steps(1 - sparsity)]
    table = pd.concat([pd.DataFrame({"batch_size": b, "steps@0.1": row, "last_step": row.max()}) for b, row in zip(SIZES, rows)])
    return table.assign(workload="digits-mlp", algorithm="sgd", pruning="connection-sensitivity", sparsity=sparsity, trials=20,
                        replicate=replicate, steps=np.nan, goal=0.04, status="complete")  # fmt: skip


@pytest.mark.parametrize("factor", [1.0, 7.0])
def test_measured_over_predicted_recovers_the_factor_by_which_the_sparsest_curve_departs(factor):
    trials = pd.concat([*(searches(s) for s in (0.0, 0.5, 0.7, 0.9)), searches(0.95, factor)])
    over = curve_forms.over_predicted(trials, 0.95)
    assert len(over) == len(SIZES) and (over.goal == 0.1).all() and (over.met == 1).all()
    assert over.ratio.median() == pytest.approx(factor, rel=0.1)
    assert ((over.ratio_low <= factor) & (factor <= over.ratio_high)).all()
    assert (over.ratio_high / over.ratio_low).median() < 10  # of one search of each
    assert curve_forms.over_predicted(trials, 0.9).ratio.median() == pytest.approx(1, rel=0.1)  # the sparsest does not count


def test_ranges_of_measured_over_predicted_hold_what_was_planted():
    """Nominally 90 %, in five searches whose trials are drawn at random."""
    held = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        every = [searches(s, random=random, replicate=r) for s in (0.0, 0.5, 0.9, 0.95) for r in range(5)]
        over = curve_forms.over_predicted(pd.concat(every), 0.95)
        held.append((over.ratio_low <= 1) & (over.ratio_high >= 1))
    assert 0.8 < np.mean(held) < 1


def test_nothing_is_predicted_from_one_curve_for_none_or_across_protocols():
    trials = pd.concat([searches(s) for s in (0.0, 0.5, 0.9)])
    assert len(curve_forms.over_predicted(trials, 0.9)) and curve_forms.over_predicted(trials, 0.8).empty
    assert curve_forms.over_predicted(trials[trials.sparsity != 0.5], 0.9).empty
    assert curve_forms.over_predicted(trials.assign(trials=np.where(trials.sparsity > 0, 20, 40)), 0.9).empty
    assert curve_forms.over_predicted(pd.DataFrame(), 0.9).empty


def test_a_cell_that_missed_the_goal_is_a_lower_bound():
    trials = pd.concat([searches(s) for s in (0.0, 0.5, 0.9, 0.95)])
    lost = (trials.sparsity == 0.95) & (trials.batch_size > 64)
    every = curve_forms.over_predicted(trials.assign(**{"steps@0.1": trials["steps@0.1"].mask(lost)}), 0.95)
    bounds = every[every.batch_size > 64]
    assert (bounds.met == 0).all() and (every.met[every.batch_size <= 64] == 1).all()
    assert bounds.ratio.to_numpy() == pytest.approx(4, rel=0.15)  # the last step over the fastest trial's


def test_redrawn_curves_are_predicted_as_measured_ones():
    levels = (0.0, 0.5, 0.9)
    curves = {s: pd.DataFrame([planted(1 - s)] * 3, columns=SIZES) for s in levels}
    table = pd.concat([curve(planted(1 - s)).assign(sparsity=s) for s in (*levels, 0.95)])
    found = curve_forms._predicted(curves, 0.95, pd.Index(SIZES))
    assert np.allclose(found, curve_forms.predict_curve(table, 0.95), rtol=0.01)


def test_curves_without_a_floor_predict_nothing():
    """Not the end of a power of the density: the ranges are open at both ends, at every batch size."""
    straight = searches(0.5, steps=lambda density: 5e3 / SIZES)
    over = curve_forms.over_predicted(pd.concat([searches(0.0), straight, searches(0.9)]), 0.9)
    assert (over.ratio_low == 0).all() and np.isinf(over.ratio_high).all()
