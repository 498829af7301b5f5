"""Textures on a ring in two classes with different correlation lengths: Gaussian ones, and the same
squashed until they have edges (after Ingrosso and Goldt, PNAS 2022).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lib.workloads.datasets import Split

SITES, HIDDEN = 64, 16
NEAR, FAR = 3.0, 6.0  # correlation lengths of the two classes, in sites
TRAIN, VALIDATION = 65_536, 4_096
START = 0.1  # scale of the initial weights, so that fields are learnt rather than drawn


def gaussian(count: int, length: float, generator: torch.Generator) -> Tensor:
    """Samples [count, SITES] of variance 1, correlated as exp(-(distance / length)²) on the ring."""
    site = torch.arange(SITES)
    distance = torch.minimum(site, SITES - site)
    power = torch.fft.fft(torch.exp(-((distance / length) ** 2))).real.clamp_min(0)
    noise = torch.randn(count, SITES, generator=generator)
    return torch.fft.ifft(torch.fft.fft(noise) * power.sqrt()).real


def squashed(z: Tensor, gain: float) -> Tensor:
    """erf(gain z / √2) over its standard deviation; z itself in the limit of no gain."""
    if gain == 0:
        return z
    spread = math.sqrt(2 / math.pi * math.asin(gain**2 / (1 + gain**2)))
    return torch.erf(gain * z / math.sqrt(2)) / spread


def samples(count: int, gain: float, seed: int) -> Split:
    """Inputs x [count, SITES] and their classes y [count], half of each class, in random order."""
    generator = torch.Generator().manual_seed(seed)
    classes = [gaussian(count // 2, length, generator) for length in (NEAR, FAR)]
    x = squashed(torch.cat(classes), gain)
    y = torch.arange(2).repeat_interleave(count // 2)
    order = torch.randperm(count, generator=generator)
    return Split(x[order], y[order])


def network() -> nn.Sequential:
    """Two layers: [B, SITES] -> [B, 2]."""
    return nn.Sequential(nn.Linear(SITES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2))


def shrink(w: Tensor) -> None:
    """Begin with small fields: scale the first layer's weights in w [T, P] by START, in place."""
    w[:, : HIDDEN * SITES] *= START
