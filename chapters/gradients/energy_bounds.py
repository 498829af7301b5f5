"""Bounds on how much of a vector its k largest entries leave behind."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from lib import require


def classical(density: np.ndarray) -> np.ndarray:
    """1 - k/d: a bound for any vector, which Rand-k attains in expectation.  Raises ValueError
    unless all densities are in [0, 1], as the other bounds do.
    """
    share = np.asarray(density, float)
    require(((share >= 0) & (share <= 1)).all(), "density", density, "in [0, 1]")
    return 1 - share


def tighter(density: np.ndarray) -> np.ndarray:
    """(1 - k/d)^2: a bound for vectors for which `portraits.bell` is true (Shi et al. 2019,
    abstract: delta = (2kd - k^2)/d^2).
    """
    return classical(density) ** 2


def gaussian(density: np.ndarray) -> np.ndarray:
    """The share that Top-k leaves of a normal vector with mean 0 in the limit of many entries:
    1 - x - 2 t phi(t).
    """
    remainder = classical(density)
    t = -ndtri(np.maximum(density, np.finfo(float).tiny) / 2)  # the limit at density 0
    return remainder - 2 * t * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
