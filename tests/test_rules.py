"""Rules for the learning rate: planted winners come out with their exponent, and guides pass through the start."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis import rate_rules


def planted(power):
    """Five trials a batch size, the first the winner, whose effective learning rate grows as this power."""
    rows = []
    for b in 2 ** np.arange(0, 11, 2):
        steps = np.array([100, 110, 150, 299, 500])
        rate = 1e-3 * float(b) ** power * np.array([1, 1.1, 0.9, 1.05, 40])
        rows.append(pd.DataFrame({"workload": "digits-mlp", "batch_size": b, "trial": range(5), "steps": steps,
                                  "learning_rate": rate, "momentum": 0.9, "algorithm": "momentum", "sparsity": 0.0}))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


@pytest.mark.parametrize("power", [1.0, 0.5, 0.0])
def test_a_planted_exponent_is_recovered_and_far_trials_do_not_count(power):
    near = rate_rules.near_best(planted(power), 16)
    found = rate_rules.exponents(near).iloc[0]
    assert found.power == pytest.approx(power) and found.low <= power <= found.high and found.high - found.low < 0.1
    assert found.batch_sizes == 6 and found.trials == 24  # the fifth trial took five times the winner's steps


def test_the_rule_that_fits_passes_through_every_winner():
    near = rate_rules.near_best(planted(0.5), 16)
    own = near[near.which == "effective learning rate"]
    guide = own[own.rule == "square-root rule"].set_index("batch_size").value
    winners = own[own.rule.isna() & (own.behind == 1)].set_index("batch_size").value
    assert np.allclose(guide, winners.reindex(guide.index))
    assert set(near.which) == {"learning rate", "1 - momentum", "effective learning rate"}


def test_too_few_batch_sizes_have_no_exponent():
    few = planted(1.0).query("batch_size < 16")
    assert rate_rules.exponents(rate_rules.near_best(few, 16)).empty


def test_an_optimum_planted_at_the_edge_is_flagged():
    """The largest batch sizes want the largest learning rate of the space, and momentum lies in its middle."""
    trials = planted(1.0).assign(momentum=1 - 10**-2.5, learning_rate=lambda d: np.minimum(d.batch_size / 128, 0.99))
    found = rate_rules.at_edge(rate_rules.near_best(trials, 16)).set_index("hyperparameter")
    assert found.upper.to_dict() == {"learning rate": [256, 1024], "momentum": []} and not found.lower["momentum"]
    assert (found.winners == 6).all()
    low = rate_rules.at_edge(rate_rules.near_best(trials.assign(momentum=0.9), 16)).set_index("hyperparameter")
    assert low.lower["momentum"] == [1, 4, 16, 64, 256, 1024] and not low.upper["momentum"]


def test_the_winners_luck_is_what_no_rule_costs_at_the_start():
    """Retrained winners take half as long again everywhere; a rule that loses a factor of two more is seen to."""
    best = planted(0.0).query("trial == 0")
    rows = [{"rule": rule, "batch_size": b, "steps": 150.0 * (2 if rule == "linear rule" and b > 16 else 1)}
            for rule in rate_rules.POWERS for b in best.batch_size for _ in range(3)]  # fmt: skip
    found = rate_rules.spread(pd.DataFrame(rows), best, 16).set_index(["rule", "batch_size"])
    assert found.over["no change", 64] == pytest.approx(1.5) and found.beyond["no change", 64] == pytest.approx(1)
    assert found.over["linear rule", 64] == pytest.approx(3) and found.beyond["linear rule", 64] == pytest.approx(2)


def test_rules_are_followed_on_every_network_that_met_its_goal():
    never = planted(0.0).assign(workload="c", steps=np.nan)
    searches = pd.concat([planted(1.0), planted(0.5).assign(workload="digits-cnn"), never])
    planned = rate_rules.retraining(searches, 16, 5)
    assert {name for name, _, _ in planned} == {"digits-mlp", "digits-cnn"} and len(planned) == 2 * 3 * 6
    tables = {key: pd.DataFrame([{"batch_size": key[2], "steps": 200.0}]) for key in planned}
    found = rate_rules.costs(searches, 16, 5, tables)
    assert found.groupby("workload").size().to_dict() == {"digits-cnn": 18, "digits-mlp": 18}
    assert rate_rules.costs(searches[searches.workload == "c"], 16, 5).empty and "beyond" in rate_rules.costs(pd.DataFrame(), 16, 5)


def test_a_rule_multiplies_the_rate_by_its_power_of_the_batch_size_and_keeps_momentum():
    planned = rate_rules.retraining(planted(1.0), 16, 5)
    rate = {key: dict(p.split("=") for p in study.cells[0].space.split(",")) for key, study in planned.items()}
    first = rate["digits-mlp", "no change", 16]
    for rule, factor in {"linear rule": 16, "square-root rule": 4, "no change": 1}.items():
        moved = rate["digits-mlp", rule, 256]
        assert float(moved["learning_rate"]) == pytest.approx(factor * float(first["learning_rate"]))
        assert moved["momentum"] == first["momentum"]


def test_averages_of_adam_keep_their_half_life_in_examples_where_a_rule_says_so():
    first = pd.Series({"algorithm": "adam", "batch_size": 16, "learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.99})
    assert set(rate_rules.rules("momentum")) == set(rate_rules.POWERS) < set(rate_rules.rules("adam"))
    for rule in rate_rules.rules("adam"):
        assert rate_rules.moved(first, 16, rule) == pytest.approx({"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.99})
    for size in (4, 256):
        both = rate_rules.moved(first, size, "square root, β₁ and β₂ too")
        for name in ("beta1", "beta2"):
            lives = [size * np.log(0.5) / np.log(both[name]), 16 * np.log(0.5) / np.log(first[name])]
            assert lives[0] == pytest.approx(lives[1])
        assert both["learning_rate"] == pytest.approx(1e-3 * (size / 16) ** 0.5)
        second = rate_rules.moved(first, size, "square root, β₂ too")
        assert second["beta1"] == 0.9 and second["beta2"] == both["beta2"]
        assert rate_rules.moved(first, size, "linear rule")["learning_rate"] == pytest.approx(1e-3 * size / 16)
