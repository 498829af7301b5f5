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


def test_every_trial_has_a_row_per_budget_of_its_cell(trials):
    rows = fixed_budgets.within(trials)
    assert rows.groupby("batch_size").budget.max().to_dict() == {16: 64, 64: 32}
    assert (rows.examples == rows.budget * rows.batch_size).all()
    one = rows[(rows.batch_size == 16) & (rows.trial == 3)].set_index("budget")
    assert one.validation.is_monotonic_decreasing
    source = trials[(trials.batch_size == 16) & (trials.trial == 3)].iloc[0]
    assert all(one.loc[b, "validation"] == source[f"best@{b}"] for b in one.index)


def test_a_selection_of_the_trials_keeps_its_rows(trials):
    columns = ["batch_size", "trial", "budget", "validation", "test", "learning_rate"]
    whole, some = fixed_budgets.within(trials), fixed_budgets.within(trials[trials.batch_size == 64].sample(frac=1, random_state=0))
    expected = whole[whole.batch_size == 64].sort_values(["trial", "budget"])[columns].reset_index(drop=True)
    assert some.sort_values(["trial", "budget"])[columns].reset_index(drop=True).equals(expected)


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


def test_without_records_there_is_nothing_to_choose():
    empty = fixed_budgets.within(pd.DataFrame({"workload": []}))
    assert empty.empty and not np.any(empty)


def test_outcomes_at_fixed_steps_and_epochs():
    trials = pd.DataFrame({
        "batch_size": [1, 1, 64, 64], "trial": [0, 1, 0, 1], "learning_rate": 0.1, "momentum": 0.9,
        "steps": [100, np.nan, 10, 60], "status": ["complete", "infeasible", "complete", "complete"],
        "last_step": [100, 30, 64, 64],
    })  # fmt: skip
    told = fixed_budgets.outcomes(trials, steps=50, examples=1000).set_index(["kind", "batch_size", "trial"]).outcome
    assert told["fixed steps"].tolist() == ["did not", "diverged or died", "reached the goal", "did not"]
    assert told["fixed epochs"].tolist() == ["reached the goal", "diverged or died", "reached the goal", "did not"]
    share = fixed_budgets.shares(fixed_budgets.outcomes(trials, 50, 1000).assign(workload="w")).set_index(["kind", "batch_size"])
    assert share.share.tolist() == [0, 0.5, 0.5, 0.5] and (share.low <= share.share).all()


def test_what_smoothing_saves_is_recovered():
    """A planted saving that grows by 0.01 with every doubling; batch sizes without smoothed trials do not count."""
    rows = [
        {"workload": "w", "replicate": 0, "batch_size": 2**j, "label_smoothing": s, "test": 0.3 - (s > 0) * 0.01 * j}
        for j in range(6)
        for s in ((0.0, 0.1) if j else (0.0,))
    ]
    found = fixed_budgets.helped(pd.DataFrame(rows))
    own = found["w", 0.1]
    assert list(found) == [("w", 0.1)] and (own.value, own.low, own.high, own.n) == pytest.approx((0.01, 0.01, 0.01, 1))


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


def test_errors_at_the_longest_budgets_are_means_of_the_best_trials_that_gain_nothing_more():
    """Trial i errs by 0.01 (i + 1) at the end; batch size 64 still gains, and a trial that diverged does not count."""
    def cell(b, steps, before):
        last = 0.01 * np.arange(1, 9)
        ends = {f"best@{steps // 2}": last + before, f"best@{steps}": last}
        return pd.DataFrame({"workload": "digits-mlp", "label_smoothing": 0.0, "replicate": 0, "batch_size": b, "trial": range(8),
                             "checks": "geometric", "max_steps": steps, "status": ["infeasible", *["budget"] * 7], **ends,
                             **{k.replace("best", "test"): 2 * v for k, v in ends.items()}})  # fmt: skip

    whole = pd.concat([cell(4, 256, 0.0), cell(16, 128, 0.0), cell(64, 64, 0.1)], ignore_index=True)
    found = fixed_budgets.longest(whole).set_index("batch_size")
    assert found.index.tolist() == [4, 16]
    assert found.validation.to_numpy() == pytest.approx(0.04) and found.test.to_numpy() == pytest.approx(0.08)  # of 2 to 6
    assert fixed_budgets.longest(whole[:0]).empty


def test_a_trend_covers_a_planted_one_as_often_as_it_says():
    r = np.random.default_rng(0)
    sizes = pd.Series(2 ** np.arange(11))
    inside = []
    for _ in range(1000):
        found = fixed_budgets.trend(sizes, pd.Series(0.05 + 0.001 * np.arange(11) + 0.004 * r.normal(size=11)))
        inside.append(found.low <= 0.001 <= found.high)
    assert 0.87 < np.mean(inside) < 0.93
    assert np.isnan(fixed_budgets.trend(sizes[:2], sizes[:2]).value)


def test_maps_read_every_workload_at_its_own_budgets():
    trials = pd.DataFrame({
        "workload": ["digits-mlp", "mnist-fc-128x3"], "batch_size": 64, "trial": 0, "learning_rate": 0.1, "momentum": 0.9,
        "steps": 2000, "status": "complete", "last_step": 2000,
    })  # fmt: skip
    told = fixed_budgets.maps(trials).set_index(["workload", "kind"])
    assert told.within.to_dict() == {("digits-mlp", "fixed steps"): 1024, ("digits-mlp", "fixed epochs"): 256,
                                     ("mnist-fc-128x3", "fixed steps"): 4096, ("mnist-fc-128x3", "fixed epochs"): 4096}  # fmt: skip
    assert set(told.outcome["digits-mlp"]) == {"did not"} and set(told.outcome["mnist-fc-128x3"]) == {"reached the goal"}
    assert fixed_budgets.maps(pd.DataFrame()).empty


def test_a_batch_size_is_settled_once_it_gains_nothing_more():
    best = pd.DataFrame({"workload": "digits-mlp", "batch_size": [4, 4, 4, 64, 64], "budget": [16, 32, 64, 32, 64]})
    best["validation"] = [0.5, 0.2, 0.199, 0.2, 0.1]
    assert fixed_budgets.settled(best) == [4] and fixed_budgets.settled(best.assign(validation=[0.5, 0.3, 0.2, 0.1, 0.1])) == [64]
    one_in_150 = best.assign(validation=[0.5, 4 / 150, 3 / 150, 5 / 150, 3 / 150])  # finer than the validation set can tell
    assert fixed_budgets.settled(one_in_150) == [4] and fixed_budgets.settled(one_in_150.assign(workload="mnist-fc-128x3")) == []
    assert fixed_budgets.settled(best[:1]) == []


def ladder(small, large, column="budget"):
    """One network's ladder at two budgets, the later one equal: its errors at the smallest and the largest batch size."""
    sizes = [1, 4, 16, 64, 256]
    rows = [{"batch_size": b, column: k, "low": e, "high": e, "unsure": 0.01} for k in (16, 32)
            for b, e in zip(sizes, (np.linspace(small, large, 5) if k == 16 else [0.1] * 5))]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_end_that_a_small_budget_favours():
    found = fixed_budgets.between_ends(ladder(0.5, 0.2), "budget", 1)
    assert found == pytest.approx((0.3, 0.3 - 0.01 * 2**0.5, 0.3 + 0.01 * 2**0.5))
    assert fixed_budgets.between_ends(ladder(0.5, 0.2), "budget", -1).high == pytest.approx(-found.low)
    assert fixed_budgets.between_ends(ladder(0.5, 0.2).query("batch_size > 1"), "budget", 1) is None


def test_good_settings_are_gained_at_fixed_steps_and_lost_at_fixed_epochs():
    def kind(name, first, last):
        met = np.linspace(first, last, 5).astype(int)
        own = [(m, counts.share(m, 100)) for m in met]
        return [{"kind": name, "batch_size": 4**j, "share": s.value, "low": s.low, "high": s.high} for j, (_, s) in enumerate(own)]

    both = pd.DataFrame(kind("fixed steps", 10, 90) + kind("fixed epochs", 60, 20))
    found = fixed_budgets.moved(both)
    assert found.value == pytest.approx(0.4) and found.low < 0.4 < found.high  # the lesser of 0.8 and 0.4
    assert found == pytest.approx(counts.fell(counts.share(60, 100), counts.share(20, 100)))
    assert fixed_budgets.moved(pd.DataFrame(kind("fixed steps", 10, 90) + kind("fixed epochs", 20, 60))).high < 0
    assert fixed_budgets.moved(both[both.kind == "fixed steps"]) is None


def test_trials_that_fail_are_counted_within_equal_steps():
    def run(b, failed, last):
        status = ["infeasible"] * failed + ["complete"] * (100 - failed)
        return pd.DataFrame({"batch_size": b, "status": status, "last_step": last, "max_steps": 400 // b})

    found = fixed_budgets.lost(pd.concat([run(1, 60, 90), run(4, 5, 90)]))
    assert found.value == pytest.approx(0.55) and found.low < 0.55 < found.high
    assert fixed_budgets.lost(pd.concat([run(1, 60, 101), run(4, 5, 90)])).value == pytest.approx(-0.05)  # after the shorter budget


def test_a_share_has_wilsons_interval():
    for met, of in ((0, 7), (3, 10), (50, 50), (31, 190)):
        own = stats.binomtest(met, of).proportion_ci(0.9, method="wilson")
        assert counts.share(met, of) == pytest.approx((met / of, own.low, own.high), abs=1e-12)
    assert np.isnan(counts.share(0, 0)).all()
