"""What a curve advises: against the law it is drawn from, and against trying everything."""


import numpy as np
import pandas as pd
import pytest

from lib.analysis import advice, hardware, scaling
from lib.analysis.hardware import Hardware

C1, C2 = 20_000.0, 100.0


def law(batch_size):
    return C1 / np.asarray(batch_size, float) + C2


def searched(sizes, steps=law, goals=("0.1", "0.2"), name="w"):
    """A search at every size, whose best trial takes the steps of the law, and the others more; half of them for goal 0.2."""
    found = pd.DataFrame([
        {"batch_size": b, "steps": float(steps(b)) * slower, "seconds": s}
        for s, b in enumerate(sizes, 1) for slower in (1.0, 1.5, 4.0)
    ])  # fmt: skip
    fixed = {"workload": name, "algorithm": "sgd", "pruning": "none", "sparsity": 0.0, "trials": 3, "replicate": 0, "split": 0,
             "goal": 0.1, "status": "complete", "best_error": 0.3}  # fmt: skip
    ladder = {f"steps@{g}": found.steps / n for n, g in enumerate(goals, 1)}
    return found.drop(columns="seconds").assign(**fixed, **ladder, last_step=10 * found.steps)


def test_a_doubling_saves_what_the_law_says():
    sizes = np.array([1.0, 37.0, 200.0, 5000.0])
    assert advice.saved(sizes, C1 / C2) == pytest.approx(1 - law(2 * sizes) / law(sizes))
    for share in (0.05, 0.1, 0.25, 0.4, 0.49):
        at = advice.worth(C1 / C2, share)
        assert 1 - law(2 * at) / law(at) == pytest.approx(share)
    for share in (0, 0.5, -1, 1):
        with pytest.raises(ValueError, match="share: .* is not allowed"):
            advice.worth(200.0, share)


def test_the_critical_batch_size_of_a_law_is_found_and_told():
    given = advice.advise(searched([4, 16, 64, 256, 1024, 4096]))
    assert given.critical == pytest.approx(C1 / C2) and given.low < given.critical < given.high and given.inside
    assert (given.useful, given.useless) == (pytest.approx(50), pytest.approx(800))
    assert given.per_doubling == pytest.approx(1 - (law(4096) / law(4)) ** 0.1)
    told = advice.sentences(given)
    assert "Up to B = 50," in told and "Beyond B = 800, it saves less than 10 %" in told and "measured" not in told


UNMET = {"steps@0.1": np.nan, "steps@0.2": np.nan, "steps": np.nan}


def test_where_no_trial_met_a_goal_what_was_reached_and_a_goal_are_told():
    trials = searched([4, 16]).assign(**UNMET)
    trials["best_error"] = np.where(trials.batch_size == 4, 0.313, 0.25)
    told = r"lowest error of 6 trials is 0.25 \(0.313 at batch size 4 and 0.25 at batch size 16\). Set goals=\(0.32,\)"
    with pytest.raises(ValueError, match=f"goals: no trial met any; the {told}"):
        advice.fitting_goal(trials)
    pruned = searched([4, 16]).assign(sparsity=0.7)
    with pytest.raises(ValueError, match=f"goals: no trial met any; the {told}"):
        advice.fitting_goal(pd.concat([trials, pruned], ignore_index=True))
    with pytest.raises(ValueError, match="larger max_steps before an easier goal: .* same for all examples costs 0.31"):
        advice.fitting_goal(trials, asked=advice.Asked(100, 0.31))
    with pytest.raises(ValueError, match="all 6 diverged or died"):
        advice.fitting_goal(trials.assign(status="infeasible", best_error=np.nan))


def test_the_optimum_is_that_of_all_sizes_and_device_counts():
    what, each = "price", 1
    sizes, most = [4, 16, 64, 256, 1024], Hardware(8, 500.0, 4.0, 1e8, 1e-3, 2.0)
    trials = searched(sizes)
    steps = scaling.across_replicates(scaling.steps_to_result(trials)).set_index("batch_size").steps
    curve = scaling.curve_of(scaling.steps_to_result(trials))
    drawn, step = scaling.draws(curve), hardware.best_step(most, sizes, 10**5)
    found = hardware.optimum(steps, drawn, step, what)
    tried = {
        (b, w): hardware.to_goal(Hardware(w, 500.0, 4.0, 1e8, 1e-3, 2.0), np.array([b]), law([b]), 10**5)[each][0]
        for b in sizes for w in (1, 2, 4, 8)
    }  # fmt: skip
    assert (found.batch_size, found.devices) == min(tried, key=tried.get) and found.value == pytest.approx(min(tried.values()))
    assert found.sizes[0] <= found.batch_size <= found.sizes[1] and found.values[0] < found.value < found.values[1]
    with pytest.raises(ValueError, match="what: 'speed' is not allowed"):
        hardware.optimum(steps, drawn, step, "speed")
