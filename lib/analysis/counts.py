"""Shares of trials that were counted, and their differences, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from lib.analysis.scaling import LEVEL


class Share(NamedTuple):
    """A share with the ends of its interval at LEVEL."""

    value: float
    low: float
    high: float


def share(met: int, of: int) -> Share:
    """The share of so many, by Wilson's (1927) score; NaN of none."""
    if not of:
        return Share(np.nan, np.nan, np.nan)
    z, p = ndtri(0.5 + LEVEL / 2), met / of
    centre = (p + z**2 / (2 * of)) / (1 + z**2 / of)
    reach = z * np.sqrt(p * (1 - p) / of + (z / (2 * of)) ** 2) / (1 + z**2 / of)
    return Share(float(p), float(max(centre - reach, 0)), float(min(centre + reach, 1)))


def fell(before: Share, after: Share) -> Share:
    """One share less another: Newcombe's (1998) interval of the difference."""
    (a, a_low, a_high), (b, b_low, b_high) = before, after
    return Share(
        a - b,
        float(a - b - np.hypot(a - a_low, b_high - b)),
        float(a - b + np.hypot(a_high - a, b - b_low)),
    )
