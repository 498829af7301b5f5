"""What a page says of one network's curve, and of families: against curves whose constants are known."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis import family_curves, one_network, scaling
from lib.page import charts, limit_figures, regime_figures

SIZES = 2.0 ** np.arange(0, 11)


def searches_of(c1=1600.0, c2=25.0, scatter=0.0):
    """A table of trials: three searches of one trial each that take c1/B + c2 steps, some of them more."""
    rows = [
        {"workload": "digits-mlp", "algorithm": "momentum", "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": b,
         "trials": 1, "replicate": r, "split": r, "stop": "goal", "checks": "geometric", "hits": 1, "precision": None,
         "max_steps": None, "space": None, "label_smoothing": 0.0, "goal": 0.04, "status": "met",
         "steps": (c1 / b + c2) * (1 + scatter * r), "last_step": 10**6}
        for b in SIZES for r in range(3)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return frame.assign(**{"steps@0.04": frame.steps, "steps@0.1": frame.steps / 4, "best_error": 0.04})


def test_a_doubling_saves_half_on_a_line_of_slope_minus_one_and_nothing_on_a_floor():
    assert one_network.saved_per_doubling(SIZES, 1024 / SIZES, 32)[0] == pytest.approx(0.5)
    assert one_network.saved_per_doubling(SIZES, np.maximum(1024 / SIZES, 32), 32) == pytest.approx((0.5, 0))
    mixed = np.random.default_rng(0).permutation(len(SIZES))
    curve = 1600 / SIZES + 25
    assert one_network.saved_per_doubling(SIZES[mixed], curve[mixed], 64) == one_network.saved_per_doubling(SIZES, curve, 64)


@pytest.mark.parametrize("at", [np.nan, np.inf, 0.001, 10**9])
def test_without_a_place_between_the_sizes_one_side_is_unknown(at):
    before, after = one_network.saved_per_doubling(SIZES, 1024 / SIZES, at)
    assert np.isnan(before) != np.isnan(after)


def test_lines_by_goal_find_the_constants_at_every_goal_and_leave_out_curves_without_a_floor():
    lines = one_network.lines_by_goal(searches_of(scatter=0.01)).set_index("goal")
    assert lines.critical.to_numpy() == pytest.approx([64, 64], rel=1e-3)
    assert lines.c1[0.04] / lines.c1[0.1] == pytest.approx(4, rel=1e-6)
    assert not len(one_network.lines_by_goal(searches_of(c2=1e-6)))


def test_the_slowest_search_over_the_fastest():
    found = scaling.steps_to_result(searches_of(scatter=0.5))
    assert one_network.slowest_over_fastest(found) == pytest.approx(2)
    assert np.isnan(one_network.slowest_over_fastest(found[found.replicate == 0]))


def test_a_change_is_clear_if_its_interval_leaves_out_one_and_the_surest_comes_first():
    rows = pd.DataFrame([("a", 1.2, 3.0), ("b", 0.5, 2.0), ("c", 0.0, 0.5), ("d", 1.5, np.inf)],
                        columns=["family", "ratio_low", "ratio_high"])  # fmt: skip
    assert list(family_curves.clear(rows).family) == ["c", "d", "a"]
    assert list(family_curves.clear(rows.iloc[:0]).family) == []


def figure(trials):
    goals = scaling.goals(trials)
    points = scaling.label(scaling.all_goals(trials))
    single = pd.concat([scaling.steps_to_result(trials, goal) for goal in goals])
    lines = one_network.lines_by_goal(trials)
    return regime_figures.regimes_chart(points, single, lines, charts.goal_slider(goals)).to_dict(), points


def test_the_figure_of_regimes_marks_the_critical_batch_size_only_where_it_was_measured():
    spec, points = figure(searches_of(scatter=0.01))
    assert "critical batch size" in str(spec) and "perfect scaling" in str(spec)
    assert [p["value"] for p in spec["params"] if p["name"] == "single"] == [False], "single searches wait to be asked for"
    trials = searches_of(scatter=0.3)
    single = pd.concat([scaling.steps_to_result(trials, goal) for goal in scaling.goals(trials)])
    wide, goals = regime_figures._by_goal(single)
    assert len(wide) == len(single) / len(goals), "every search is in the page once"
    again = wide.melt(["sparsity", "batch_size", "split"], goals, "goal", "steps").replace({"goal": goals})
    keys = ["sparsity", "batch_size", "split", "goal", "steps"]
    assert again.sort_values(keys)[keys].to_numpy().tolist() == single.sort_values(keys)[keys].to_numpy().tolist()
    assert "critical batch size" not in str(figure(searches_of(c2=1e-6, scatter=0.01))[0])
    menu = charts.menu("curve", ["one"], "one", "network")
    drawn = regime_figures.chosen_curves(points.assign(curve="one"), charts.by_sparsity([0.0]), menu).to_dict()
    assert "steps to result" in str(drawn)


def test_networks_are_sorted_and_no_mark_lies_at_infinity():
    rows = pd.DataFrame({
        "name": ["large", "small"], "algorithm": ["sgd", "momentum"], "goal": 0.04, "critical": [400.0, 30.0],
        "critical_low": [100.0, 20.0], "critical_high": [np.inf, 40.0], "identified": [False, True], "sizes": 4, "replicates": 1,
    })  # fmt: skip
    spec = limit_figures.ladder_of_networks(rows).to_dict()
    data = next(iter(spec["datasets"].values()))
    assert [row["name"] for row in data] == ["small", "large"]
    assert all(np.isfinite(row["critical_high"]) for row in data) and data[1]["range"] == "100–∞"
