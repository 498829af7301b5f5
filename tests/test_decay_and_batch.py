"""Weight decay for any method: its limits, PyTorch's own, and what planted searches say of it."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from chapters.disputed import decay_experiments as experiments
from chapters.disputed import rates
from chapters.disputed.decay_experiments import Search
from lib.claims import NO, YES
from lib.methods import METHODS, method
from lib.methods.own_method import LAYERS

PLAIN = [name for name, plain in METHODS.items() if plain.gradient is None]


def trained(name, decay, steps=6, rate=None, gradient=torch.randn):
    """Weights of four trials before and after so many steps along random gradients, and what was drawn."""
    torch.manual_seed(3)
    start, how = torch.randn(4, 23), method(name)
    values = {name: float(axis.values(0.5)) for name, axis in how.space.items()}
    values |= {"batch_size": 8.0, "weight_decay": decay} | (
        {"learning_rate": rate} if rate else {}
    )
    drawn = {name: torch.full((4, 1), value) for name, value in values.items()}
    w = start.clone()
    buffers = how.begin(w.clone(), LAYERS)
    for k in range(1, steps + 1):
        how.step(w, gradient(4, 23), buffers, drawn, k, LAYERS)
    return start, w, drawn


@pytest.mark.parametrize("name", PLAIN)
def test_without_decay_it_is_the_old_method_to_the_bit(name):
    plain, still, decayed = (
        trained(*case)[1]
        for case in ((name, 0.0), (f"{name}+decay", 0.0), (f"{name}+decay", 0.5))
    )
    assert torch.equal(plain, still) and not torch.equal(still, decayed)


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adam", "adam-fixed", "muon"])
def test_without_gradients_weights_shrink_by_one_minus_rate_times_decay_a_step(name):
    start, w, _ = trained(f"{name}+decay", 0.3, 20, 0.1, torch.zeros)
    assert torch.allclose(w, start * (1 - 0.1 * 0.3) ** 20, rtol=1e-5)


def test_with_adam_it_is_pytorchs_own():
    start, w, drawn = trained("adam+decay", 0.7, 15, 0.02)
    weights = torch.nn.Parameter(start.clone())
    betas = tuple(float(drawn[name][0]) for name in ("beta1", "beta2"))
    optimiser = torch.optim.AdamW([weights], lr=0.02, betas=betas, weight_decay=0.7)
    torch.manual_seed(3)
    torch.randn(4, 23)
    for _ in range(15):
        weights.grad = torch.randn(4, 23)
        optimiser.step()
    assert torch.allclose(w, weights.detach(), atol=1e-5)


def test_a_search_tells_every_trial_and_the_same_again():
    search = Search("digits-mlp-nats", "adam", 256, replicate=7, epochs=4, trials=8)
    trials = search.measure()
    assert trials.equals(search.measure()) and (trials.weight_decay[::2] == 0).all()
    assert (trials.weight_decay[1::2] > 0).all() and trials.error.between(0, 1).all()


def test_the_timescale_is_batch_over_rate_decay_and_examples():
    rows = {
        "workload": "digits-mlp-nats",
        "algorithm": "adam",
        "batch_size": 64,
        "replicate": 1,
    }
    rows |= {
        "epochs": 10,
        "learning_rate": 0.01,
        "weight_decay": [0.5] * 5 + [0.0],
        "error": 0.1,
    }
    (search,) = rates.good(pd.DataFrame(rows | {"loss": [1, 2, 3, 4, 9, 1.5]})).itertuples()
    assert search.timescale == pytest.approx(64 / (0.01 * 0.5 * 13_500), rel=1e-2)
    assert search.loss == 1 and search.plain == 1.5


def planted(power, noise=0.05):
    """Searches in which the best product of rate and decay grows as this power of the batch."""
    random, rows = np.random.default_rng(1), []
    for search in experiments.planned():
        product = 1e-3 * (search.batch_size / 16) ** power * math.exp(noise * random.normal())
        decays = {product / 0.01: 0.1, 0.0: 0.2}.items()
        rows += 4 * [
            vars(search)
            | {"learning_rate": 0.01, "weight_decay": d, "loss": loss, "error": 0.1}
            for d, loss in decays
        ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("power", "verdict"), [(1.0, YES), (0.3, NO)])
def test_planted_timescales_are_judged_as_they_are(power, verdict, judge):
    (claim,) = judge(planted(power), "W2")
    assert [group.verdict for group in claim.groups] == [verdict] * 2 and claim.groups[1].n == 5
    good = rates.good(planted(power))
    effects = rates.effects(good[good.algorithm == "muon"])
    assert effects["decay"].value == pytest.approx(power, abs=0.1)
    assert (
        math.exp(effects["gain"].value) == pytest.approx(2)
        and abs(effects["rate"].value) < 1e-9
    )
