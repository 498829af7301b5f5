"""The critical batch size that a few searches tell, with an interval from their own scatter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from lib import forms

WIDTH = 1.25  # the factor from the critical batch size to either end of its 90 % interval
SMALL = 0.1  # by which ln K* is moved, for slopes


@dataclass(frozen=True)
class Estimate:
    """The critical batch size with its 90 % interval, from `searches` of steps to the goal.

    floor: K* of endless batches by the fitted law, steps.  error: of one search, the standard
    deviation of ln K* about that law.  telling: how much the logarithm of the estimate moves with
    ln K* at each batch size.
    """

    critical: float
    low: float
    high: float
    searches: int
    floor: float
    error: float
    telling: dict[int, float]

    @property
    def width(self) -> float:
        """The factor from the estimate to the end of its interval."""
        return math.sqrt(self.high / self.low) if 0 < self.low else math.inf

    def reach(self, searches: np.ndarray) -> np.ndarray:
        """The factor from the mean of so many searches [n] to the ends of its 90 % interval."""
        return np.exp(stdtrit(self.searches - 2, 0.95) * self.error / np.sqrt(searches))

    def steps(self, sizes: np.ndarray) -> np.ndarray:
        """K* [n] of the law at batch sizes [n]."""
        return self.floor * (1 + self.critical / np.asarray(sizes, float))


def estimate(searches: dict[int, list[float]]) -> Estimate | None:
    """What steps to the goal tell, by batch size a list with one of each search; None of fewer than
    three sizes.

    The error is that of the searches about the fitted curve, so that a curve of another form widens
    the interval, too.
    """
    known = {size: steps for size, steps in sorted(searches.items()) if steps}
    if len(known) < 3:
        return None
    counts = np.array(list(map(len, known.values())))
    sizes = np.repeat(np.array(list(known), float), counts)
    logs = np.log(np.concatenate(list(known.values())))
    fitted = forms.fit(sizes, logs)
    centre = float(fitted.bend[0])
    freedom = len(logs) - 2
    error = math.sqrt(fitted.loss[0] / freedom)
    slopes = _slopes(sizes, logs, np.array(list(known)))
    spread = math.sqrt((slopes**2 / counts).sum())
    reach = float(stdtrit(freedom, 0.95)) * error * spread
    low = math.exp(centre - reach)
    high = math.exp(centre + reach)
    if not math.log(sizes.min()) - 1 < centre < math.log(sizes.max()) + 1:
        low = 0.0
        high = math.inf
    floor = math.exp(fitted.floor[0])
    telling = dict(zip(known, slopes.tolist()))
    return Estimate(math.exp(centre), low, high, len(logs), floor, error, telling)


def _slopes(sizes: np.ndarray, logs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """By how much ln C moves with ln K* at each of the known batch sizes."""
    moved = SMALL * (sizes == known[:, None])
    above, below = (forms.fit(sizes, logs + sign * moved).bend for sign in (1, -1))
    return (above - below) / (2 * SMALL)
