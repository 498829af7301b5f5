"""What a page says of one network's curve, and of families: against curves whose constants are known."""

import numpy as np
import pandas as pd
import pytest

from chapters.three_regimes import claims as three_regimes
from lib.analysis import one_network, scaling
from lib.claims.claim import REGISTRY, judged

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


def test_momentum_over_sgd_tells_the_cost_of_small_batches_from_the_floor():
    rows = [searches_of(2400, 20, 0.01), searches_of(1600, 25, 0.01).assign(algorithm="sgd")]
    [found] = one_network.over_sgd(scaling.summaries(pd.concat(rows))[1]).itertuples(index=False)
    assert (found.c1, found.c2, found.critical, found.n) == pytest.approx((1.5, 0.8, 1.875, 3), rel=1e-3)
    assert found.smallest == pytest.approx(2420 / 1625) and found.largest == pytest.approx((2400 / 1024 + 20) / (1600 / 1024 + 25))


def verdicts(key, **provided):
    groups = REGISTRY.functions[key](**provided)
    return {group.name: group.verdict for group in judged(REGISTRY.claims[key], groups).groups}


def curves(*parts):
    return scaling.summaries(pd.concat(parts))[1]


MLP, SGD = "MLP on digits, momentum", "sgd"
assert three_regimes.three_regimes is REGISTRY.functions["L1"]


@pytest.mark.parametrize(("steps", "verdict"), [
    (1600 / SIZES + 25, "for"), (1600 / SIZES**0.5, "against"), (np.full(11, 30.0), "against"), (1600 / SIZES, "against"),
])  # fmt: skip
def test_three_regimes_are_judged_by_their_definitions(steps, verdict):
    """Up to 1,024 of 1,350 digits there is no room for a floor beyond."""
    table = searches_of(scatter=0.01)
    scale = pd.Series(steps, SIZES)[table.batch_size].to_numpy() / (1600 / table.batch_size + 25)
    own = curves(table.assign(steps=table.steps * scale))
    assert verdicts("L1", curves=own) == {MLP: verdict}


@pytest.mark.parametrize(("c1", "c2", "bend", "smallest"), [
    (3200, 25, "for", "against"), (1600, 25, "against", "for"),
])  # fmt: skip
def test_momentum_beside_sgd_by_its_bend_and_by_its_smallest_batch(c1, c2, bend, smallest):
    table = pd.concat([searches_of(c1, c2, 0.01), searches_of(scatter=0.01).assign(algorithm=SGD)])
    provided = {"trials": table, "published": table, "curves": curves(table)}
    assert verdicts("S7", **provided) == {MLP: bend} and verdicts("S7b", **provided) == {MLP: smallest}


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "for"), (0.6, "against")])
def test_another_goal_moves_the_critical_batch_size_either_way(factor, verdict):
    hard, easy = searches_of(scatter=0.01), searches_of(1600 * factor, 25, 0.01)
    table = hard.assign(**{"steps@0.05": hard.steps, "steps@0.1": easy.steps}).drop(columns="steps@0.04")
    assert verdicts("S2", trials=table.assign(goal=0.05), curves=curves(hard.assign(goal=0.05))) == {MLP: verdict}
