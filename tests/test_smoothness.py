"""Smoothness and noise scale return what was planted."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lib.engine import flattening
from lib.probes import noise_scale, smoothness
from lib.workloads import models


def quadratic(seed=0, size=30):
    """A symmetric matrix with eigenvalues 0.1 ... 5, and its eigenvectors as columns, the largest last."""
    random = torch.Generator().manual_seed(seed)
    q, _ = torch.linalg.qr(torch.randn(size, size, generator=random, dtype=torch.float64))
    return q @ torch.diag(torch.linspace(0.1, 5, size, dtype=torch.float64)) @ q.T, q


def test_on_a_quadratic_both_estimates_are_the_largest_eigenvalue():
    h, q = quadratic()
    w = torch.randn(30, dtype=torch.float64)
    assert smoothness.path_lipschitz(lambda v: h @ v, w, w + 0.3 * q[:, -1]) == pytest.approx(5)
    along, largest = smoothness.spectral_norm(lambda v: h @ v, torch.ones(30, dtype=torch.float64), iterations=400)
    assert largest == pytest.approx(5, rel=1e-6) and along <= largest
    assert along == pytest.approx(smoothness.path_lipschitz(lambda v: h @ v, w, w + 0.01), rel=1e-9)


def test_hessian_products_of_a_network_and_of_its_mask():
    net = models.initialise(models.mlp(6, 5, classes=3), 0).double()
    random = torch.Generator().manual_seed(1)
    x, y = torch.randn(40, 1, 2, 3, generator=random, dtype=torch.float64), torch.arange(40) % 3
    w, v = flattening.flatten(net), torch.randn(53, generator=random, dtype=torch.float64)
    mask = (torch.rand(53, generator=random) < 0.5).double()
    full = torch.autograd.functional.hessian(lambda u: F.cross_entropy(flattening.outputs(net, u, x), y), w)
    assert torch.allclose(smoothness.hessian_product(net, w, x, y)(v), full @ v)
    assert torch.allclose(smoothness.hessian_product(net, w, x, y, mask)(v), mask * (full @ (mask * v)))


def population(total, seed=0, d=50, signal=0.5):
    random = np.random.default_rng(seed)
    return torch.from_numpy(signal / np.sqrt(d) + random.normal(size=(total, d)))


def test_the_noise_scale_of_endless_data_and_its_interval():
    """|G|^2 = 0.25 and tr(Sigma) = 50 are planted: a noise scale of 200 examples, in about 90 % of the intervals."""
    held, ratios = [], []
    for seed in range(60):
        products = noise_scale.gram(population(4000, seed).view(-1, 20, 50).mean(1))
        ratios.append(noise_scale.estimate(products, 20))
        low, high = noise_scale.interval(products, 20, draws=100)
        held.append(low <= 200 <= high)
    planted = np.mean([r.trace for r in ratios]) / np.mean([r.square for r in ratios])
    assert planted == pytest.approx(200, rel=0.03) and 0.78 <= np.mean(held) <= 0.99
