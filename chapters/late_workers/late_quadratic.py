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
import pandas as pd

from lib import require_all
from lib.analysis.noisy_quadratic import Model
from lib.fields import PART, Count, Whole, check

LONGEST = 200_000  # steps that are walked
MOST = 256  # steps by which gradients may be late
FAR = 10.0  # times the loss at the start: a path that is there does not come back


def stability_limit(staleness: int) -> float:
    """Below which rate times curvature must lie for plain SGD to settle: 2 sin(pi / (2 (2 s + 1))).

    A root z = e^{i a} of z^{s+1} - z^s + x has x = z^s (1 - z) = 2 sin(a/2) e^{i ((s + 1/2) a -
    pi/2)}; this is first positive at a = pi / (2 s + 1).  Raises ValueError for a staleness that is
    not allowed.
    """
    check("staleness", staleness, Whole(0, MOST))
    return 2 * math.sin(math.pi / (2 * (2 * staleness + 1)))


def coarsened(model: Model, exact: int = 30, per_octave: int = 12) -> Model:
    """About the same model of fewer dimensions: after the first `exact`, neighbours share their
    mean curvature.

    The curvature must fall; a group's squares and noise are sums.  Raises ValueError for counts
    that are not positive.
    """
    check("exact", exact, Count(len(model.curvature)))
    check("per_octave", per_octave, Count(10_000))
    place = np.arange(1, len(model.curvature) + 1)
    group = np.where(
        place <= exact, place, exact + 1 + np.floor(per_octave * np.log2(place / exact)).astype(int)
    )
    _, group, count = np.unique(group, return_inverse=True, return_counts=True)
    total = [
        np.bincount(group, values)
        for values in (model.curvature, model.noise, model.square * np.ones(len(group)))
    ]
    return Model(total[0] / count, total[1], model.target, total[2])


def fewest(
    model: Model,
    batch_sizes: Iterable[float],
    rates: Iterable[float],
    staleness: int = 0,
    momentum: float = 0.0,
    most: int = LONGEST,
) -> tuple[np.ndarray, np.ndarray]:
    """Steps at which the loss first meets the target at the best of the rates, and that rate, both
    [batch sizes].

    staleness: how many steps late gradients are.  inf and NaN where no rate meets it in `most`
    steps; a batch size may be inf. Raises ValueError for what is not positive, for momentum outside
    [0, 1) and for counts that are not allowed.
    """
    b, rate = np.asarray(list(batch_sizes), float), np.asarray(list(rates), float)
    require_all("batch_sizes", b, lambda v: v > 0, "a positive number")
    require_all("rates", rate, lambda v: (v > 0) & np.isfinite(v), "a positive finite number")
    check("momentum", momentum, PART)
    check("staleness", staleness, Whole(0, MOST))
    check("most", most, Count(10**8))
    found, best = np.full(len(b), np.inf), np.full(len(b), np.nan)
    h, slots = model.curvature, staleness + 1
    signal, spread = h * model.square, h * model.noise
    # The path without noise, and the response to one noise
    ring = np.zeros((slots, 2, len(rate), len(h)))
    ring[:, 0] = 1.0
    v, noise = np.zeros(ring.shape[1:]), np.zeros(ring.shape[2:])
    for t in range(most):
        old = (t + 1) % slots  # the weights of s steps ago, which make room for the next
        v = momentum * v + h * ring[old]
        v[1] += t == 0
        w = ring[t % slots] - rate[:, None] * v
        ring[old] = w
        noise += w[1] ** 2
        loss = 0.5 * ((w[0] ** 2) @ signal)[:, None] + 0.5 * (noise @ spread)[:, None] / b
        met = (loss <= model.target).any(0) & np.isinf(found)
        if met.any():
            found[met], best[met] = t + 1, rate[loss.argmin(0)[met]]
        if np.isfinite(found).all():
            break
        if t % 64 == 0 and (lost := ~(loss.min(1) < FAR * model.start)).any():
            rate, ring, v, noise = rate[~lost], ring[:, :, ~lost], v[:, ~lost], noise[~lost]
        if not len(rate):
            break
    return found, best


# Rates over the largest that is stable without momentum.
GRID = np.r_[np.geomspace(1 / 100, 0.5, 9), 0.65, 0.8, 0.9, 0.96]


def growth(
    model: Model,
    batch_sizes: Iterable[float],
    late: Iterable[int],
    momenta: Iterable[float] = (0.0,),
) -> pd.DataFrame:
    """Fewest steps over rates and momenta, a row per staleness and batch size: staleness,
    batch_size, steps, rate, over.

    over: steps over those without delay, at the same batch size.  late: begins with 0.  The largest
    curvature must be one. Raises ValueError as `fewest`.
    """
    sizes, rows = list(batch_sizes), []
    for s in late:
        tried = [fewest(model, sizes, GRID * stability_limit(s) * (1 + m), s, m) for m in momenta]
        every = np.stack([steps for steps, _ in tried])  # [momenta, sizes]
        rates = np.stack([rate for _, rate in tried])
        rows += [
            (s, b, every[i, n], rates[i, n])
            for n, (b, i) in enumerate(zip(sizes, every.argmin(0), strict=True))
        ]
    found = pd.DataFrame(rows, columns=["staleness", "batch_size", "steps", "rate"])
    timely = found[found.staleness == 0].set_index("batch_size").steps
    return found.assign(over=found.steps / found.batch_size.map(timely))


def momentum_saves(model: Model, staleness: int, momenta: Iterable[float]) -> float:
    """By what factor the best of these momenta lowers the floor, the steps without noise, if
    gradients are so late.
    """
    floors = {
        m: fewest(model, [np.inf], GRID * stability_limit(staleness) * (1 + m), staleness, m)[0][0]
        for m in {0.0, *momenta}
    }
    return floors[0.0] / min(floors.values())
