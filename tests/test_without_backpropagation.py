"""What is said of training without backpropagation follows from planted searches and planted curves."""


import numpy as np
import pandas as pd
import pytest

from chapters.without_backpropagation import boolean_readout, claims
from chapters.without_backpropagation import without_backpropagation as without
from lib.claims import AGAINST, FOR
from lib.claims.claim import REGISTRY, judged


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


def verdicts(table, monkeypatch):
    monkeypatch.setattr(boolean_readout, "results", lambda: table)
    return {group.name: group.verdict for group in judged(REGISTRY.claims["B3"], claims.straightness()).groups}


def test_an_exponential_whose_constant_is_the_number_of_features_is_found_to_be_one(monkeypatch):
    table = runs(lambda t: np.exp(-t))
    assert [without.folds(own)[0] / n for n, own in table.groupby("features")] == [pytest.approx([1, 2, 3], rel=0.05)] * 3
    for effect in without.convergence(table).slower:
        assert np.exp(effect.value) == pytest.approx(1, rel=0.1) and effect.low < 0.05 and effect.high > -0.05 and effect.n == 6
    power = without.growth(table).power.item()
    assert power.value == pytest.approx(1, abs=0.05) and power.low < power.value < power.high and power.n == 6
    assert {*verdicts(table, monkeypatch).values()} == {FOR}


def test_slow_tails_are_no_exponentials_and_other_powers_are_not_linear(monkeypatch):
    slow = runs(lambda t: (1 + t) ** -1.5)
    sizes = {64: 1.0, 1024: 0.25}  # steps grow as the root of N
    rooted = pd.concat(runs(lambda t, f=f: np.exp(-t / f), (n,)) for n, f in sizes.items())
    assert without.growth(rooted).power.item().value == pytest.approx(0.5, abs=0.05)
    found = verdicts(pd.concat([slow, runs(lambda t: np.exp(-t), whitened=True)]), monkeypatch)
    assert found["64 features as they are"] == AGAINST and found["64 uncorrelated features"] == FOR
