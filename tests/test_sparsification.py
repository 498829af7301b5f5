"""Compressors, error feedback, aggregation and the contraction of Top-k, against what must hold."""

import dataclasses

import numpy as np
import pytest
import torch

from chapters.gradients import energy_bounds as bounds
from lib.measuring import one_search
from lib.messages import Messages, exchanges
from lib.messages.exchanges import COMPRESSORS
from lib.probes import portraits
from lib.studies.search import Search

torch.set_num_threads(1)


def exchanged(gradients, **messages):
    """What workers make of their gradients [steps, P, T, d], mean gradients [steps, T, d], and what they keep back [P, T, d]."""
    steps, workers, trials, d = gradients.shape
    steps_left = iter(gradients.clone())

    class Executor:
        def gradients_by_worker(self, w, x, y, parts):
            return torch.zeros(parts, trials), next(steps_left), torch.ones(parts, trials, dtype=torch.bool)

    w = torch.zeros(trials, d)
    exchange = exchanges.Exchange(Messages(workers, density=0.05, **messages), w, None, [d // 2, d - d // 2], seed=0)
    return torch.stack([exchange.gradients(Executor(), w, w, w)[1] for _ in range(steps)]), exchange.residual


@pytest.mark.parametrize("seed", range(3))
def test_top_k_in_groups_is_the_plain_top_k(seed):
    """At any size and k, where the largest lie together, and with ties; no entry is sent twice."""
    r = np.random.default_rng(seed)
    d = int(r.integers(1, 3000))
    k = int(r.integers(1, d + 1)) if seed % 2 else min(d, 1 + seed)
    together, ties = np.sort(r.normal(size=d)), r.integers(-3, 4, size=d)
    u = torch.from_numpy(np.stack([r.normal(size=d), together, ties])).float()
    sent = COMPRESSORS["top-k"](u, k, None)
    assert (sent.sum(1) == k).all()
    for row, mask in zip(u.abs(), sent, strict=True):
        assert torch.equal(row[mask].sort(descending=True).values, row.topk(k).values)


def test_gaussian_k_as_published_may_send_nothing_or_far_too_much_and_the_banded_form_does_not():
    random = torch.Generator().manual_seed(3)
    normal, uniform = torch.randn(100_000, generator=random), 2 * torch.rand(100_000, generator=random) - 1
    u = torch.stack([normal, uniform, normal.sign() + 0.01 * normal])
    published = COMPRESSORS["gaussian-k"](u, 100, None).sum(1)
    banded = COMPRESSORS["gaussian-k-band"](u, 100, None).sum(1)
    assert published[1] == 0 or published[1] > 10 * 100
    assert ((banded >= 66) & (banded <= 134)).all()


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("by_layer", [False, True])
def test_error_feedback_telescopes(name, by_layer):
    """What was sent and what is kept back add up to all gradients, for every worker."""
    g = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 3, 1, 1000))).float()
    applied, kept = exchanged(g, compressor=name, by_layer=by_layer)
    assert torch.allclose(3 * applied.sum(0) + kept.sum(0), g.sum((0, 1)), atol=2e-4)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_gradient_that_is_not_finite_is_seen_by_its_trial_alone_whatever_a_compressor_keeps_back(name):
    g = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 3, 2, 1000))).float()
    fine, _ = exchanged(g, compressor=name)
    g[:, 1, 0, 7] = torch.nan
    spoilt, _ = exchanged(g, compressor=name)
    assert spoilt[:, 0].isnan().all() and torch.equal(fine[:, 1], spoilt[:, 1])


def test_training_with_density_one_equals_training_without_messages():
    plain = Search("digits-mlp", 32, trials=4, hits=4, max_steps=40)
    shared = dataclasses.replace(plain, messages=Messages(4, "top-k", 1.0))
    assert np.array_equal(one_search.train_search(plain).first, one_search.train_search(shared).first, equal_nan=True)


def test_unequal_counts_are_averaged_exactly_and_the_authors_code_loses_some():
    r = np.random.default_rng(0)
    u = torch.from_numpy(r.normal(size=(4, 300))).float()
    unequal = [torch.from_numpy(r.random((1, 300)) < share) for share in (0.1, 0.4, 0.2, 0.5)]
    equal = [torch.zeros(1, 300, dtype=torch.bool).index_fill_(1, torch.arange(10) + 10 * p, True) for p in range(4)]
    for chosen, exact in ((unequal, False), (equal, True)):
        sent = [torch.where(c, row[None], 0) for c, row in zip(chosen, u, strict=True)]
        assert torch.allclose(exchanges.published_sum(sent, chosen), sum(sent), atol=1e-3) == exact


DENSITIES = np.array([0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9])


@pytest.mark.parametrize("seed", [0, 2])
def test_top_k_never_leaves_more_than_the_classical_bound(seed):
    u = np.random.default_rng(seed).standard_t(1 + seed, size=1000)
    k = np.arange(1, len(u) + 1) / len(u)
    assert (portraits.left(u, k) <= bounds.classical(k) + 1e-12).all()


def test_gaussian_value_matches_large_normal_vectors_and_the_reference_table():
    assert bounds.gaussian(np.array([0.001, 0.01, 0.1])) == pytest.approx([0.9873, 0.9155, 0.5607], abs=5e-5)
    u = np.random.default_rng(0).normal(size=1_000_000)
    assert portraits.left(u, DENSITIES) == pytest.approx(bounds.gaussian(DENSITIES), abs=2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_tighter_bound_holds_wherever_the_predicate_does(seed):
    """Profiles that are convex and zero at the end, sums of powers of hinges: exactly, at every bin, with no tolerance."""
    r = np.random.default_rng(seed)
    bins = int(r.integers(5, 40))
    hinges = np.maximum(r.integers(1, bins + 1, size=(5, 1)) - np.arange(bins), 0)
    profile = (r.random((5, 1)) * hinges ** r.uniform(1, 4, size=(5, 1))).sum(0)
    u, m = np.sqrt(profile), np.arange(bins + 1) / bins
    binned = portraits.profile(u, bins)
    assert portraits.bell(binned, bins) or binned[-1] > 0
    if portraits.bell(binned, bins):
        assert (portraits.left(u, m) <= bounds.tighter(m) + 1e-12).all()


def test_the_tighter_bound_fails_where_the_predicate_does_not_hold():
    """Entries of equal size, and a profile of 1 - x^2, whose bend is below a thousandth per bin: too little for a tolerance."""
    for u in (np.ones(1000), np.sqrt(1 - np.linspace(0, 1, 1000) ** 2)):
        assert not portraits.bell(portraits.profile(u, portraits.FINE), portraits.FINE)
        assert portraits.left(u, 0.5) > bounds.tighter(0.5)
