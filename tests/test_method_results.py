"""Training methods side by side: planted curves come out as planted, claims follow in either direction, plans share records."""

import itertools

import numpy as np
import pandas as pd
import pytest

from lib import claims
from lib.analysis import method_results, scaling
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


def drawn(*curves):
    return scaling.summaries(pd.concat(curves), draws=200)[1]


def test_a_claim_is_priced_by_the_searches_that_it_turns_on():
    """Not by all methods, batch sizes and networks of the page."""
    names = ("lars-warmup", "clars", "sgd", "adam", "momentum")
    trials = pd.concat([searched(name, 2000, 40) for name in names] + [searched("muon", 2000, 40, searches=2)])
    asked = {key: method_results.asked(trials, key) for key in ("O1", "O6", "O7")}
    (own,) = asked["O1"].values()
    assert list(asked["O1"]) == ["MLP on digits"] and set(own.algorithm) == {"lars-warmup", "clars"}
    assert set(own.batch_size) == {256, 1024}
    assert {*asked["O6"]["MLP on digits"].algorithm} == {"adam"}, "two searches of Muon are too few for a claim"
    pairs = {name: (set(part.algorithm), set(part.batch_size)) for name, part in asked["O7"].items()}
    assert pairs == {"SGD and Adam": ({"sgd", "adam"}, {1, 4}), "momentum and Adam": ({"momentum", "adam"}, {1, 4})}


def test_ratios_to_sgd_are_those_planted_and_an_interval_holds_them():
    found = method_results.over(drawn(searched("sgd", 2000, 40), searched("adam", 2000, 10), searched("momentum", 4000, 40)))
    assert set(found.algorithm) == {"adam", "momentum"} and set(found.what) == set(method_results.QUANTITIES)
    ratio = found.set_index(["algorithm", "what"])
    planted = {"adam": {"critical": 4, "c1": 1, "c2": 0.25}, "momentum": {"critical": 2, "c1": 2, "c2": 1}}
    for name, what in ratio.index:
        row = ratio.loc[name, what]
        assert row.ratio == pytest.approx(planted[name][what], rel=0.15), (name, what)
        assert row.ratio_low <= row.ratio <= row.ratio_high
    assert method_results.over(drawn(searched("adam", 2000, 10))).empty  # with none to divide by


def test_steps_at_either_end_and_their_growth():
    curves = drawn(searched("sgd", 2000, 40), searched("adam", 2000, 10))
    sgd, adam = (curves["digits-mlp", name, "connection-sensitivity", 0.0] for name in ("sgd", "adam"))
    small, large = (np.median(method_results.at_ends(end)(sgd, adam)) for end in (-1, 1))
    exact = {b: (2000 / b + 40) / (2000 / b + 10) for b in SIZES}
    assert small == pytest.approx((exact[1] * exact[4]) ** 0.5, rel=0.1)
    assert large == pytest.approx((exact[256] * exact[1024]) ** 0.5, rel=0.1)
    assert np.median(method_results.growth(sgd, adam)) == pytest.approx(large / small, rel=0.05)
    every = np.exp(np.mean([np.log(r) for r in exact.values()]))
    assert np.median(method_results.at_ends(0)(sgd, adam)) == pytest.approx(every, rel=0.1)


def test_pairs_are_counted_that_lie_in_the_predicted_order():
    predicted = {"sgd": 1.0, "momentum": 12.0, "nesterov": 12.0, "adam": 22.0, "kfac": 170.0}
    assert method_results.in_order({"sgd": 1.0, "momentum": 1.5, "nesterov": 2.0, "adam": 2.5}, predicted) == (5, 5)
    assert method_results.in_order({"adam": 1.0, "sgd": 2.0, "mine": 9.0}, predicted) == (0, 1)


# --- claims -----------------------------------------------------------------------------------------------------------

# For every claim: its methods with c1 and c2 such that it holds, and such that it does not.
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
    "O7b": ({"sgd": SAME, "adam": BETTER}, {"sgd": BETTER, "adam": SAME}),
}  # fmt: skip


@pytest.mark.parametrize("key", CASES)
def test_claims_follow_planted_curves_either_way_and_wait_for_their_methods(key):
    for planted, verdict in zip(CASES[key], (claims.HOLDS, claims.FAILS)):
        curves = {name: searched(name, *constants, seed=n) for n, (name, constants) in enumerate(planted.items())}
        found = method_results.claimed(drawn(*curves.values()), NO_TIMES)[key]
        assert claims.RULES[key].judge(found).verdict == verdict, verdict
        for left_out in curves:
            some = drawn(*(curve for name, curve in curves.items() if name != left_out))
            assert method_results.claimed(some, NO_TIMES)[key].empty, left_out
        few = drawn(*(curve[curve.replicate < method_results.SEVERAL - 1] for curve in curves.values()))
        assert method_results.claimed(few, NO_TIMES)[key].empty


def test_fewer_steps_are_no_less_time_where_each_takes_longer():
    curves = drawn(searched("momentum", 2000, 40), searched("kfac", 2000, 10))
    for dearer, verdict in ((1.5, claims.HOLDS), (10.0, claims.FAILS)):
        rows = [("digits-mlp", "momentum", b, 1.0) for b in (16, 1024)] + [("digits-mlp", "kfac", b, dearer) for b in (16, 1024)]
        times = pd.DataFrame(rows, columns=NO_TIMES.columns)
        assert claims.RULES["O5b"].judge(method_results.claimed(curves, times)["O5b"]).verdict == verdict
    assert method_results.claimed(curves, NO_TIMES)["O5b"].empty


def test_time_is_steps_times_the_time_of_a_step_read_between_the_sizes_timed():
    curves = drawn(searched("sgd", 2000, 40), searched("adam", 2000, 10))
    times = pd.DataFrame([("digits-mlp", "adam", 16, 4.0), ("digits-mlp", "adam", 256, 1.0)], columns=NO_TIMES.columns)
    found = method_results.in_time(curves, times).set_index("batch_size")
    assert found.dearer.to_dict() == pytest.approx({1: 4, 4: 4, 16: 4, 64: 2, 256: 1, 1024: 1})
    assert (found.time / found.steps).to_numpy() == pytest.approx(found.dearer.to_numpy())
    assert method_results.in_time(curves, NO_TIMES).empty


def test_the_quickest_method_saves_time_not_only_steps():
    """At 1,024 examples, 0.29 times the steps are no gain if a step takes four times as long."""
    curves = drawn(searched("sgd", 2000, 40), searched("adam", 2000, 10), searched("momentum", 2000, 20))
    common = method_results.everywhere(method_results.over(curves))
    for dear, (name, time) in {1.0: ("adam", 12 / 42), 2.0: ("momentum", 22 / 42), 4.0: ("momentum", 22 / 42)}.items():
        times = pd.DataFrame([("digits-mlp", "adam", 1024, dear), ("digits-mlp", "momentum", 1024, 1.0)], columns=NO_TIMES.columns)
        (found,) = method_results.quickest(method_results.in_time(curves, times), common).itertuples()
        assert (found.algorithm, found.batch_size, found.rivals) == (name, 1024, 2) and found.time == pytest.approx(time, rel=0.1)
    slow = pd.DataFrame([("digits-mlp", "adam", 1024, 9.0)], columns=NO_TIMES.columns)
    unsaved = method_results.quickest(method_results.in_time(curves, slow), common)
    (found,) = unsaved.itertuples()
    assert (found.algorithm, found.time) == ("sgd", 1)
    none = method_results.quickest(method_results.in_time(curves, NO_TIMES), common)
    assert none.empty
    assert method_results.on_every_network(unsaved) is method_results.on_every_network(none) is None


def test_a_method_is_advised_only_where_it_is_the_quickest_on_every_network():
    same, other = pd.DataFrame({"algorithm": ["muon", "muon"]}), pd.DataFrame({"algorithm": ["muon", "adam"]})
    assert method_results.on_every_network(same) == "muon"
    assert method_results.on_every_network(other) is None


def test_the_more_devices_share_a_batch_the_dearer_a_dear_update():
    curves = drawn(searched("sgd", 2000, 40), searched("adam", 2000, 10))
    dear = [("digits-mlp", "adam", b, ratio) for b, ratio in ((16, 8.0), (256, 2.0), (4096, 1.0))]
    found = method_results.shared_out(curves, pd.DataFrame(dear, columns=NO_TIMES.columns)).set_index("share")
    assert [*found.index] == [16, 256] and set(found.batch_size) == {1024}  # no share is larger than the batch
    steps = (2000 / 1024 + 10) / (2000 / 1024 + 40)
    assert found.steps.to_numpy() == pytest.approx(steps, rel=0.1) and found.time[256] == pytest.approx(2 * steps, rel=0.1)
    assert found.time[16] == pytest.approx(4 * found.time[256]) and found.time_low[256] < found.time[256] < found.time_high[256] < 1
    assert method_results.shared_out(curves, NO_TIMES).empty
    few = drawn(searched("sgd", 2000, 40), searched("adam", 2000, 10), searched("muon", 2000, 5).query("batch_size <= 256"))
    times = pd.DataFrame([*dear, ("digits-mlp", "muon", 16, 1.0)], columns=NO_TIMES.columns)
    assert set(method_results.shared_out(few, times).batch_size) == {256}  # the largest that all have


def test_a_kept_half_life_is_judged_by_retrained_settings_and_a_missed_goal_counts():
    def costs(kept, held):
        rows = [(rule, b, steps * (1 + b % 3 / 10), b == 16, "digits-mlp") for b in SIZES
                for rule, steps in ((method_results.KEPT, kept), (method_results.HELD, held))]  # fmt: skip
        return pd.DataFrame(rows, columns=["rule", "batch_size", "middle", "base", "workload"])

    for (kept, held), verdict in {(200, 100): claims.HOLDS, (100, 200): claims.FAILS, (np.inf, 100): claims.HOLDS}.items():
        found = method_results.kept_beta(costs(kept, held))
        assert claims.RULES["O7c"].judge(found).verdict == verdict and found.n.item() == 2  # sizes below 16
    assert method_results.kept_beta(costs(200, 100)).effect.item() == pytest.approx(2)
    assert method_results.kept_beta(costs(200, 100).iloc[1:]).empty  # not retrained everywhere


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
    curves = drawn(searched("sgd", 2000, 40), searched("adam", 2000, 10))
    over = method_results.over(curves).assign(method="Adam", network="a net", searches=5)
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


def test_claims_without_searches_are_planned_and_not_undecided():
    waiting, known = claims.planned(), claims.judge()
    assert not set(waiting) & set(known) and set(waiting) | set(known) == set(claims.RULES)
    assert all(group.n for key, claim in known.items() if key.startswith("O") for group in claim.groups)
