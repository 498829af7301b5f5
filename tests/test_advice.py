"""What a curve advises: against the law it is drawn from, and against trying everything."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib.analysis import advice, hardware, scaling
from lib.analysis.hardware import Hardware
from lib.workloads.tasks import TASKS

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


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([1, 2, 4], "lies above all that was measured, batch sizes 1 and 4. Steps still fall; measure larger batches"),
        ([1024, 2048, 4096], "lies below all that was measured"),
        ([16, 128, 512], "Beyond B = 800, a size beyond those measured, it saves less than 10 %"),
        ([100, 400, 1600], "Even from the smallest batch, B = 100, doubling saves less than 40 %"),
        ([16, 64], "Between batch sizes 16 and 64, a doubled batch saved 45 % of the steps on average"),
        ([64], "The goal was reached at one batch size only, 64. A critical batch size takes at least 3"),
    ],
)
def test_a_curve_that_says_less_is_told_as_such(sizes, words):
    assert words in advice.sentences(advice.advise(searched(sizes)))


def test_the_goal_is_the_hardest_that_three_sizes_reach():
    trials = searched([4, 16, 64, 256])
    assert advice.fitting_goal(trials) == 0.1
    hard = trials.assign(**{"steps@0.1": trials["steps@0.1"].where(trials.batch_size <= 16)})
    assert advice.fitting_goal(hard) == 0.2 and advice.fitting_goal(hard, least=2) == 0.1
    assert advice.fitting_goal(hard[hard.batch_size <= 16]) == 0.1, "no goal is met at more"


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


WORK = SimpleNamespace(asks=TASKS["classification"], goals=(0.1, 0.2))


def test_an_easier_goal_and_a_limit_that_came_first_are_told():
    trials = scaling.at_goal(searched([4, 16, 64]).assign(max_steps=60), 0.1)
    assert advice.caveats(trials, WORK, None) == []
    short = trials.assign(steps=trials.steps.where(trials.batch_size > 4))
    short["status"] = np.where(short.batch_size == 4, "budget", "complete")
    assert advice.limited(short) == [4] and advice.limited(trials) == []
    (told,) = advice.caveats(short, WORK, None)
    assert "At batch size 4 the limit of 60 steps (max_steps) was reached before any trial met 10 %" in told
    assert "More trials do not help" in told
    easier = scaling.at_goal(trials.assign(**{"steps@0.1": np.nan}), 0.2)
    (told,) = advice.caveats(easier, WORK, None)
    assert "The hardest goal, 10 %, was met at none of 3 batch sizes. All below is for 20 %." in told


@pytest.mark.parametrize(
    ("examples", "chance", "goals", "words"),
    [
        (10_000, 0.9, (0.1, 0.2), None),
        (144, 0.9, (0.1, 0.2), None),  # the standard error is a quarter of the goal
        (143, 0.9, (0.1, 0.2), "a standard error), more than a quarter of the goal"),
        (1000, 0.9, (0.0005, 0.1), "each 0.1 %: a goal of 0.05 % allows no mistake at all"),
        (10_000, 0.12, (0.1, 0.2), "The goal of 10 % is easy"),
    ],
)
def test_a_validation_set_too_small_for_the_goal_is_told(examples, chance, goals, words):
    trials = scaling.at_goal(searched([4, 16], goals=[f"{g:g}" for g in goals]), 0.1)
    work = SimpleNamespace(asks=TASKS["classification"], goals=goals)
    told = " ".join(advice.caveats(trials, work, advice.Asked(examples, chance)))
    assert words in told if words else told == ""


def test_times_of_steps_come_from_the_searches():
    trials = searched([4, 16])
    head = dict.fromkeys(scaling.CURVE, "w") | {"sparsity": 0.0}
    counts = [(4, 10.0, 1000), (4, 30.0, 1000), (16, 5.0, 100), (64, 1.0, 0)]  # the last was stopped before its first step
    trials.attrs["provenance"] = [{**head, "batch_size": b, "wall_s": s, "trial_steps": n} for b, s, n in counts]
    assert advice.step_seconds(trials).set_index("batch_size").seconds.to_dict() == {4: 0.02, 16: 0.05}
    assert hardware.of_searches(trials, ("w", "w", "w", 0.0)) is None, "networks of the book are trained many at a time"
    own = [{**head, "workload": "a.py:f"} for head in trials.attrs["provenance"]]
    trials.attrs["provenance"] = own
    found = hardware.of_searches(trials, ("a.py:f", "w", "w", 0.0))
    assert found.to_dict("list") == {"batch_size": [4, 16], "seconds": [0.02, 0.05]}


def test_the_fastest_size_is_where_steps_times_seconds_is_least():
    sizes = [4, 16, 64, 256, 1024]
    trials, seconds = searched(sizes), pd.Series({b: 1e-3 + b * 2e-5 for b in (*sizes, 4096)})
    first, (low, high) = advice.fastest(trials, seconds)
    assert first == min(sizes, key=lambda b: law(b) * seconds[b]) and low <= first <= high
    with pytest.raises(ValueError, match="seconds: .* a batch size that met the goal"):
        advice.fastest(trials, seconds[[4096]])


@pytest.mark.parametrize(("what", "each"), [("seconds", 0), ("price", 1)])
def test_the_optimum_is_that_of_all_sizes_and_device_counts(what, each):
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
