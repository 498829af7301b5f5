"""What is said of training without backpropagation follows from planted searches and planted curves."""

import itertools

import numpy as np
import pandas as pd
import pytest

from lib import claims
from lib.analysis import scaling
from lib.analysis import without_backpropagation as without

SIZES = (1, 4, 16, 64, 256, 1024)


def searches(factors):
    """Five searches of each method, whose steps are so many times 900/B + 10; method -> factor."""
    random, parts = np.random.default_rng(0), []
    for (method, factor), b, replicate in itertools.product(factors.items(), SIZES, range(5)):
        steps = factor * (900 / b + 10) * random.lognormal(0, 0.05, 20)
        parts.append(pd.DataFrame({
            "workload": "w", "algorithm": method, "pruning": "connection-sensitivity", "sparsity": 0.0, "batch_size": b,
            "trials": 20, "replicate": replicate, "goal": 0.04, "trial": range(20), "status": "complete",
            "last_step": steps.max(), "steps": steps, "steps@0.04": steps,
        }))  # fmt: skip
    return scaling.summaries(pd.concat(parts), draws=100)[1]


@pytest.mark.parametrize(("slower", "verdict"), [(0.5, claims.HOLDS), (2.0, claims.FAILS)])
def test_sooner_is_fewer_steps_than_backpropagation(slower, verdict):
    found = without.sooner(searches({"sgd": 1.0, "lra": slower, "lra-1": slower}))
    assert list(found.name) == ["β = 0.1", "β = 1"] and found.effect.to_numpy() == pytest.approx(1 / slower, rel=0.05)
    assert claims.RULES["B2"].judge(found).verdict == verdict
    assert without.sooner(searches({"sgd": 1.0, "lra": slower})).name.tolist() == ["β = 0.1"]


def test_points_lost_are_of_the_trial_with_the_lowest_validation_error_on_the_same_split():
    rows = []
    for replicate, method in itertools.product(range(4), ("sgd", "lra", "lra-1")):
        for trial in range(3):
            test = 0.05 + 0.01 * replicate + {"sgd": 0, "lra": 0.02, "lra-1": 0.001 * replicate}[method] if trial == 1 else 0.5
            rows.append({"algorithm": method, "replicate": replicate, "best_error": 0.1 - 0.01 * (trial == 1),
                         "test@64": 0.9, "test@128": test})  # fmt: skip
    found = without.lost(pd.DataFrame(rows)).set_index("name")
    assert found.effect.tolist() == pytest.approx([2.0, 0.15]) and found.n.tolist() == [4, 4]
    assert found.low["β = 0.1"] == pytest.approx(2.0) and found.low["β = 1"] < 0.15 < found.high["β = 1"]
    assert claims.RULES["B1"].judge(found.reset_index()).verdict == claims.PART
    assert without.lost(pd.DataFrame()).empty


def runs(shape, sizes=(64, 128, 256), whitened=False, replicates=6):
    """Curves floor + (start - floor) shape(k / N), whose start and floor differ from run to run."""
    random, parts = np.random.default_rng(1), []
    for n in sizes:
        steps = np.unique(np.geomspace(1, 24 * n, 300).astype(int))
        for replicate in range(replicates):
            floor, start = random.uniform(0.1, 0.3), random.uniform(1, 2)
            values = floor + (start - floor) * shape(np.append(0, steps) / n * random.lognormal(0, 0.05))
            parts.append(pd.DataFrame({
                "replicate": replicate, "step": np.append(0, steps), "training": values, "validation": values + 0.1,
                "mistakes": values / 4, "features": n, "batch_size": 1350, "flips": 1, "take": "every", "whitened": whitened,
            }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def test_an_exponential_whose_constant_is_the_number_of_features_is_found_to_be_one():
    table = runs(lambda t: np.exp(-t))
    found = without.convergence(table)
    assert (found["first"] / found.features).tolist() == pytest.approx([1, 1, 1], rel=0.05)
    assert (found.steps / found.features).tolist() == pytest.approx([3, 3, 3], rel=0.05)
    assert found.slower.tolist() == pytest.approx([1, 1, 1], rel=0.1)
    assert ((found.steps_low <= found.steps) & (found.steps <= found.steps_high)).all()
    power = without.growth(table).iloc[0]
    assert power.power == pytest.approx(1, abs=0.05) and power.low < power.power < power.high
    assert claims.RULES["B3"].judge(without.straightness(table)).verdict == claims.HOLDS
    assert claims.RULES["B4"].judge(without.off_linear(table)).verdict == claims.HOLDS


def test_slow_tails_are_no_exponentials_and_other_powers_are_not_linear():
    slow = runs(lambda t: (1 + t) ** -1.5)
    assert claims.RULES["B3"].judge(without.straightness(slow)).verdict == claims.FAILS
    sizes = {64: 1.0, 1024: 0.25}  # steps grow as the root of N
    rooted = pd.concat(runs(lambda t, f=f: np.exp(-t / f), (n,)) for n, f in sizes.items())
    assert without.growth(rooted).power.item() == pytest.approx(0.5, abs=0.05)
    assert without.off_linear(rooted).effect.item() == pytest.approx(4, rel=0.15)
    assert claims.RULES["B4"].judge(without.off_linear(rooted)).verdict == claims.FAILS
    both = pd.concat([slow, runs(lambda t: np.exp(-t), whitened=True)])
    assert claims.RULES["B3"].judge(without.straightness(both)).part == "for uncorrelated features, not for features as they are"


def test_steps_to_a_goal_are_geometric_means_of_runs_that_all_met_it():
    table = runs(lambda t: np.exp(-t), (64,), replicates=3)
    found = without.to_goal(table, 0.6).iloc[0]
    firsts = [own[own.validation <= 0.6].step.min() for _, own in table.groupby("replicate")]
    assert found.steps == pytest.approx(np.exp(np.log(firsts).mean())) and found.low < found.steps < found.high
    assert (found.runs, found.met) == (3, 3)
    few = without.to_goal(table, float(table.validation.min()) + 1e-6).iloc[0]
    assert few.met == 1 and np.isnan(few.steps)
    with pytest.raises(ValueError, match="goal: 0 is not allowed; it must be a positive finite number"):
        without.to_goal(table, 0)
