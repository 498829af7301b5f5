"""Fits curves of the form K* = c1 / B + c2, many at once, and tests the form against the scatter of
searches.

It is that of SGD theory (Bottou et al. 2018; McCandlish et al. 2018), and the book uses it for all
curves: the critical batch size is c1 / c2, where the elasticity of K* against B is one half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, fdtrc, ncfdtr, ncfdtri

from lib import require

FAR = 8.0  # in ln B: a bend so far beyond the batch sizes measured counts as none
# In ln B: up to this far beyond them, a critical batch size is a number and not a bound
REACH = np.log(8)
POINTS = 240  # bends tried
STEPS = 8  # Gauss-Newton steps at most, until none moves farther than CLOSE
CLOSE = 1e-9  # smaller steps do not change the loss
# Degrees of freedom that the scatter of all batch sizes adds to that of each
BORROWED = 4


@dataclass(frozen=True)
class Fits:
    """Curves c1 / B + c2 fitted to k rows of ln K*.

    Attributes, [k] each:
        bend: ln of the batch size at which both terms are equal.
        floor: ln c2.
        loss: weighted sum of squared residuals.
        straight, flat: whether the curve has no floor, or no slope.
    """

    bend: np.ndarray
    floor: np.ndarray
    loss: np.ndarray
    straight: np.ndarray
    flat: np.ndarray

    @property
    def c1(self) -> np.ndarray:
        """In steps x examples, [k]; zero without a slope."""
        return np.where(self.flat, 0.0, np.exp(self.floor + self.bend))

    @property
    def c2(self) -> np.ndarray:
        """In steps, [k]; zero without a floor."""
        return np.where(self.straight, 0.0, np.exp(self.floor))

    @property
    def log_critical(self) -> np.ndarray:
        """ln of the batch size at which the elasticity of K* is one half, [k]; infinite if there is
        none.
        """
        return np.where(self.straight, np.inf, np.where(self.flat, -np.inf, self.bend))

    def log_steps(self, sizes: np.ndarray) -> np.ndarray:
        """ln K* [k, m] at batch sizes [m]."""
        return self.floor[:, None] + shape(sizes, self.bend)


def shape(sizes: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """ln(1 + b / B) [k, m] for bends ln b [k] at batch sizes B [m]."""
    return np.logaddexp(0.0, bend[:, None] - np.log(sizes))


def fit(sizes: np.ndarray, logs: np.ndarray, weights: np.ndarray | None = None) -> Fits:
    """Fit every row by least squares on ln K*.

    Args:
        sizes: batch sizes [m], m >= 3.
        logs: ln K* [k, m], finite.
        weights: of the batch sizes [m]; None: equal.

    For any bend, the best ln c2 is a mean of logarithms; so a grid of bends is searched, then
    refined by Gauss-Newton steps from its best point.  Raises ValueError for fewer than three batch
    sizes and for values that are not finite.
    """
    sizes = np.asarray(sizes, float)
    logs = np.atleast_2d(np.asarray(logs, float))
    enough, counts = len(sizes) >= 3, f"{len(sizes)} batch sizes"
    require(enough, "sizes", counts, "3 or more, for two constants")
    require(np.isfinite(logs).all(), "logs", logs, "finite; leave out missing values")
    weights = np.ones(len(sizes)) if weights is None else np.asarray(weights, float)
    places = np.log(sizes)
    bends = np.linspace(places.min() - FAR, places.max() + FAR, POINTS)
    slopes = _centred(shape(sizes, bends), weights)
    weighted = _centred(logs, weights) * weights
    # Up to a constant of the row, [k, POINTS]
    point = (slopes**2 @ weights - 2 * weighted @ slopes.T).argmin(1)
    bend = _descend(sizes, logs, weights, bends[point])
    residuals = logs - shape(sizes, bend)
    loss = _centred(residuals, weights) ** 2 @ weights
    floor = np.average(residuals, axis=1, weights=weights)
    return Fits(bend, floor, loss, straight=point == POINTS - 1, flat=point == 0)


def _centred(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Values [..., m] minus their weighted means."""
    return values - (values @ (weights / weights.sum()))[..., None]


def _descend(
    sizes: np.ndarray, logs: np.ndarray, weights: np.ndarray, bend: np.ndarray
) -> np.ndarray:
    """Bends [k] with the least loss near these [k]."""
    residuals = _centred(logs - shape(sizes, bend), weights)
    damping = np.full(len(bend), 1e-6)
    for _ in range(STEPS):
        slopes = _centred(expit(bend[:, None] - np.log(sizes)), weights)
        square = slopes**2 @ weights + damping
        step = (slopes * residuals) @ weights / square
        tried = bend + step.clip(-0.5, 0.5)
        left = _centred(logs - shape(sizes, tried), weights)
        better = left**2 @ weights < residuals**2 @ weights
        bend = np.where(better, tried, bend)
        residuals = np.where(better[:, None], left, residuals)
        damping = np.where(better, damping / 4, damping * 16).clip(1e-9, 1e9)
        if np.abs(step).max() < CLOSE:
            break
    return bend


def log_critical(
    sizes: np.ndarray, logs: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """ln of the critical batch size c1/c2 [k] for rows of ln K* [k, m], cut at REACH beyond the
    batch sizes measured; weights: as for `fit`.
    """
    critical = fit(sizes, logs, weights).log_critical
    return critical.clip(np.log(np.min(sizes)) - REACH, np.log(np.max(sizes)) + REACH)


@dataclass(frozen=True)
class FormTest:
    """How well a form fits one curve, by the scatter of its own searches.

    Attributes:
        chi2: weighted sum of squared residuals, about `freedom` if the form is true.
        p_value: of an F test of chi2, since the scatter is estimated.
        depart, depart_low, depart_high: the factor by which the curve itself departs from the form,
            root mean square over batch sizes, with its 90 % interval: the residuals without the
            scatter of the searches.
    """

    chi2: float
    freedom: int
    p_value: float
    depart: float
    depart_low: float
    depart_high: float


def scatter_by_size(logs: np.ndarray) -> np.ndarray:
    """Variance [m] of ln K* about each search's level, for searches [n, m] without gaps, n >= 3.

    A search that is slower everywhere only shifts a curve, as every form here allows.
    """
    n, m = logs.shape
    residuals = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    freedom = (n - 1) * (m - 1) / m  # of each batch size
    variances = (residuals**2).sum(0) / freedom
    return (freedom * variances + BORROWED * variances.mean()) / (freedom + BORROWED)


def test_form(sizes: np.ndarray, logs: np.ndarray) -> FormTest:
    """Test c1 / B + c2 on a curve's searches.

    sizes: batch sizes [m], m >= 5.  logs: ln K* [n, m] of n >= 3 searches, without gaps.
    Raises ValueError for fewer sizes or searches.
    """
    n, m = logs.shape
    counts = f"{n} searches at {m} batch sizes"
    require(m >= 5 and n >= 3, "logs", counts, "3 or more at 5 or more")
    weights = n / scatter_by_size(logs)
    means = logs.mean(0, keepdims=True)
    freedom = m - 2
    scatter_freedom = (n - 1) * (m - 1)
    chi2 = float(fit(sizes, means, weights=weights).loss[0])
    p_value = float(fdtrc(freedom, scatter_freedom, chi2 / freedom))
    excess = _noncentrality(chi2, freedom, scatter_freedom)
    departs = np.exp(np.sqrt(excess / weights.sum()))
    return FormTest(chi2, freedom, p_value, *departs.tolist())


def _noncentrality(chi2: float, freedom: int, scatter_freedom: int) -> np.ndarray:
    """What a wrong form adds to chi2: its expectation beyond `freedom`, and its 90 % interval from
    the F distribution.  A chi2 that is small by luck does not narrow it: for the upper end, chi2 is
    taken to be at least its expectation.
    """

    def quantile(level: float, measured: float) -> float:
        most = 4 * measured + 100.0

        def beyond(excess: float) -> float:
            return float(ncfdtr(freedom, scatter_freedom, excess, measured / freedom)) - level

        return brentq(beyond, 0.0, most) if beyond(0.0) > 0 > beyond(most) else 0.0

    ends = quantile(0.95, chi2), quantile(0.05, float(max(chi2, freedom)))
    return np.array([max(chi2 - freedom, 0.0), *ends])


def power_of_form(logs: np.ndarray, depart: float, most: float) -> tuple[float, float]:
    """How often `test_form` shows that a curve departing by `depart` departs by less than `most`,
    and how often that it departs by more.

    Args:
        logs: ln K* [n, m] of the curve's searches, for their number and scatter.
        depart: root mean square of ln K* minus the form, over batch sizes.
        most: limit below or above which the whole interval must lie.
    """
    n, m = logs.shape
    total = (n / scatter_by_size(logs)).sum()
    freedoms = m - 2, (n - 1) * (m - 1)
    # The largest chi2 / freedom whose upper end lies below, the least whose lower end lies above
    ends = ncfdtri(*freedoms, total * most**2, [0.05, 0.95])
    below, within = ncfdtr(*freedoms, total * depart**2, ends).tolist()
    return (below if ends[0] > 1 else 0.0), 1 - within
