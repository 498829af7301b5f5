"""Compressors side by side, on a tiny study."""

import numpy as np
import pandas as pd
import pytest

from lib import claims
from lib.analysis import evidence, message_results, scaling
from lib.engine.check_steps import last_check
from lib.measuring import sweeps
from lib.messages.settings import Messages, target
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload
from lib.workloads.models import build, parameter_count


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    kinds = [Messages(4, "dense", 1.0, False), Messages(4, "top-k", 0.05), Messages(4, "rand-k", 0.05, False)]
    cells = tuple(
        Cell("digits-mlp", 64, trials=3, stop="budget", max_steps=64, messages=m, replicate=r)
        for m in kinds
        for r in (0, 1)
    )
    return sweeps.results(Study("t", "t", cells), "full", folder=tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def found(trials):
    return message_results.best(trials)


def test_what_was_sent_is_what_was_asked_for(found):
    assert found[found.method != "Gaussian-k"].over.to_numpy() == pytest.approx(1)
    last = found[found.budget == 64].groupby("method").megabytes.first()
    steps = last_check(64)
    assert 60 < steps <= 64
    assert last["dense"] == pytest.approx(steps * 4 * 8970 / 1e6)
    assert last["Top-k"] == pytest.approx(steps * 8 * 448 / 1e6)


def test_a_choice_at_the_edge_of_the_search_is_flagged(found):
    for replicate, own in found.groupby("replicate"):
        rates = Cell("digits-mlp", 64, trials=3, replicate=replicate).draw()["learning_rate"]
        middle = sorted(rates)[1]
        assert (own.edge == ~own.learning_rate.sub(middle).abs().lt(1e-9)).all()
        assert (own.highest == own.learning_rate.sub(max(rates)).abs().lt(1e-9)).all()


def test_an_edge_is_that_of_the_workloads_own_search(trials):
    """Another workload in the same table was searched more widely."""
    wider = trials.assign(workload="digits-cnn", learning_rate=100 * trials.learning_rate)
    own, both = message_results.best(trials), message_results.best(pd.concat([trials, wider], ignore_index=True))
    kept = both[both.workload == trials.workload.iloc[0]]
    assert kept.edge.any() and kept.edge.tolist() == own.edge.tolist() and kept.highest.tolist() == own.highest.tolist()


def test_gaps_pair_runs_of_one_seed(found):
    gap = message_results.gaps(found, "Top-k")
    assert sorted(gap.replicate) == [0, 1]
    ends = found[found.budget == 64].set_index(["method", "replicate"]).test
    for _, row in gap.iterrows():
        assert row.gap == pytest.approx(100 * (ends["Top-k", row.replicate] - ends["dense", row.replicate]))
    assert (message_results.gaps(found, "Rand-k").gap > message_results.gaps(found, "Top-k").gap).all()
    assert message_results.gaps(found, "Gaussian-k").empty


def test_gaps_at_equal_amounts_sent():
    budgets = [1, 2, 4, 8]
    greedy = pd.DataFrame(
        {"method": "greedy", "budget": budgets, "megabytes": [3, 6, 12, 24], "test": [0.9, 0.7, 0.5, 0.1]}
    )
    frugal = pd.DataFrame(
        {"method": "frugal", "budget": budgets, "megabytes": [1, 2, 4, 8], "test": [0.8, 0.6, 0.4, 0.2]}
    )
    both = pd.concat([greedy, frugal]).assign(workload="w", replicate=0, density=0.1, noise=0.01)
    found = message_results.matched_gaps(both, "greedy", "frugal")
    assert found.megabytes.tolist() == [8]  # all that the frugal one sends; between the greedy one's budgets 2 and 4
    share = np.log(8 / 6) / np.log(2)
    assert found.gap.tolist() == pytest.approx([100 * (0.7 - 0.2 * share - 0.2)])
    assert found.more.tolist() == [True]
    assert found.noise.tolist() == pytest.approx([100 * np.hypot(0.01, 0.01)])
    assert message_results.matched_gaps(both, "frugal", "greedy").gap.tolist() == pytest.approx((-found.gap).tolist())
    assert message_results.matched_gaps(both, "greedy", "absent").empty
    assert message_results.matched_gaps(message_results.best(pd.DataFrame()), "greedy", "frugal").empty


def test_claims_judge_planted_gaps():
    gap = pd.DataFrame({"gap": [0.1, 0.2, 0.0], "noise": 0.1, "workload": "w", "replicate": [0, 1, 2], "density": 0.001,
                        "edge": False})  # fmt: skip

    def little(gap):
        return claims.RULES["T4"].judge(evidence.lost_at_best(gap, message_results.means(gap))).verdict

    assert little(gap) == claims.HOLDS and little(gap[:0]) == claims.OPEN
    assert little(gap.assign(gap=5.0)) == claims.FAILS and little(gap.assign(gap=5.0, noise=9.0)) == claims.OPEN
    assert little(gap.assign(noise=2.0)) == claims.OPEN  # noise helps no claim to hold, and refutes none
    assert little(gap.assign(noise=0.6)) == claims.OPEN  # the mean, 0.1, and 1.645 times the noise of one test set
    assert little(pd.concat([gap, gap.assign(workload="x", gap=5.0)])) == claims.PART
    assert little(gap.assign(gap=5.0, edge=True)) == claims.OPEN and little(gap.assign(edge=True)) == claims.HOLDS

    def far(gap):
        return claims.RULES["T4b"].judge(evidence.lost_at_best(gap, message_results.means(gap))).verdict

    behind = gap.assign(gap=40.0, edge=False)
    assert far(behind) == claims.HOLDS and far(behind.assign(gap=3.0)) == claims.FAILS
    assert far(behind.assign(edge=True)) == claims.OPEN  # tuned better, it might lose less
    both = pd.concat([gap.assign(gap=gap.gap + 3.0), gap.assign(gap=gap.gap[::-1].to_numpy(), density=0.01)])
    nearer = claims.RULES["T9"].judge
    assert nearer(evidence.narrowed(both)).verdict == claims.HOLDS
    assert nearer(evidence.narrowed(both.assign(gap=-both.gap))).verdict == claims.FAILS
    wild = both.assign(gap=both.gap * np.tile([1, -1, 1], 2))  # one seed says the opposite
    assert nearer(evidence.narrowed(wild)).verdict == nearer(evidence.narrowed(gap)).verdict == claims.OPEN


def test_planted_costs_multiply():
    rows = [
        {"workload": w, "batch_size": b, "goal": 0.1, "sparsity": s, "density": d,
         "steps": (100 if w == "one" else 700) * (1 + 2 * (s > 0)) * (1 + 4 * (d < 1))}
        for w in ("one", "other")
        for b in (16, 64)
        for s in (0.0, 0.9)
        for d in (1.0, 0.01)
    ]  # fmt: skip
    curves = pd.DataFrame(rows)
    costs = message_results.joint_costs(curves)
    assert len(costs) == 4 and costs.both.to_numpy() == pytest.approx(15) and costs.over.to_numpy() == pytest.approx(1)
    assert costs.total.to_numpy() == pytest.approx(7) and costs.beyond.to_numpy() == pytest.approx(15 / 7)
    alone = (curves.sparsity == 0) & (curves.density == 0.01)
    assert message_results.joint_costs(curves[~alone]).empty
    assert message_results.joint_costs(message_results.joint_curves(pd.DataFrame())).empty


def test_medians_of_planted_costs_and_of_their_draws():
    costs = pd.DataFrame({"workload": ["a", "a", "a", "b"], "over": [1.0, 2.0, 6.0, 3.0], "beyond": [2.0, 4.0, 12.0, 5.0]})
    draws = pd.concat([costs.assign(draw=n, over=costs.over * n, beyond=costs.beyond) for n in range(1, 102)])
    found = message_results.joint_medians(costs, draws)
    assert found.pairs.tolist() == [3, 1] and found.over.tolist() == [2, 3] and found.beyond.tolist() == [4, 5]
    assert found.loc["a", ["over_low", "over_high"]].tolist() == [2 * 6, 2 * 96]
    assert found.loc["b", ["beyond_low", "beyond_high"]].tolist() == [5, 5]
    assert message_results.joint_medians(costs[:0], draws[:0]).empty


def test_what_is_sent_between_budgets_is_per_step_and_per_entry_asked_for():
    """One run asks for k of d entries, sends k a step for two steps, 3k for the next two, and nothing for four."""
    k = target(0.01, parameter_count(build(workload("digits-mlp").model)))
    run = {"workload": "digits-mlp", "compressor": "gaussian-k", "feedback": True, "density": 0.01, "replicate": 0, "trial": 0,
           "learning_rate": 0.1, "status": "budget", "checks": "geometric", "max_steps": 8, "batch_size": 16}  # fmt: skip
    sent = {1: k, 2: 2 * k, 4: 8 * k, 8: 8 * k}
    run |= {f"best@{b}": 0.5 for b in sent} | {f"test@{b}": 0.5 for b in sent} | {f"sent@{b}": n for b, n in sent.items()}
    bare = run | {"trial": 1, "feedback": False}
    failed = run | {"trial": 2, "status": "infeasible"}
    found = message_results.between_budgets(pd.DataFrame([run, bare, failed]))
    assert found.budget.tolist() == [1, 2, 4, 8] and found.over.tolist() == pytest.approx([1, 1, 3, 0])
    assert found.method.unique().tolist() == ["Gaussian-k"]
    assert message_results.between_budgets(pd.DataFrame()).empty


def test_redrawn_costs_lie_around_planted_ones():
    """Each of four points was searched once, and borrows how much searches scatter."""
    cells = []
    for sparsity, density, steps in ((0.0, 1.0, [100] * 4), (0.9, 1.0, [300] * 4), (0.0, 0.01, [500] * 4),
                                     (0.9, 0.01, [1500, 3000, 6000, 6000])):  # fmt: skip
        cells += [pd.DataFrame({
            "workload": "w", "batch_size": 16, "sparsity": sparsity, "density": density, "replicate": r, "trial": range(4),
            "steps@0.1": steps, "last_step": 6000,
        }) for r in range(1)]  # fmt: skip
    trials = pd.concat(cells, ignore_index=True)
    curves = pd.DataFrame(
        [{**dict.fromkeys(message_results.CELL), "workload": "w", "batch_size": 16, "goal": 0.1, "sparsity": s, "density": d,
          "steps": k} for s, d, k in ((0.0, 1.0, 100), (0.9, 1.0, 300), (0.0, 0.01, 500), (0.9, 0.01, 1500))]
    )  # fmt: skip
    redrawn = message_results.redrawn_costs(trials, curves, draws=2000)
    over = redrawn.groupby("draw").over.first()
    assert len(redrawn) == 2000 and over.median() == pytest.approx(1, rel=0.01)
    assert np.log(over).std() == pytest.approx(2 * scaling.ONE_SPLIT, rel=0.15)
    assert message_results.redrawn_costs(trials, curves[:0]).empty


def test_joint_curves_are_read_at_the_hardest_goal_that_all_cells_met(tmp_path):
    cells = [
        Cell("digits-mlp", 64, sparsity=s, trials=8, hits=8, max_steps=300, messages=Messages(4, density=d))
        for s in (0.0, 0.9)
        for d in (1.0, 0.05)
    ]
    trials = sweeps.results(Study("t", "t", tuple(cells)), "full", folder=tmp_path)
    curves = message_results.joint_curves(trials)
    met = [g for g in scaling.goals(trials) if trials.groupby(["sparsity", "density"])[f"steps@{g:g}"].count().all()]
    assert len(curves) == 4 and set(curves.goal) == {min(met)} and min(met) > min(scaling.goals(trials))
    easier = message_results.joint_curves(trials, least=max(met))
    assert set(easier.goal) == {max(met)} and (easier.steps.to_numpy() <= curves.steps.to_numpy()).all()
    assert message_results.joint_curves(trials, least=0.9).empty


def test_no_verdict_counts_a_run_in_which_an_average_entry_is_not_sent_once():
    gap = pd.DataFrame({"gap": [27.0, 2.0, 3.0], "budget": [512, 2048, 64], "density": [0.001, 0.001, 0.05]})
    assert message_results.long_enough(gap).gap.tolist() == [2, 3]


def test_means_over_seeds_by_workload_and_density():
    gap = pd.DataFrame({"gap": [1.0, 3.0, 11.0], "noise": 0.1, "density": 0.01, "workload": ["a", "a", "b"]})
    means = message_results.means(gap)
    assert means.gap.tolist() == [2, 11] and means.seeds.tolist() == [2, 1] and means.worst.tolist() == [3, 11]
    assert means.error.tolist() == pytest.approx([1, 2**0.5])  # of its seeds; borrowed from theirs
    alone = gap[gap.workload == "b"]
    assert message_results.means(alone).error.tolist() == pytest.approx([0.1])  # of the test set: nothing to borrow
    assert message_results.means(alone, like=gap).error.tolist() == pytest.approx([2**0.5])
    assert message_results.means(gap.assign(noise=2.0)).error.tolist() == pytest.approx([2, 2])  # the seeds share their test set
    assert message_results.means(gap[:0]).empty
