"""What a followed path says is what was planted: means over steps, sparse over dense, the learning rate told from sparsity."""

import numpy as np
import pandas as pd
import pytest

from chapters.smoothness import claims as smoothness
from lib.analysis import followed_paths
from lib.claims.claim import judged
from lib.claims.judging import registered
from lib.probes import tracks


def path(sparsity, trial=0, **values):
    steps = np.array([1, 2, 4, 8])
    own = {"lipschitz": 2.0, "along": 1.5, "spectral": 6.0, "square": 0.5, "trace": 30.0, "noise_scale": 60.0, **values}
    return pd.DataFrame({
        "workload": "w", "algorithm": "sgd", "batch_size": 64, "sparsity": sparsity, "trial": trial, "step": steps,
        "loss": [2.0, 1.5, 1.0, 0.5], **own,
    })  # fmt: skip


def several(sparsity, middle, sizes=(64,), count=3, spread=0.1, seed=0, **about):
    """Paths whose Lipschitz constants scatter about a value, ten times as large at every further batch size."""
    random = np.random.default_rng(seed)
    return pd.concat([
        path(sparsity, trial, lipschitz=middle * 10**i * random.lognormal(0, spread)).assign(batch_size=size, **about)
        for i, size in enumerate(sizes) for trial in range(count)
    ])  # fmt: skip


def test_the_ratio_of_one_search_has_welchs_interval():
    """Against scipy's, an independent reference."""
    from scipy import stats

    paths = pd.concat([several(0.0, 2.0, count=4), several(0.9, 1.0, count=6, spread=0.4, seed=1)])
    found = followed_paths.lipschitz_ratios(followed_paths.typical(paths))["w", "sgd"]
    logs = np.log(paths.groupby(["sparsity", "trial"]).lipschitz.first())
    test = stats.ttest_ind(logs[0.9], logs[0.0], equal_var=False)
    low, high = test.confidence_interval(0.9)
    assert (found.value, found.low, found.high) == pytest.approx((logs[0.9].mean() - logs[0.0].mean(), low, high), rel=1e-3)
    assert found.n == 6 and found.freedom == pytest.approx(test.df)


def test_the_ratio_of_several_searches_is_the_planted_one_about_nine_times_in_ten():
    held = []
    for seed in range(100):
        about = {"sizes": (16, 64, 256), "spread": 0.3}
        paths = pd.concat([several(0.0, 1.0, seed=2 * seed, **about), several(0.9, 0.5, seed=2 * seed + 1, **about)])
        found = followed_paths.lipschitz_ratios(paths.drop_duplicates(followed_paths.PATH))["w", "sgd"]
        held.append(found.low < np.log(0.5) < found.high)
    assert 0.84 <= np.mean(held) <= 0.97


def test_smoothness_is_judged_by_network_and_two_paths_are_shown(monkeypatch):
    rough = {"workload": "mnist-simple-cnn"}
    own = [several(0.0, 1.0, count=2, **rough), several(0.9, 3.0, count=2, spread=2.0, seed=3, **rough)]
    digits = {"workload": "digits-mlp"}
    found = {"one": pd.concat(own), "two": pd.concat([several(0.0, 1.0, **digits), several(0.9, 0.4, seed=5, **digits)])}
    monkeypatch.setattr(tracks, "TRACKS", found)
    monkeypatch.setattr(tracks, "results", found.get)
    told = judged(registered()["L7"], smoothness.roughness())
    assert told.verdict == "on small stand-ins only: against"
    assert {g.name: (g.own, g.n, g.verdict) for g in told.groups} == {
        "Simple-CNN on MNIST, SGD": (True, 2, "not decided"), "MLP on digits, SGD": (False, 3, "against"),
    }  # fmt: skip


def test_what_the_learning_rate_does_is_told_from_what_sparsity_does():
    """Sparse trials have smaller rates, so that their constant is larger although sparsity makes it smaller."""
    random, rows = np.random.default_rng(0), []
    for batch_size, sparsity in [(b, s) for b in (16, 64, 256) for s in (0.0, 0.9) for _ in range(10)]:
        rate = random.lognormal(-2 - 3 * sparsity, 0.5)
        constant = batch_size / rate**0.8 * (0.6 if sparsity else 1.0) * random.lognormal(0, 0.05)
        rows.append(
            {"workload": "w", "batch_size": batch_size, "sparsity": sparsity, "rate": rate, "lipschitz": constant}
        )
    frame = pd.DataFrame(rows)
    assert frame[frame.sparsity > 0].lipschitz.median() > frame[frame.sparsity == 0].lipschitz.median()
    law = followed_paths.rate_law(frame)
    assert law["power"].low < -0.8 < law["power"].high and law["power"].value == pytest.approx(-0.8, rel=0.1)
    assert law["factor"].low < np.log(0.6) < law["factor"].high and law["factor"].freedom == 60 - 5
