"""The learning rate against the batch size: planted laws come out as planted."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from chapters.learning_rates import claims, measured, predictions, searched
from chapters.theory import quadratic
from chapters.theory.noisy_quadratic import Model
from lib.analysis import rates, scaling
from lib.studies.search import Search

SIZES = 2.0 ** np.arange(0, 11)
KEY = ("digits-mlp", "sgd", "connection-sensitivity", 0.0)
SHAPES = {
    "constant": np.zeros_like,
    "linear": np.log,
    "square root": lambda b: np.log(b) / 2,
    "power": lambda b: 0.3 * np.log(b),
    "saturating": lambda b: -np.log(1 + 30 / b),
    "saturating square root": lambda b: -np.log(1 + 30 / b) / 2,
    "surge": lambda b: -np.log((30 / b) ** 0.5 + (b / 30) ** 0.5),
}
BENT = {"power", "saturating", "saturating square root"}
HOLD = {  # the rules of which each is a case or a limit
    "constant": {"constant", *BENT},
    "linear": {"linear", "power", "saturating"},
    "square root": {"square root", "power", "saturating square root", "surge"},
}


@pytest.mark.parametrize("rule", rates.RIVALS)
def test_a_planted_rule_is_fitted_exactly_and_beats_those_that_it_is_no_case_of(rule):
    logs = -1 + SHAPES[rule](SIZES)
    fit = rates.fit(rule, SIZES, logs)
    assert np.allclose(fit.log_rates(SIZES), logs, atol=2e-3)
    errors = {rival: rates.error(rival, SIZES, logs) for rival in rates.RIVALS}
    assert errors[rule] < 5e-3
    assert all(errors[rival] > 0.05 for rival in set(errors) - HOLD.get(rule, {rule}))


@pytest.mark.parametrize(("exponent", "bend"), [(0.5, 8.0), (1.0, 30.0), (1.4, 100.0)])
def test_a_planted_exponent_and_bend_are_found(exponent, bend):
    fit = rates.fit("free exponent", SIZES, -np.log1p((bend / SIZES) ** exponent))
    assert (*fit.parameters, fit.factor) == pytest.approx((np.log(bend), exponent, 0), abs=0.01)


def test_a_batch_size_left_out_does_not_tell_its_own_rate():
    logs = -np.log(1 + 30 / SIZES)
    spoilt = logs + 5 * (SIZES == 16)
    assert rates.left_out("saturating", SIZES, spoilt)[4] == pytest.approx(logs[4], abs=0.01)
    assert np.isnan(rates.left_out("linear", SIZES[:4], logs[:4])).all()


# --- rho ------------------------------------------------------------------------------------------


def drawn(random, n, rho=0.6, critical=40.0, noise=0.15):
    """ln of rates and of K* [n, batch sizes] of searches, each with a level of its own."""
    level = 0.4 * random.standard_normal((n, 1))
    steps = np.log(20) + level + np.log1p(critical / SIZES)
    logs = np.log(0.5) - np.log1p(rho * critical / SIZES)
    scatter = noise * random.standard_normal((2, n, len(SIZES)))
    tables = logs + scatter[0], steps + scatter[1]
    return [pd.DataFrame(table, columns=SIZES.astype(int)) for table in tables]


def test_rho_of_exact_curves_is_the_planted_one():
    effect = rates.jackknife(rates.log_rho, *drawn(np.random.default_rng(0), 3, noise=0.0))
    assert np.exp(effect.value) == pytest.approx(0.6, rel=1e-3)
    assert effect.error < 1e-3 and effect.n == 3


@pytest.mark.parametrize("searches", [3, 5])
def test_the_interval_of_rho_covers_it_as_often_as_it_says(searches):
    random, inside = np.random.default_rng(1), []
    for _ in range(150):
        logs, steps = drawn(random, searches)
        logs = logs.mask(random.random(logs.shape) < 0.2)  # searches that do not count
        effect = rates.jackknife(rates.log_rho, logs, steps)
        inside.append(effect.low <= np.log(0.6) <= effect.high)
    assert 0.84 < np.mean(inside) < 0.97


def test_one_search_has_no_interval_and_two_rates_no_rho():
    effect = rates.jackknife(rates.log_rho, *drawn(np.random.default_rng(0), 1))
    assert (effect.low, effect.high) == (-np.inf, np.inf)
    logs, steps = drawn(np.random.default_rng(0), 3)
    assert np.isnan(rates.log_rho(logs.iloc[:, :2].reindex(columns=logs.columns), steps))


# --- what counts as a best rate -------------------------------------------------------------------


def trials(rate, steps, last, size=16, split=101):
    about = dict(zip(scaling.CURVE, KEY)) | {"batch_size": size, "split": split, "replicate": split}
    return pd.DataFrame({"learning_rate": rate, "steps": steps}).assign(last_step=last, **about)


def test_the_best_rate_is_the_geometric_mean_of_trials_within_twice_the_fewest_steps():
    steps = [np.nan, 100, 200, 201, np.nan]
    best = rates.best_rates(trials([0.001, 0.1, 0.4, 0.9, 9.0], steps, 250))
    assert best[["rate", "steps", "why"]].to_numpy().tolist() == [[pytest.approx(0.2), 100, ""]]


@pytest.mark.parametrize(
    ("steps", "last", "why"),
    [
        ([np.nan, 100, 150, np.nan], 199, [rates.SOON]),
        ([120, 100, 150, np.nan], 400, [rates.EDGE]),
        ([np.nan, 100, 150, 120], 400, [rates.EDGE]),
        ([np.nan] * 4, 400, []),
    ],
)
def test_searches_that_ended_too_soon_or_lie_at_an_end_do_not_count(steps, last, why):
    assert rates.best_rates(trials([0.001, 0.1, 0.4, 9.0], steps, last)).why.tolist() == why


# --- curves ---------------------------------------------------------------------------------------

TRIED = np.geomspace(1e-3, 30, 100)


def search(size, split, rho=0.6, critical=40.0):
    """A search whose steps times rate depend only on the rate over the best."""
    best = 0.5 / (1 + rho * critical / size)
    ratio = TRIED / best
    steps = 30 * (1 + critical / size) * (1 / ratio + ratio) / 2
    wide = trials(TRIED, np.where(ratio < 20, steps, np.nan), 1e5, int(size), split)
    return wide.assign(**{f"steps@{goal}": wide.steps for goal in (0.05, 0.1)}, goal=0.05)


def planted(splits=(101, 102, 103)):
    points = [(int(size), n) for size in SIZES for n in splits]
    cells = [Search(KEY[0], size, KEY[1], split=n, replicate=n) for size, n in points]
    return pd.concat([search(*point) for point in points], ignore_index=True), cells


@pytest.fixture(scope="module")
def law():
    (law,) = searched.laws(*planted()).values()
    return law


def test_a_planted_law_its_cost_and_its_product_are_found(law):
    assert law.n == 3 and np.exp(law.critical) == pytest.approx(40, rel=0.01)
    assert np.exp(law.rho.value) == pytest.approx(0.6, rel=0.1)
    tables = measured.tables({KEY: law})
    (curve,) = tables["curves"].itertuples()
    assert curve.exponent == pytest.approx(1, abs=0.05) and curve.soon == curve.edge == 0
    assert curve.saturating == tables["curves"][rates.RIVALS].min(axis=1).item()
    costs = tables["costs"].groupby("rule").cost.mean()
    assert costs["half"] == pytest.approx(np.log(1.25), abs=0.05) == costs["twice"]
    assert abs(costs["saturating"]) < 0.02 and costs["linear"] > 0.5
    near = tables["tuning"][tables["tuning"].over.between(0.3, 3)]
    # One curve for all batch sizes
    assert np.log(near.distance).groupby(near.over).std().max() < 0.1


def test_a_curve_of_which_no_search_is_whole_is_left_out():
    searches, cells = planted((101,))
    assert searched.laws(searches[searches.batch_size > 1], cells) == {}


@pytest.mark.parametrize(("sizes", "searched_for"), [([3, 5], [3, 5]), ([3, 64], [64])])
def test_batch_sizes_that_are_not_planned_are_searched_where_none_is(sizes, searched_for):
    """Next to planned ones they might have another precision or limit."""
    chosen = SimpleNamespace(workload="mnist-fc-128x3-easier", algorithm="adam", batch_sizes=sizes, searches=3)
    cells = searched.requested(chosen).searches
    assert sorted({cell.batch_size for cell in cells}) == searched_for and len({cell.space for cell in cells}) == 1


def test_a_trial_that_had_not_met_the_goal_makes_a_bound():
    steps = np.where(TRIED < 1, np.log(50.0), np.nan)
    logs = np.stack([np.log(TRIED), steps, np.full(len(TRIED), np.log(400.0))])
    assert searched.steps_at(logs, np.log(0.1)) == (pytest.approx(np.log(50)), True)
    assert searched.steps_at(logs, np.log(5.0)) == (pytest.approx(np.log(400)), False)


def test_one_size_predicts_the_rates_of_all_where_the_law_is_true(law):
    logs = measured.from_one(law, np.log(0.6))
    assert np.abs(logs[measured.ONE] - law.best).max() < 0.1
    assert np.abs(logs[measured.LINEAR] - law.best).max() > 1


def test_predictions_that_hold_on_a_planted_law_are_hits_and_those_without_records_open(law):
    tables = measured.tables({KEY: law})
    bent = tables | {"curves": tables["curves"].assign(rho=2.0, exponent=0.5, falls=3.0)}
    for key in ("R1", "R2", "R3"):
        assert predictions.outcome(tables, key, 1).startswith(predictions.HIT)
        assert predictions.outcome(tables, key, 2).startswith("so far")
        assert predictions.outcome(bent, key, 1).startswith(predictions.MISS)
    assert predictions.outcome(tables, "R5", 1) == predictions.NOT_YET
    assert set(predictions.texts()) == set(predictions.JUDGED) | {"R9", "R10", "R11"}


def test_lower_bounds_and_missing_errors_leave_a_prediction_open():
    assert predictions._errs_less(np.nan, 1.0) is predictions._open_if(True, True) is None
    assert predictions._open_if(True, False) is False


@pytest.mark.parametrize(("ratio", "fine"), [(0.6, True), (40.0, False)])
def test_rates_on_a_network_of_another_kind_come_from_one_where_the_law_is_true(monkeypatch, tmp_path, ratio, fine):
    table, cells = planted((101,))
    file = tmp_path / "predictions.yaml"
    file.write_text(f"elsewhere: {{ratios: {{digits-mlp: {ratio}}}}}")
    expected = predictions.Elsewhere("R9", "sgd", 64, "saturating", 0.2, 1.5, 1.15)
    monkeypatch.setattr(predictions, "FILE", file)
    monkeypatch.setattr(predictions, "ELSEWHERE", {"digits-mlp": expected})
    monkeypatch.setattr(predictions, "study", lambda name: searched.study(cells))
    monkeypatch.setattr(searched, "recorded", lambda cells, place: table)
    outcome = predictions._elsewhere()
    assert [case[-1] for case in outcome["cases"]] == [fine]
    assert outcome["rates"]["batch size"] == SIZES.tolist()
    monkeypatch.setattr(searched, "recorded", lambda cells, place: table.iloc[:0])
    assert predictions._elsewhere() == {"cases": [], "rates": {}}


# --- theory ---------------------------------------------------------------------------------------


def test_the_quadratic_model_bends_rates_before_steps_as_the_pilot_found():
    """Curvatures 1/i^1.5, loss to a tenth: rho 0.43."""
    h = np.arange(1, 1001) ** -1.5
    bends = quadratic.bends(Model(h, h, 0.1 * h.sum() / 2))
    assert bends["rho"] == pytest.approx(0.43, abs=0.03)
    assert bends["critical"] == pytest.approx(63, rel=0.03)


# --- claims ---------------------------------------------------------------------------------------


def test_the_rise_and_the_miss_of_the_rules_are_those_planted():
    bends = pd.DataFrame(np.tile(-np.log1p(30 / SIZES), (3, 1)), columns=SIZES)
    root = pd.DataFrame(np.tile(np.log(SIZES) / 2, (3, 1)), columns=SIZES)
    assert claims.rise(bends, bends) == pytest.approx(np.log(31 / (1 + 30 / 1024)), abs=0.01)
    assert claims.miss(bends, bends) > np.log(1.25) and claims.miss(root, root) < 0.01


def test_of_earlier_searches_a_planted_law_is_judged_and_the_rest_left_out(monkeypatch):
    """Momentum not built up, single and pruned searches do not count."""
    monkeypatch.setattr(searched, "planned", list)
    valid = planted()[0].assign(workload="mnist-fc-128x3-easier", momentum=0.0)
    slow = valid.assign(algorithm="momentum", momentum=0.99999)
    alone = valid[valid.split == 101].assign(workload="mnist-fc-1024")
    table = pd.concat([valid, slow, alone, valid.assign(sparsity=0.9, workload="mnist-fc-256x3")])
    for judged, planted_value in ((claims.best_rate, 25 / (1 + 24 / 1024)), (claims.bends, 0.6)):
        (group,) = judged(table)
        assert group.effect == pytest.approx(planted_value, rel=0.1) and group.n == 3
        assert group.note == claims.PUBLISHED
    assert [group.theirs for group in claims.off_the_rules(table)] == [True]
