"""The best error within a budget: infeasible trials are counted and never chosen, and every budget is one's own."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.analysis import counts, fixed_budgets
from lib.measuring import sweeps
from lib.studies.cells import Cell
from lib.studies.study import Study


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    cells = tuple(Cell("digits-mlp", b, trials=6, stop="budget", max_steps=s) for b, s in ((16, 64), (64, 32)))
    return sweeps.results(Study("t", "t", cells), "full", folder=tmp_path_factory.mktemp("records"))


def test_the_chosen_trial_is_the_best_that_is_feasible(trials):
    rows = fixed_budgets.within(trials)
    lowest = rows.groupby(["batch_size", "budget"]).validation.idxmin()
    rows.loc[lowest, "status"] = "infeasible"
    found = fixed_budgets.chosen(rows, ["workload", "batch_size", "budget"]).set_index(["batch_size", "budget"])
    for key, group in rows[rows.status != "infeasible"].groupby(["batch_size", "budget"]):
        assert found.loc[key, "validation"] == group.validation.min() <= found.loc[key, "low"] + 1e-12
        assert found.loc[key, "trials"] == len(group)
        best = group[group.trial == found.loc[key, "trial"]]
        assert best.test.item() == found.loc[key, "test"]


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


def test_a_share_has_wilsons_interval():
    for met, of in ((0, 7), (3, 10), (50, 50), (31, 190)):
        own = stats.binomtest(met, of).proportion_ci(0.9, method="wilson")
        assert counts.share(met, of) == pytest.approx((met / of, own.low, own.high), abs=1e-12)
    assert np.isnan(counts.share(0, 0)).all()
