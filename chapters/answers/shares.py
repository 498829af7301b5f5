"""What becomes of a gradient that is computed in shares, on one batch of digits: accumulated,
averaged over unequal shares, normalised by shares, summed, clipped.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lib.workloads import datasets, models
from lib.workloads.catalogue import workload

BATCH, SHARES = 64, 4  # examples, equal shares
UNEQUAL = (48, 16)  # examples of two shares
DRAWS = 100  # of pairs of shares, for the noise scale


def measured() -> dict[str, float]:
    """Relative distances of gradients from the whole batch's, in double precision.

    equal, unequal, normalised (of a network with batch normalisation): distances over the norm of
    the whole batch's gradient.  summed: norm of the shares' sum over that of their mean.  noise,
    clipped: noise scale (examples) from shares' gradients, as they are and with every share's
    clipped to half the median norm.
    """
    torch.manual_seed(0)
    data = datasets.load("digits").train
    x, y = data.x[:BATCH].double(), data.y[:BATCH]
    plain = models.build(workload("digits-mlp").model).double()
    normal = nn.Sequential(
        nn.Flatten(), nn.Linear(x[0].numel(), 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)
    ).double()
    equal = [slice(i, i + BATCH // SHARES) for i in range(0, BATCH, BATCH // SHARES)]
    halves = [slice(0, UNEQUAL[0]), slice(UNEQUAL[0], BATCH)]
    whole = gradient(plain, x, y)
    mean = averaged(plain, x, y, equal)
    return {
        "equal": distance(mean, whole),
        "unequal": distance(averaged(plain, x, y, halves), whole),
        "normalised": distance(averaged(normal, x, y, equal), gradient(normal, x, y)),
        "summed": float((SHARES * mean).norm() / whole.norm()),
        **_noise(plain, data.x.double(), data.y),
    }


def gradient(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean gradient [weights] over these examples [n, ...] with labels [n]."""
    loss = cross_entropy(network(x), y)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.parameters()))])


def averaged(network: nn.Module, x: Tensor, y: Tensor, shares: list[slice]) -> Tensor:
    """The mean over shares of each share's mean gradient [weights]."""
    return torch.stack([gradient(network, x[share], y[share]) for share in shares]).mean(0)


def distance(found: Tensor, whole: Tensor) -> float:
    """How far a gradient lies from another, over the other's norm."""
    return float((found - whole).norm() / whole.norm())


def _noise(network: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """The noise scale from pairs of shares' gradients, unclipped and clipped."""
    size = BATCH // 2
    picks = [torch.randperm(len(y))[:BATCH] for _ in range(DRAWS)]
    parts = [part for pick in picks for part in (pick[:size], pick[size:])]
    found = torch.stack([gradient(network, x[part], y[part]) for part in parts])
    norms = found.norm(dim=1, keepdim=True)
    clipped = found * (norms.median() / 2 / norms).clamp(max=1)
    return {"noise": noise_scale(found, size), "clipped": noise_scale(clipped, size)}


def noise_scale(gradients: Tensor, size: int) -> float:
    """tr(covariance) / |mean|², in examples, by the two sizes of McCandlish et al. (2018).

    Args:
        gradients: of shares of so many examples [2 n, weights]; two in a row make a batch.
        size: examples of a share.
    """
    small = gradients.square().sum(1).mean()
    large = gradients.view(-1, 2, gradients.shape[1]).mean(1).square().sum(1).mean()
    variance = (small - large) / (1 / size - 1 / (2 * size))
    return float(variance / (2 * large - small))
