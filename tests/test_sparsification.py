"""Compressors, error feedback, aggregation and the contraction of Top-k, against what must hold."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from lib.engine import batched, sequential
from lib.measuring import one_cell
from lib.messages import compressors, contraction, exchanges
from lib.messages.compressors import COMPRESSORS
from lib.messages.settings import Messages, target
from lib.studies.cells import Cell
from lib.workloads import catalogue, models

torch.set_num_threads(1)
EXACT = ("top-k", "rand-k")


def vectors(seed: int, d: int = 5000) -> torch.Tensor:
    """Normal, Laplace, heavy-tailed, uniform and nearly equal magnitudes: [5, d]."""
    r = np.random.default_rng(seed)
    kinds = (
        r.normal(size=d),
        r.laplace(size=d),
        r.standard_t(3, size=d),
        r.uniform(-1, 1, d),
        r.choice([-1.0, 1.0], d) + 0.01 * r.normal(size=d),
    )
    return torch.from_numpy(np.stack(kinds)).float()


def exchange(d, executor_gradients, **messages):
    """An exchange of one trial, and an executor whose gradients are given, one [d] a call."""
    given = iter(executor_gradients)

    class Executor:
        def gradients(self, w, x, y):
            return torch.zeros(1), next(given)[None].clone(), torch.ones(1, dtype=torch.bool)

        gradients_by_worker = sequential.SequentialExecutor.gradients_by_worker

    return exchanges.Exchange(Messages(**messages), 1, d, None, [d // 2, d - d // 2], seed=0), Executor()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("density", [0.0001, 0.01, 1.0])
def test_exact_counts(name, density):
    u = vectors(0)
    sent = COMPRESSORS[name](u, target(density, u.shape[1]), np.random.default_rng(0))
    assert (sent.sum(1) == target(density, u.shape[1])).all()


def test_top_k_sends_the_largest():
    u = vectors(1)
    sent = COMPRESSORS["top-k"](u, 50, None)
    for row, mask in zip(u.abs(), sent, strict=True):
        assert row[mask].min() >= row[~mask].max()


@pytest.mark.parametrize("seed", range(6))
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


@pytest.mark.parametrize("name", [n for n in COMPRESSORS if n not in ("rand-k", "dense")])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_sent_is_never_smaller_than_what_is_kept_back_unless_truncated(name, seed):
    u = vectors(seed)
    sent = COMPRESSORS[name](u, 50, np.random.default_rng(seed))
    for row, mask in zip(u.abs(), sent, strict=True):
        truncated = name == "dgc-k" and mask.sum() == 50
        assert truncated or mask.all() or not mask.any() or row[mask].min() >= row[~mask].max()


@pytest.mark.parametrize("name", ["dense", "top-k", "dgc-k"])
def test_compressors_that_count_are_idempotent(name):
    """Those that end at a threshold are not: its guess depends on the vector."""
    u = vectors(2)
    once = torch.where(COMPRESSORS[name](u, 50, np.random.default_rng(0)), u, 0)
    again = torch.where(COMPRESSORS[name](once, 50, np.random.default_rng(0)), once, 0)
    assert torch.equal(again, once) and once.any()


def test_gaussian_k_selects_about_k_of_normal_vectors_and_the_papers_form_twice_as_many_at_first():
    u = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 200_000))).float()
    k = 200
    two = (u.abs() > compressors._normal(u, k, tails=2)[:, None]).sum(1)
    one = (u.abs() > compressors._normal(u, k, tails=1)[:, None]).sum(1)
    assert (two.float() / k - 1).abs().max() < 0.3
    assert (one.float() / k - 2).abs().max() < 0.4
    assert (COMPRESSORS["gaussian-k"](u, k, None).sum(1) == two).all()


def test_gaussian_k_as_published_may_send_nothing_or_far_too_much_and_the_banded_form_does_not():
    u = vectors(3, d=100_000)
    published = COMPRESSORS["gaussian-k"](u, 100, None).sum(1)
    banded = COMPRESSORS["gaussian-k-band"](u, 100, None).sum(1)
    assert published[3] == 0 or published[3] > 10 * 100  # uniform
    assert ((banded >= 66) & (banded <= 134)).all()


def test_gaussian_k_band_ends_on_equal_magnitudes():
    u = torch.ones(2, 1000)
    assert (COMPRESSORS["gaussian-k-band"](u, 10, None).sum(1) == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_redsync_and_dgc_keep_their_promises(seed):
    u = vectors(seed, d=50_000)[:3]
    dgc = COMPRESSORS["dgc-k"](u, 500, np.random.default_rng(seed)).sum(1)
    assert ((dgc > 0) & (dgc <= 500)).all()
    for size, sent in zip(u.abs(), COMPRESSORS["redsync"](u, 500, None).sum(1).tolist(), strict=True):
        sixteenths = torch.linspace(0, 1, 17) * (size.max() - size.mean()) + size.mean()
        above = (size > sixteenths[:, None]).sum(1).tolist()
        ends = [above[j] for j in range(1, 16, 2) if above[j - 1] >= 1000 and above[j + 1] <= 500]  # after three halvings
        assert 500 < sent < 1000 or sent in ends


@pytest.mark.parametrize("name", [n for n in COMPRESSORS])
@pytest.mark.parametrize("by_layer", [False, True])
def test_error_feedback_telescopes(name, by_layer):
    """What was sent and what is kept back add up to all gradients, for every worker."""
    d, workers, steps = 1000, 3, 20
    g = torch.from_numpy(np.random.default_rng(0).normal(size=(steps, workers, d))).float()
    own, executor = exchange(d, g.flatten(0, 1), workers=workers, compressor=name, density=0.05, by_layer=by_layer)
    x, y = torch.zeros(6, 1), torch.zeros(6, dtype=torch.long)
    applied = sum(own.gradients(executor, torch.zeros(1, d), x, y)[1] for _ in range(steps))
    assert torch.allclose(applied[0] * workers + own.residual.sum(0)[0], g.sum((0, 1)), atol=2e-4)


@pytest.mark.parametrize("name", [n for n in COMPRESSORS])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_is_seen_by_its_trial_alone_whatever_a_compressor_keeps_back(name, bad):
    d, workers, trials = 1000, 3, 2
    g = torch.from_numpy(np.random.default_rng(0).normal(size=(workers, trials, d))).float()
    found = []
    for value in (0.0, bad):
        g[1, 0, 7] = value

        class Executor:
            def gradients_by_worker(self, w, x, y, parts, g=g):
                return torch.zeros(parts, trials), g.clone(), torch.ones(parts, trials, dtype=torch.bool)

        own = exchanges.Exchange(Messages(workers, name, 0.05), trials, d, None, [d], seed=0)
        w = torch.zeros(trials, d)
        found.append(torch.stack([own.gradients(Executor(), w, w, w)[1] for _ in range(3)]))
    assert found[1][:, 0].isnan().all() and torch.equal(found[0][:, 1], found[1][:, 1])


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("sizes", [None, [2000, 3000]])
def test_density_one_is_dense(name, sizes):
    assert compressors.compress(name, vectors(4), 1.0, np.random.default_rng(0), sizes).all()


def test_training_with_density_one_equals_training_without_messages():
    plain = Cell("digits-mlp", 32, trials=4, hits=4, max_steps=40)
    shared = Cell("digits-mlp", 32, trials=4, hits=4, max_steps=40, messages=Messages(4, "top-k", 1.0))
    trials = one_cell.start(plain)
    data = catalogue.workload("digits-mlp").train()
    a = one_cell.executor(plain).gradients(trials.w, data.x[:32], data.y[:32])
    b = one_cell.exchange(shared, trials).gradients(one_cell.executor(shared), trials.w, data.x[:32], data.y[:32])
    assert torch.allclose(a[1], b[1], atol=1e-6) and torch.allclose(a[0], b[0], atol=1e-6)
    assert np.array_equal(one_cell.train_cell(plain).first, one_cell.train_cell(shared).first, equal_nan=True)


def test_unequal_counts_are_averaged_exactly_and_the_authors_code_loses_some():
    r = np.random.default_rng(0)
    d, workers = 300, 4
    u = torch.from_numpy(r.normal(size=(workers, d))).float()
    chosen = [torch.from_numpy(r.random((1, d)) < share) for share in (0.1, 0.4, 0.2, 0.5)]
    sent = [torch.where(c, row[None], 0) for c, row in zip(chosen, u, strict=True)]
    expected = np.zeros(d)
    for c, row in zip(chosen, u.numpy(), strict=True):  # scatter-add, pair by pair
        for i in np.flatnonzero(c[0]):
            expected[i] += row[i]
    assert np.allclose(sum(sent)[0], expected, atol=1e-6)
    assert not np.allclose(exchanges.published_sum(sent, chosen)[0], expected, atol=1e-3)
    equal = [torch.zeros(1, d, dtype=torch.bool).index_fill_(1, torch.arange(10) + 10 * p, True) for p in range(4)]
    sent = [torch.where(c, row[None], 0) for c, row in zip(equal, u, strict=True)]
    assert torch.allclose(exchanges.published_sum(sent, equal), sum(sent))


def test_a_pruned_network_sends_a_share_of_what_is_left_and_pruned_weights_stay_zero():
    cell = Cell("digits-mlp", 32, sparsity=0.9, trials=3, max_steps=30, messages=Messages(4, "top-k", 0.01))
    trials, data = one_cell.start(cell), catalogue.workload("digits-mlp").train()
    own, executor = one_cell.exchange(cell, trials), one_cell.executor(cell)
    left = int(trials.mask[0].sum())
    _, g, _ = own.gradients(executor, trials.w, data.x[:32], data.y[:32])
    assert (own.sent == target(0.01, left)).all()
    assert not g[trials.mask == 0].any() and g.any()


def test_layers_have_a_k_each():
    u = torch.cat([100 * torch.ones(1, 50), torch.rand(1, 950)], 1)
    sent = compressors.compress("top-k", u, 0.1, None, [50, 950])
    assert sent[0, :50].sum() == 5 and sent[0, 50:].sum() == 95


def test_density_warms_up():
    own = Messages(density=0.001, warm_up=10)
    assert [own.density_at(s) for s in (0, 9, 10, 19, 20)] == [0.015625, 0.015625, 0.004, 0.004, 0.001]
    assert Messages(density=0.01, warm_up=10).density_at(15) == 0.01


BAD = [
    ({"density": 0}, "density: 0 .* \\(0, 1\\]"),
    ({"workers": 0}, "workers: 0 .* whole number from 1"),
    ({"compressor": "topk"}, "compressor: 'topk' .* top-k"),
    ({"aggregation": "sum"}, "aggregation: 'sum' .* exact, published"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_bad_messages_name_field_value_and_what_is_allowed(fields, message):
    with pytest.raises(ValueError, match=message):
        Messages(**fields)


def test_cells_refuse_messages_that_do_not_fit():
    with pytest.raises(ValueError, match="batch_size: 20 .* multiple of messages.workers \\(16\\)"):
        Cell("digits-mlp", 20, messages=Messages())
    with pytest.raises(ValueError, match="by_layer"):
        Cell("digits-mlp", 32, sparsity=0.5, messages=Messages(by_layer=True))


# --- contraction ------------------------------------------------------------------------------------------------------

DENSITIES = np.array([0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9])


@pytest.mark.parametrize("seed", range(6))
def test_top_k_never_leaves_more_than_the_classical_bound(seed):
    r = np.random.default_rng(seed)
    u = r.normal(size=int(r.integers(2, 3000))) * 10 ** r.uniform(-3, 3, size=1) * r.choice([0, 1, 5], size=1)
    if u.any():
        k = np.arange(1, len(u) + 1) / len(u)
        assert (contraction.left(u, k) <= contraction.classical(k) + 1e-12).all()


def test_left_is_what_top_k_leaves():
    u = vectors(0)
    for row, k in zip(u, (1, 10, 500, 2500, 4999), strict=True):
        sent = COMPRESSORS["top-k"](row[None], k, None)[0]
        direct = float(row[~sent].double().square().sum() / row.double().square().sum())
        assert contraction.left(row.numpy(), k / 5000) == pytest.approx(direct, rel=1e-5, abs=1e-7)


def test_rand_k_leaves_the_classical_share_on_average():
    u = vectors(5)[2:3]
    r = np.random.default_rng(0)
    draws = [float(torch.where(COMPRESSORS["rand-k"](u, 500, r), 0, u).square().sum()) for _ in range(400)]
    mean, error = np.mean(draws), np.std(draws) / 20
    assert abs(mean / float(u.square().sum()) - 0.9) < 4 * error / float(u.square().sum())


def test_gaussian_value_matches_large_normal_vectors_and_the_reference_table():
    assert contraction.gaussian(np.array([0.001, 0.01, 0.1])) == pytest.approx([0.9873, 0.9155, 0.5607], abs=5e-5)
    u = np.random.default_rng(0).normal(size=1_000_000)
    assert contraction.left(u, DENSITIES) == pytest.approx(contraction.gaussian(DENSITIES), abs=2e-3)


@pytest.mark.parametrize("seed", range(20))
def test_the_tighter_bound_holds_wherever_the_predicate_does(seed):
    """Random convex profiles and random vectors: exactly, at every bin, with no tolerance."""
    r = np.random.default_rng(seed)
    bins = int(r.integers(2, 40))
    if seed % 2:  # convex and zero at the end: a sum of hinges, or of powers
        reach = r.integers(1, bins + 1, size=5)
        p = sum(a * np.maximum(j - np.arange(bins), 0) ** b for a, j, b in zip(r.random(5), reach, r.uniform(1, 4, 5),
                                                                              strict=True))  # fmt: skip
        u = np.sqrt(p)
    else:
        u = r.normal(size=bins * 7) ** int(r.choice([1, 3]))
    holds = contraction.bell(u, bins)
    m = np.arange(bins + 1) / bins
    if holds:
        assert (contraction.left(u, m) <= contraction.tighter(m) + 1e-12).all()
    assert holds or not seed % 2 or contraction.profile(u, bins)[-1] > 0


def test_the_tighter_bound_fails_where_the_predicate_does_not_hold():
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 1000)
    assert not contraction.bell(signs)
    assert contraction.left(signs, 0.5) == pytest.approx(0.5) and contraction.tighter(0.5) == 0.25


def test_normal_vectors_are_bells_up_to_noise():
    u = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    assert contraction.bell(u, 100)
    assert contraction.bell(np.random.default_rng(0).normal(size=100_000), 100, tolerance=2e-3)


def test_profile_refuses_more_bins_than_entries():
    with pytest.raises(ValueError, match="bins: 20 .* 2 to 10"):
        contraction.profile(np.ones(10), 20)


def test_iterations_follow_from_delta():
    """There the term of compression, (1 - delta) / (delta^2 T), is as large as that of SGD, 1 / sqrt(T)."""
    delta = np.array([0.001, 0.1, 0.9])
    steps = contraction.iterations(delta)
    assert (1 - delta) / (delta**2 * steps) == pytest.approx(1 / np.sqrt(steps))
    c = 1000
    assert contraction.iterations((2 * c - 1) / c**2) == pytest.approx((c * (c - 1) / (2 * c - 1)) ** 4)
    assert contraction.iterations(1 / c) / contraction.iterations((2 * c - 1) / c**2) == pytest.approx(16, rel=1e-3)
    assert contraction.iterations(1.0) == 0


def test_the_loop_and_the_stack_exchange_the_same():
    cell = Cell("digits-mlp", 64, trials=3, messages=Messages(4, "top-k", 0.05))
    trials, data = one_cell.start(cell), catalogue.workload("digits-mlp").train()
    found = []
    for kind in (sequential.SequentialExecutor, batched.BatchedExecutor):
        own = one_cell.exchange(cell, trials)
        executor = kind(models.build("mlp-64x2"))
        found.append(own.gradients(executor, trials.w, data.x[:64], data.y[:64])[1])
    assert torch.allclose(*found, atol=1e-6)
