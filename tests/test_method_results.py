"""Training methods side by side: planted curves come out as planted, claims follow in either direction, plans share records."""

import itertools

import numpy as np
import pandas as pd
import pytest

from chapters.which_method import claims
from lib.analysis import method_results, scaling
from lib.claims import AGAINST, FOR
from lib.claims.claim import REGISTRY, judged
from lib.page import method_figures, parameters
from lib.studies import plans

SIZES = (1, 4, 16, 64, 256, 1024)
NO_TIMES = pd.DataFrame(columns=["workload", "algorithm", "batch_size", "ratio"])


def searched(algorithm, c1, c2, searches=5, sizes=SIZES, sparsity=0.0, trials=40, hits=40, seed=0):
    """Trials whose steps scatter above c1/B + c2; of each search the first hits are known."""
    random = np.random.default_rng([seed, len(algorithm)])
    cells = []
    for b, search in itertools.product(sizes, range(searches)):
        steps = np.sort((c1 / b + c2) * random.lognormal(0, 0.1, trials))
        known = np.where(np.arange(trials) < hits, steps, np.nan)
        cells.append(pd.DataFrame({
            "workload": "digits-mlp", "algorithm": algorithm, "pruning": "connection-sensitivity", "sparsity": sparsity,
            "batch_size": b, "trials": trials, "replicate": search, "split": search, "goal": 0.04, "trial": range(trials),
            "status": "complete", "last_step": np.nanmax(known), "steps": known, "steps@0.04": known,
        }))  # fmt: skip
    return pd.concat(cells, ignore_index=True)


def curves_of(*curves):
    return scaling.curves(pd.concat(curves))


def test_ratios_to_sgd_are_those_planted_and_an_interval_holds_them():
    found = method_results.over(curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10), searched("momentum", 4000, 40)))
    assert set(found.algorithm) == {"adam", "momentum"} and set(found.what) == set(method_results.QUANTITIES)
    ratio = found.set_index(["algorithm", "what"])
    planted = {"adam": (2000, 10), "momentum": (4000, 40)}
    for name, (c1, c2) in planted.items():
        assert ratio.loc[(name, "critical"), "ratio"] == pytest.approx((c1 / c2) / 50, rel=0.15)
        exact = [(c1 / b + c2) / (2000 / b + 40) for b in SIZES]
        for what, ends in (("small", exact[:2]), ("large", exact[-2:])):
            row = ratio.loc[name, what]
            assert row.ratio == pytest.approx((ends[0] * ends[1]) ** 0.5, rel=0.1)
            assert row.ratio_low < row.ratio < row.ratio_high and row.n == row.searches == 5
    assert method_results.over(curves_of(searched("adam", 2000, 10))).empty  # with none to divide by


def test_two_methods_are_compared_on_dense_networks_at_batch_sizes_that_both_have():
    adam = searched("adam", 2000, 10, sizes=SIZES[:4])
    curves = curves_of(searched("sgd", 2000, 40), adam, searched("adam", 2000, 5, sparsity=0.9))
    (effect,) = method_results.between(curves, "sgd", "adam", method_results.at_end(1)).values()
    exact = [(2000 / b + 40) / (2000 / b + 10) for b in (16, 64)]
    assert np.exp(effect.value) == pytest.approx((exact[0] * exact[1]) ** 0.5, rel=0.1)
    few = curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10, sizes=(2, 8, 32)))
    assert method_results.between(few, "sgd", "adam", method_results.at_end(0)) == {}


# --- claims -----------------------------------------------------------------------------------------------------------

# For every claim: its methods with c1 and c2 such that the records are for it, and such that they are against it.
BETTER, WORSE, SAME = (2000, 5), (8000, 160), (2000, 40)
CASES = {
    "O1": ({"lars-warmup": SAME, "clars": BETTER}, {"lars-warmup": BETTER, "clars": SAME}),
    "O2": ({"nesterov": SAME, "lars": SAME, "adam": BETTER, "lamb": SAME},
           {"nesterov": WORSE, "lars": SAME, "adam": WORSE, "lamb": SAME}),
    "O3": ({"momentum": SAME, "adam": BETTER, "kfac": BETTER}, {"momentum": BETTER, "adam": SAME, "kfac": SAME}),
    "O4": ({"momentum": WORSE, "momentum-ema": SAME}, {"momentum": SAME, "momentum-ema": WORSE}),
    "O5": ({"momentum": WORSE, "kfac": SAME}, {"momentum": SAME, "kfac": WORSE}),
    "O6": ({"muon": BETTER, "adam": SAME}, {"muon": SAME, "adam": BETTER}),
    "O7": ({"sgd": SAME, "momentum": SAME, "adam": SAME}, {"sgd": WORSE, "momentum": WORSE, "adam": SAME}),
}  # fmt: skip


@pytest.mark.parametrize("key", CASES)
def test_claims_follow_planted_curves_either_way_and_lack_rows_without_their_methods(key, monkeypatch):
    def found(curves):
        monkeypatch.setattr(claims, "curves", lambda whole=True: curves)
        return judged(REGISTRY.claims[key], REGISTRY.functions[key]())

    for planted, verdict in zip(CASES[key], (FOR, AGAINST)):
        parts = {name: searched(name, *constants, seed=n) for n, (name, constants) in enumerate(planted.items())}
        claim = found(curves_of(*parts.values()))
        assert {group.verdict for group in claim.groups} == {verdict} and all(group.n == 5 for group in claim.groups)
        for left_out in parts:
            fewer = found(curves_of(*(curve for name, curve in parts.items() if name != left_out)))
            assert len(fewer.groups) < len(claim.groups)


def test_a_critical_batch_size_of_few_whole_steps_says_so(monkeypatch):
    curves = curves_of(searched("momentum", 2000, 40), searched("kfac", 200, 4), searched("adam", 2000, 40))
    monkeypatch.setattr(claims, "curves", lambda whole=True: curves)
    adam, kfac = claims.preconditioning()
    assert not adam.note and "whole steps" in kfac.note


def test_time_is_steps_times_the_time_of_a_step_read_between_the_sizes_timed():
    curves = curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10))
    times = pd.DataFrame([("digits-mlp", "adam", 16, 4.0), ("digits-mlp", "adam", 256, 1.0)], columns=NO_TIMES.columns)
    found = method_results.in_time(curves, times).set_index("batch_size")
    assert found.dearer.to_dict() == pytest.approx({1: 4, 4: 4, 16: 4, 64: 2, 256: 1, 1024: 1})
    assert (found.time / found.steps).to_numpy() == pytest.approx(found.dearer.to_numpy())
    assert method_results.in_time(curves, NO_TIMES).empty


def test_the_more_devices_share_a_batch_the_dearer_a_dear_update():
    curves = curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10))
    dear = [("digits-mlp", "adam", b, ratio) for b, ratio in ((16, 8.0), (256, 2.0), (4096, 1.0))]
    found = method_results.shared_out(curves, pd.DataFrame(dear, columns=NO_TIMES.columns)).set_index("share")
    assert [*found.index] == [16, 256] and set(found.batch_size) == {1024}  # no share is larger than the batch
    steps = (2000 / 1024 + 10) / (2000 / 1024 + 40)
    assert found.steps.to_numpy() == pytest.approx(steps, rel=0.1) and found.time[256] == pytest.approx(2 * steps, rel=0.1)
    assert found.time[16] == pytest.approx(4 * found.time[256]) and found.time_low[256] < found.time[256] < found.time_high[256] < 1
    assert method_results.shared_out(curves, NO_TIMES).empty
    few = curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10), searched("muon", 2000, 5).query("batch_size <= 256"))
    times = pd.DataFrame([*dear, ("digits-mlp", "muon", 16, 1.0)], columns=NO_TIMES.columns)
    assert set(method_results.shared_out(few, times).batch_size) == {256}  # the largest that all have


# --- few trials -------------------------------------------------------------------------------------------------------


def test_the_best_of_five_is_that_of_five_drawn_trials_and_unknown_where_searches_ended_early():
    whole = searched("sgd", 2000, 40, searches=9)
    found = method_results.with_few_trials(whole).set_index("batch_size")
    random = np.random.default_rng(0)
    for b in (1, 1024):
        steps = [own.steps.to_numpy() for _, own in whole[whole.batch_size == b].groupby("replicate")]
        drawn = np.median([np.median([random.choice(s, 5, replace=False).min() for _ in range(400)]) for s in steps])
        assert found.steps[b] == pytest.approx(drawn, rel=0.03) and found.least[b] < found.steps[b]
    assert method_results.with_few_trials(searched("sgd", 2000, 40, hits=2)).empty
    known = method_results.with_few_trials(pd.concat([whole, searched("adam", 2000, 10, hits=2)]))
    assert known.empty  # no goal at which all methods know


# --- figures ----------------------------------------------------------------------------------------------------------


def texts(chart):
    """All that a chart's data hold."""
    return str(chart.to_dict()["datasets"])


def test_figures_show_what_they_are_given_and_say_when_there_is_nothing():
    curves = curves_of(searched("sgd", 2000, 40), searched("adam", 2000, 10))
    over = method_results.over(curves).assign(method="Adam", network="a net")
    model = pd.DataFrame({"what": ["critical", "critical"], "method": ["Adam", "K-FAC"], "ratio": [22.0, 170.0]})
    shown = texts(method_figures.beside_prediction(over, model))
    assert "22.0" in shown and "170.0" not in shown and "critical batch size" in shown  # no row for what is not measured
    endless = over.assign(ratio_high=np.inf)
    assert "inf" not in texts(method_figures.beside_prediction(endless, model)).replace("∞", "").lower()
    assert "No method" in texts(method_figures.beside_prediction(over[:0], model))
    times = pd.DataFrame([("digits-mlp", "adam", 16, 2.0)], columns=NO_TIMES.columns)
    names = {"time": "ratio", "time_low": "ratio_low", "time_high": "ratio_high"}
    rows = method_results.in_time(curves, times).rename(columns=names)
    assert "a net" in texts(method_figures.time_beside_steps(rows.assign(network="a net", kind="time")))
    assert "timed" in texts(method_figures.time_beside_steps(rows[:0]))
    found = pd.DataFrame({"power": [0.0, 1.0], "c2": [670.0, 1.0], "critical": [690.0, 1e5]})
    assert "K-FAC" in texts(method_figures.by_power(found, pd.DataFrame({"power": [1.0], "method": ["K-FAC"]})))


def test_the_constants_of_a_curve_without_a_floor_are_no_numbers():
    """The fit ends somewhere, at a critical batch size of 10¹² or so."""
    assert method_figures.finite(1.6e12, 93, np.inf) == "∞ (93–∞)"
    assert method_figures.finite(7.9e-9, 0, 110) == "0 (0–110)"
    assert method_figures.finite(2, 1.5, 3) == "2 (1.5–3)" and method_figures.finite(np.nan, 1, 2) == "—"


def test_methods_are_compared_where_all_have_several_searches():
    rows = [("sure", "a", 5), ("sure", "b", 3), ("sure", "c", 1), ("on one", "a", 5), ("once on b", "a", 5), ("once on b", "b", 1)]
    table = pd.DataFrame(rows, columns=["algorithm", "workload", "searches"])
    found = method_results.everywhere(table)
    assert {*found.algorithm} == {"sure"} and {*found.workload} == {"a", "b"}
    single = method_results.everywhere(table[table.searches == 1])
    assert single.empty, "no method is on both networks"
    assert {*method_results.everywhere(table[table.workload == "c"]).algorithm} == {"sure"}
    assert method_results.everywhere(table.iloc[:0]).empty


# --- plans ------------------------------------------------------------------------------------------------------------


def test_the_first_cells_of_the_studies_are_every_method_at_powers_of_four_on_one_split():
    cells = plans.study("digits-which").cells
    methods = list(dict.fromkeys(c.algorithm for c in cells))
    first = cells[: len(methods) * len(plans.DIGITS) * len(plans.FOURS)]
    assert {c.split for c in first} == {3} and {c.batch_size for c in first} == set(plans.FOURS)
    assert {c.algorithm for c in first} == set(plans.EVERYWHERE) and methods[0] == method_results.BASE
    assert len(cells) == len(methods) * 2 * 11 * 5  # networks, batch sizes, searches


def test_searches_that_other_studies_plan_are_the_same_cells():
    elsewhere = ("digits-searches", "fc-searches", "mnist", "mnist-algorithms")

    def search(cell):
        return cell.workload, cell.algorithm, cell.batch_size, cell.sparsity, cell.replicate, cell.split

    known = {search(cell): cell for name in elsewhere for cell in plans.study(name).cells}
    shared = {name: [c for c in plans.study(name).cells if search(c) in known] for name in plans.WHICH}
    assert all(known[search(cell)] == cell for cells in shared.values() for cell in cells)
    assert {c.algorithm for c in shared["mnist-fc-which"]} == {"sgd", "momentum"}
    assert {"sgd", "momentum", "nesterov"} == {c.algorithm for name in ("digits-which", "mnist-which") for c in shared[name]}


def test_a_grid_takes_the_searches_that_are_planned_and_an_own_workload_has_one_split():
    grid = method_results.grid("digits-mlp", [16, 64], ["sgd", "adam"], 5, 100)
    assert set(grid.cells) < set(plans.study("digits-which").cells) and len(grid.cells) == 20
    assert method_results.grid("digits-mlp", [16, 64], ["adam"], 5, 100) == grid, "ratios divide by SGD"
    assert {c.split for c in method_results.grid("digits-mlp", [16], ["sgd"], 7, 16).cells} == set(range(3, 10))
    own = method_results.grid("chapters/own/next_letter.py:next_letter", [16], ["sgd"], 2, 16).cells
    assert {c.split for c in own} == {0} and {c.replicate for c in own} == {1, 2}


def test_methods_are_read_from_a_text():
    kind = parameters.Methods(("sgd", "adam"))
    assert kind.read("all") == ["sgd", "adam"] and kind.read("momentum sgd") == ["momentum", "sgd"]
    for wrong in ("", "sgd sgd", "sdg", 3, None, "all sgd", "no.py:f"):
        with pytest.raises(ValueError):
            kind.read(wrong)
