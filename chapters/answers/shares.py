"""What becomes of a gradient that is computed in shares, on one batch of digits: averaged over
unequal shares, normalised by shares, clipped.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lib.probes.noise_scale import estimate, gram
from lib.workloads import datasets, models
from lib.workloads.catalogue import workload

BATCH, SHARES = 64, 4  # examples, equal shares
UNEQUAL = (48, 16)  # examples of two shares
DRAWS = 200  # shares, for the noise scale


def measured() -> dict[str, float]:
    """What shares do to gradients, in double precision.

    unequal, normalised (of a network with batch normalisation): distances from the whole batch's
    gradient, over its norm.  noise, clipped: noise scale (examples) from shares' gradients, as they
    are and with every share's clipped to half the median norm.
    """
    torch.manual_seed(0)
    data = datasets.load("digits").train
    x, y = data.x.double(), data.y
    plain = models.fresh(workload("digits-mlp").model, seed=0).double()
    normal = nn.Sequential(
        nn.Flatten(),
        nn.Linear(x[0].numel(), 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 10),
    ).double()
    size, batch = BATCH // SHARES, torch.arange(BATCH)
    drawn = [torch.randperm(len(y))[:size] for _ in range(DRAWS)]
    parts = torch.stack([gradient(plain, x[part], y[part]) for part in drawn])
    norms = parts.norm(dim=1, keepdim=True)
    clipped = parts * (norms.median() / 2 / norms).clamp(max=1)
    return {
        "unequal": off(plain, x, y, batch.split(UNEQUAL)),
        "normalised": off(normal, x, y, batch.split(size)),
        "noise": noise_scale(parts, size),
        "clipped": noise_scale(clipped, size),
    }


def gradient(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean gradient [weights] over these examples [n, ...] with labels [n]."""
    loss = cross_entropy(network(x), y)
    parts = torch.autograd.grad(loss, list(network.parameters()))
    return torch.cat([part.flatten() for part in parts])


def off(network: nn.Module, x: Tensor, y: Tensor, shares: tuple[Tensor, ...]) -> float:
    """How far the mean over shares of their mean gradients lies from the gradient of all their
    examples, over its norm.
    """
    mean = torch.stack([gradient(network, x[share], y[share]) for share in shares]).mean(0)
    batch = torch.cat(shares)
    exact = gradient(network, x[batch], y[batch])
    return float((mean - exact).norm() / exact.norm())


def noise_scale(gradients: Tensor, size: int) -> float:
    """tr(covariance) / |mean|², in examples, from gradients of shares [n, weights] of so many."""
    variance, square = estimate(gram(gradients), size)
    return float(variance / square)
