"""Messages that reveal less: distance correlation from its definition, and known answers."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import nn

from chapters.other_networks import leakage as experiments
from chapters.other_networks.leakage import Search, correlation, distances
from lib.claims import NO, YES
from lib.engine import flattening
from lib.engine.clients import Halves
from lib.workloads import models

either = pytest.mark.parametrize("unbiased", [False, True])


def by_definition(x, y, unbiased):
    """The squared distance correlation of rows of x and y, entry by entry.  The unbiased one
    centres by n - 2 and (n - 1)(n - 2) in place of n and n^2, and leaves out the diagonal.
    """
    n = len(x)

    def centred(rows):
        d = cdist(rows, rows)
        side, total, entries = d.sum(1), d.sum(), np.zeros((n, n))
        in_row, in_all = (n - 2, (n - 1) * (n - 2)) if unbiased else (n, n**2)
        for i, j in itertools.product(range(n), repeat=2):
            if i != j or not unbiased:
                entries[i, j] = d[i, j] - (side[i] + side[j]) / in_row + total / in_all
        return entries

    a, b = centred(x.numpy()), centred(y.numpy())
    return (a * b).sum() / ((a * a).sum() * (b * b).sum()) ** 0.5


def measured(x, y, unbiased):
    return correlation(distances(x), distances(y), unbiased)


@either
@pytest.mark.parametrize("n", [4, 12])
def test_distance_correlation_is_that_of_its_definition(n, unbiased):
    x = torch.randn(n, 3, dtype=torch.float64)
    y = torch.cat([x[:, :1] ** 2, torch.randn(n, 4, dtype=torch.float64)], 1)
    assert float(measured(x, y, unbiased)) == pytest.approx(
        by_definition(x, y, unbiased), rel=1e-6
    )


@either
def test_of_many_trials_it_is_that_of_each_and_scale_and_place_do_not_matter(unbiased):
    x, y = torch.randn(9, 3), torch.randn(5, 9, 4)
    trials = measured(x, y, unbiased)
    assert trials.tolist() == pytest.approx(
        [float(measured(x, trial, unbiased)) for trial in y], abs=1e-5
    )
    assert measured(x, 3 * y + 1, unbiased).tolist() == pytest.approx(trials.tolist(), abs=1e-5)
    assert float(measured(x, -2 * x + 5, unbiased)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("n", [8, 64])
def test_of_independent_data_the_unbiased_estimate_is_zero_in_the_mean_and_the_usual_one_is_not(
    n,
):
    x, y = torch.randn(2, 400, n, 64, dtype=torch.float64)
    free, usual = (measured(x, y, unbiased) for unbiased in (True, False))
    assert abs(free.mean()) < 4 * free.std() / 400**0.5
    assert usual.mean() > {8: 0.95, 64: 0.7}[n]


@pytest.fixture(params=["mlp-64x2", "digits-cnn"])
def setting(request):
    net = models.build(request.param)
    w = torch.stack(
        [flattening.flatten(models.fresh(request.param, seed)) for seed in range(3)]
    )
    return net, w, torch.randn(12, 1, 8, 8), torch.randint(10, (12,))


def test_without_alpha_it_is_split_learning_to_the_bit(setting):
    net, w, x, y = setting
    penalties = None, Search("digits-mlp", 12, alpha=0.0).penalty(x)
    plain, none = (Halves(net).gradients(w, x, y, penalty) for penalty in penalties)
    assert all(torch.equal(a, b) for a, b in zip(plain, none, strict=True))


@either
def test_gradients_with_a_penalty_are_those_of_the_whole_network(unbiased, setting):
    net, w, x, y = setting
    search, halves = Search("digits-mlp", 12, alpha=2.0, unbiased=unbiased), Halves(net)
    for row, g in zip(w, halves.gradients(w, x, y, search.penalty(x))[1], strict=True):
        row = row.detach().requires_grad_()
        sent = flattening.outputs(halves.client, row[: halves.size], x)
        loss = nn.functional.cross_entropy(flattening.outputs(net, row, x), y)
        loss = loss + 2 * measured(x.flatten(1), sent.flatten(1), unbiased)
        assert torch.allclose(g, torch.autograd.grad(loss, row)[0], rtol=1e-3, atol=1e-5)


def test_a_decoder_rebuilds_what_activations_are_and_nothing_of_noise():
    x, unseen = torch.randn(400, 1, 4, 4), torch.randn(200, 1, 4, 4)
    same = experiments.leakage((x, x), (unseen, unseen))
    assert same[0] == pytest.approx(1, abs=1e-6) and same[1] > 0.99
    noise = experiments.leakage((x, torch.randn(400, 8)), (unseen, torch.randn(200, 8)))
    assert abs(noise[0]) < 0.05 and noise[1] < 0.05


def test_a_search_tells_a_row_per_goal():
    rows = Search("digits-mlp", 64, alpha=1.0, trials=4, max_steps=40, replicate=7).measure()
    assert sorted(rows.goal) == sorted(experiments.GOALS)
    met = rows.dropna()
    assert (
        len(met) and met.rebuilt.between(0, 1).all() and (met.steps.diff().dropna() >= 0).all()
    )


def planted(hidden, met):
    """Searches whose decoder has so many times the error under a penalty, of which so many
    then meet the hardest goal.
    """
    rows = []
    arms = (0.0, False), (3.0, False), (3.0, True)
    cases = itertools.product(experiments.PLANNED, arms, range(1, 6), experiments.GOALS)
    for network, (alpha, unbiased), replicate, goal in cases:
        steps = np.nan if goal == 0.04 and alpha and replicate > met else 50.0
        lost = replicate / 50 * (hidden if alpha else 1)
        rows.append((network, alpha, unbiased, replicate, goal, steps, 1 - lost))
    names = ["workload", "alpha", "unbiased", "replicate", "goal", "steps", "rebuilt"]
    return pd.DataFrame(rows, columns=names).assign(batch_size=128)


@pytest.mark.parametrize(("hidden", "met", "verdict"), [(3, 5, YES), (1, 0, NO)])
def test_planted_searches_are_judged_as_they_are(hidden, met, verdict, judge):
    for claim in judge(planted(hidden, met), "N1", "N2"):
        assert [group.verdict for group in claim.groups] == [verdict] * 4
