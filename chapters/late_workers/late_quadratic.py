"""The noisy quadratic model with late gradients: w' = w - rate v', v' = momentum v + h w_{t-s} +
noise of variance c / B.

The recursion is linear, so that E w^2 is the square of the path without noise, plus the sum of
squares of the response to one noise, k = 1 ... t steps after it, times c / B: two paths per
dimension and rate tell of every batch size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from lib.analysis.noisy_quadratic import Model

LONGEST = 200_000  # steps that are walked
MOST = 256  # steps by which gradients may be late


def stability_limit(staleness: int) -> float:
    """Below which rate times curvature must lie for plain SGD to settle: 2 sin(pi / (2 (2 s + 1))).

    A root z = e^{i a} of z^{s+1} - z^s + x has x = z^s (1 - z) = 2 sin(a/2) e^{i ((s + 1/2) a -
    pi/2)}; this is first positive at a = pi / (2 s + 1).
    """
    return 2 * math.sin(math.pi / (2 * (2 * staleness + 1)))


EXACT, PER_OCTAVE = 30, 12  # dimensions of `coarsened` that stay, and of every octave behind them


def coarsened(model: Model) -> Model:
    """About the same model of fewer dimensions: after the first EXACT, neighbours share their mean
    curvature.

    The curvature must fall; a group's squares and noise are sums.
    """
    place = np.arange(1, len(model.curvature) + 1)
    octaves = np.log2(place / EXACT).clip(0)
    group = np.where(place <= EXACT, place, EXACT + 1 + np.floor(PER_OCTAVE * octaves))
    _, group, count = np.unique(group, return_inverse=True, return_counts=True)
    square = model.square * np.ones(len(group))
    values = (model.curvature, model.noise, square)
    curvature, noise, squares = (np.bincount(group, value) for value in values)
    return Model(curvature / count, noise, model.target, squares)


@np.errstate(over="ignore", invalid="ignore")  # rates too large for some momentum
def fewest(
    model: Model,
    batch_sizes: Iterable[float],
    rates: Iterable[float],
    staleness: int = 0,
    momentum: float = 0.0,
) -> np.ndarray:
    """Steps [batch sizes] at which the loss first meets the target at the best of the rates; inf
    where none meets it in LONGEST steps.

    batch_sizes: may be inf.  staleness: how many steps late gradients are.
    """
    b = np.asarray(batch_sizes, float)
    rate = np.asarray(rates, float)
    found = np.full(len(b), np.inf)
    h = model.curvature
    slots = staleness + 1
    signal = h * model.square
    spread = h * model.noise
    # The path without noise, and the response to one noise
    ring = np.zeros((slots, 2, len(rate), len(h)))
    ring[:, 0] = 1.0
    v = np.zeros(ring.shape[1:])
    noise = np.zeros(ring.shape[2:])
    for t in range(LONGEST):
        old = (t + 1) % slots  # the weights of s steps ago, which make room for the next
        v = momentum * v + h * ring[old]
        v[1] += t == 0
        w = ring[t % slots] - rate[:, None] * v
        ring[old] = w
        noise += w[1] ** 2
        loss = 0.5 * ((w[0] ** 2) @ signal)[:, None] + 0.5 * (noise @ spread)[:, None] / b
        found[(loss <= model.target).any(0) & np.isinf(found)] = t + 1
        if np.isfinite(found).all():
            break
    return found


# Rates over the largest that is stable without momentum.
GRID = np.r_[np.geomspace(1 / 100, 0.5, 9), 0.65, 0.8, 0.9, 0.96]
MOMENTA = (0.0, 0.5, 0.9)


def floor(model: Model, staleness: int, momentum: float = 0.0) -> float:
    """Fewest steps over rates at an unlimited batch; the largest curvature must be one."""
    rates = GRID * stability_limit(staleness) * (1 + momentum)
    return fewest(model, [np.inf], rates, staleness, momentum)[0]


def momentum_saves(model: Model, staleness: int) -> float:
    """By what factor momentum, the best of MOMENTA, lowers the floor if gradients are so late."""
    floors = [floor(model, staleness, momentum) for momentum in MOMENTA]
    return floors[0] / min(floors)
