"""The critical batch size that a few searches tell, with an interval from their own scatter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

FAR = math.log(64)  # how far beyond the batch sizes a critical one is looked for


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


def bend(sizes: np.ndarray, logs: np.ndarray) -> tuple[float, np.ndarray]:
    """ln C of K* = c (1 + C / B), fitted to ln K* [n] at batch sizes [n], and the residuals [n]."""
    ends = math.log(sizes.min()) - FAR, math.log(sizes.max()) + FAR
    tried = np.linspace(*ends, 1200)[:, None]
    rest = logs - np.logaddexp(0, tried - np.log(sizes))
    rest -= rest.mean(1, keepdims=True)
    best = int((rest**2).sum(1).argmin())
    return float(tried[best, 0]), rest[best]


def estimate(searches: dict[int, list[float]]) -> Estimate | None:
    """What steps to the goal tell, by batch size a list with one of each search; None of fewer than
    three sizes.

    The error is that of the searches about the fitted curve, so that a curve of another form widens
    the interval, too.
    """
    known = {size: steps for size, steps in sorted(searches.items()) if steps}
    if len(known) < 3:
        return None
    counts = np.array([len(steps) for steps in known.values()])
    sizes = np.repeat(np.array(list(known), float), counts)
    logs = np.log(np.concatenate(list(known.values())))
    centre, rest = bend(sizes, logs)
    freedom = len(logs) - 2
    error = math.sqrt((rest**2).sum() / freedom)
    telling = {size: _slope(sizes, logs, size) for size in known}
    spread = math.sqrt((np.array(list(telling.values())) ** 2 / counts).sum())
    reach = float(stdtrit(freedom, 0.95)) * error * spread
    low, high = math.exp(centre - reach), math.exp(centre + reach)
    if not math.log(sizes.min()) - 1 < centre < math.log(sizes.max()) + 1:
        low, high = 0.0, math.inf
    level = logs - rest - np.logaddexp(0, centre - np.log(sizes))
    floor = math.exp(float(level[0]))
    return Estimate(math.exp(centre), low, high, len(logs), floor, error, telling)


def _slope(sizes: np.ndarray, logs: np.ndarray, size: int, small: float = 0.1) -> float:
    """By how much ln C moves with ln K* at one batch size."""
    moved = small * (sizes == size)
    above, _ = bend(sizes, logs + moved)
    below, _ = bend(sizes, logs - moved)
    return (above - below) / (2 * small)
