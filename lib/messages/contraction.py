"""How much of a vector's energy its k largest entries leave behind: exact values, bounds, and when
a bound holds.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from lib import require, require_all
from lib.fields import AMOUNT, Number, Whole, check


def _cumulative(u: np.ndarray) -> np.ndarray:
    """Squared entries of u [d] in falling order, added up: [d + 1] from zero on."""
    vector = np.ndim(u) == 1 and len(u) >= 2
    require(vector, "u", f"of shape {np.shape(u)}", "a vector of at least two entries")
    energy = np.sort(np.square(u, dtype=np.float64))[::-1]
    return np.concatenate([[0.0], np.cumsum(energy)])


def _check_density(density: np.ndarray) -> None:
    require_all("density", density, lambda v: (v >= 0) & (v <= 1), "a number in [0, 1]")


def left(u: np.ndarray, density: np.ndarray) -> np.ndarray:
    """|u - Top_k(u)|^2 / |u|^2 at each density k/d, exactly: u [d] -> as density.  Fractions of an
    entry interpolate.

    Raises ValueError for a density outside [0, 1], as all functions here, and for u that is no
    vector.
    """
    _check_density(density)
    total = _cumulative(u)
    places = np.asarray(density) * len(u)
    return np.interp(places, np.arange(len(total)), 1 - total / total[-1]).clip(min=0)


def classical(density: np.ndarray) -> np.ndarray:
    """1 - k/d: what any vector obeys, and Rand-k meets in expectation."""
    _check_density(density)
    return 1 - np.asarray(density)


def tighter(density: np.ndarray) -> np.ndarray:
    """(1 - k/d)^2: what a vector obeys for which `bell` is true (Shi et al. 2019, abstract: delta =
    (2kd - k^2)/d^2).
    """
    _check_density(density)
    return (1 - np.asarray(density)) ** 2


def gaussian(density: np.ndarray) -> np.ndarray:
    """The share that Top-k leaves of a normal vector with mean 0 in the limit of many entries: 1 -
    x - 2 t phi(t).
    """
    _check_density(density)
    density = np.asarray(density, dtype=np.float64)
    t = -ndtri(np.maximum(density, np.finfo(float).tiny) / 2)  # at density 0 the limit
    return 1 - density - 2 * t * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)


def profile(u: np.ndarray, bins: int = 100) -> np.ndarray:
    """Squared entries in falling order, averaged in `bins` equal bins, over the largest: [bins].

    Raises ValueError unless 2 <= bins <= d.
    """
    total = _cumulative(u)
    check("bins", bins, Whole(2, len(u)))
    edges = np.linspace(0, len(u), bins + 1)
    energy = np.interp(edges, np.arange(len(total)), total)
    return np.diff(energy) / (len(u) / bins) / total[1]


def bell(u: np.ndarray, bins: int = 100, tolerance: float = 0.0) -> bool:
    """Whether u's squared sorted profile is convex and ends at zero, as far as `bins` bins can
    tell.

    Convex: second differences of the bins are at least -tolerance.  Ends at zero: the last bin
    holds at most a third of the one before, as on a straight line that reaches zero at the end.
    With tolerance 0 this is enough for left(u, m / bins) <= (1 - m / bins)^2 at every m: less twice
    the last bin's multiple of the line, the bins are a sum of hinges (j - b)+ with 2 <= j <= bins,
    and of a hinge (j - m)(j - m - 1) / j(j - 1) is left if m < j, else nothing, which is less than
    the line leaves.  Between bins the excess is at most 1 / (4 bins^2): `left` is convex in the
    density, so that it lies below the chords of its bound, and these are no further above it.
    Raises ValueError as `profile`, and for a tolerance that is negative.
    """
    check("tolerance", tolerance, AMOUNT)
    p = profile(u, bins)
    return bool((np.diff(p, 2) >= -tolerance).all() and p[-1] <= p[-2] / 3 + tolerance)


def convex(profile: np.ndarray, rounding: float = 0.0) -> float:
    """The share of a profile's second differences that are not negative, for values rounded by so
    much of themselves.

    Raises ValueError for a profile of fewer than three values and for a rounding outside [0, 1].
    """
    p = np.asarray(profile)
    require(p.ndim == 1 and len(p) >= 3, "profile", f"of shape {p.shape}", "at least three values")
    check("rounding", rounding, Number("[0, 1]"))
    return float((np.diff(p, 2) >= -4 * rounding * p[1:-1]).mean())


def iterations(delta: np.ndarray) -> np.ndarray:
    """Steps T until which compression rules the bound of error-feedback SGD, (1 - delta)^2 /
    delta^4 up to a factor.

    delta: 1 - left, in (0, 1].  The bound is A / sqrt(T) + B (1 - delta) / (delta^2 T) (Karimireddy
    et al. 2019), with A and B that do not depend on delta; the two terms are equal at (B / A)^2
    times what this returns.  NaN, where nothing is measured, stays NaN.  Raises ValueError for
    delta outside [0, 1].
    """
    require_all("delta", delta, lambda v: ~((v < 0) | (v > 1)), "in (0, 1]")
    delta = np.asarray(delta)
    return ((1 - delta) / delta**2) ** 2
