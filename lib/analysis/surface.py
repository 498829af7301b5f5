"""Steps to goals against batch size and learning rate at once, fitted to single trainings.

It rests on two laws of this book: K* = c2 (1 + C / B) steps at the best rate, and a best rate of
r∞ / (1 + ρ C / B)^q.  A training at rate η instead of r takes (r / η + η / r) / 2 times as many.
Every training contributes, even if given up or diverged, and so do its steps to easier goals, which
have the same C and rates, but a separate c2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.optimize import least_squares
from scipy.special import expit, log_ndtr, stdtrit

from lib.analysis.scaling import LEVEL

# Indices of parameters: ln C, ln r∞, ln ρ, q, then ln c2 of every goal, then the departure of ln K*
# from the law at every batch size
BEND, RATE, RATIO, POWER, FLOORS = range(5)
# Prior means and standard deviations.  Those of ρ and q come from curves of networks on the digits
# and on MNIST; the others are nearly uninformative.
RATIO_PRIOR, POWER_PRIOR = (np.log(0.6), 0.6), (0.85, 0.25)
UNKNOWN_BEND, UNKNOWN = 3.0, 10.0
DEPARTS = 0.1
# Prior standard deviation of ln K between equal trainings, and how many trainings it is worth
SCATTER, WORTH = 0.25, 4
SHARED = 0.6  # correlation of one training's steps to several goals
# ln of the multiple of the best rate beyond which trainings diverge, and its uncertainty
DIVERGES, BLUR = np.log(2.5), 0.3
STARTS = np.linspace(-2, 2, 5)  # starting points of ln C, from the middle of the batch sizes
ROUNDS = 3  # of estimating the scatter and fitting


@dataclass(frozen=True)
class Surface:
    """The laws fitted to trainings, with 90 % intervals.

    Attributes:
        theta: parameters [p].
        covariance: of these [p, p].
        goals: how many.
        sizes: batch sizes that may depart [p - FLOORS - goals], ascending.
        scatter: standard deviation of ln K between equal trainings.
        freedom: degrees of freedom of the intervals.
    """

    theta: np.ndarray
    covariance: np.ndarray
    goals: int
    sizes: np.ndarray
    scatter: float
    freedom: float

    @property
    def critical(self) -> tuple[float, float, float]:
        """C with its interval: value, low, high."""
        return tuple(self._interval(self.theta[BEND], np.eye(len(self.theta))[BEND]))

    @property
    def width(self) -> float:
        """The factor from C to either end of its interval."""
        value, _, high = self.critical
        return float(high / value)

    def steps(self, sizes: np.ndarray, departing: bool = True) -> np.ndarray:
        """K* to the hardest goal at the best rate at batch sizes [m], with its interval: [3, m].

        departing: include the departures of the batch sizes tried; else only the law.
        """
        values, slopes = self._log_steps(np.asarray(sizes, float))
        if not departing:
            departures = slice(FLOORS + self.goals, None)
            values = values - slopes[:, departures] @ self.theta[departures]
            slopes[:, departures] = 0
        return self._interval(values, slopes)

    def rates(self, sizes: np.ndarray) -> np.ndarray:
        """The best learning rate at batch sizes [m], with its interval: [3, m]."""
        return self._interval(*self._log_rates(np.asarray(sizes, float)))

    def expected(self, size: float, rate: float) -> tuple[float, float]:
        """ln of the steps of a training to the hardest goal, and its standard deviation."""
        value, slopes = self._log_surface(np.array([size]), np.log([rate]))
        variance = slopes[0] @ self.covariance @ slopes[0]
        return float(value[0]), float(np.sqrt(variance + self.scatter**2))

    def at_best(self, table: pd.DataFrame) -> np.ndarray:
        """Factors that convert the steps of trainings [n] to those at the best rate."""
        rates, _ = self._log_rates(table.batch_size.to_numpy(float))
        return 1 / np.cosh(np.log(table.learning_rate.to_numpy(float)) - rates)

    def after(self, size: float, rate: float) -> Surface:
        """The surface after one more training there, if it turned out as expected."""
        _, slopes = self._log_surface(np.array([size]), np.log([rate]))
        gain = self.covariance @ slopes[0]
        less = np.outer(gain, gain) / (slopes[0] @ gain + self.scatter**2)
        return replace(self, covariance=self.covariance - less)

    # --- ln of both laws, and their slopes [m, p] -------------------------------------------------

    def _log_steps(self, sizes: np.ndarray, goals: np.ndarray | int = 0) -> tuple:
        distance = self.theta[BEND] - np.log(sizes)
        departs = sizes[:, None] == self.sizes
        slopes = np.zeros((len(sizes), len(self.theta)))
        slopes[:, BEND] = expit(distance)
        slopes[np.arange(len(sizes)), FLOORS + goals] = 1
        slopes[:, FLOORS + self.goals :] = departs
        law = self.theta[FLOORS + goals] + np.logaddexp(0, distance)
        return law + departs @ self.theta[FLOORS + self.goals :], slopes

    def _log_rates(self, sizes: np.ndarray) -> tuple:
        distance = self.theta[RATIO] + self.theta[BEND] - np.log(sizes)
        fall = np.logaddexp(0, distance)
        slopes = np.zeros((len(sizes), len(self.theta)))
        slopes[:, RATE] = 1
        slopes[:, [BEND, RATIO]] = (-self.theta[POWER] * expit(distance))[:, None]
        slopes[:, POWER] = -fall
        return self.theta[RATE] - self.theta[POWER] * fall, slopes

    def _log_surface(self, sizes: np.ndarray, log_rates: np.ndarray, goals=0) -> tuple:
        steps, slopes = self._log_steps(sizes, goals)
        best, moves = self._log_rates(sizes)
        off = log_rates - best
        return steps + np.log(np.cosh(off)), slopes - np.tanh(off)[:, None] * moves

    def _interval(self, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        spread = np.sqrt(np.einsum("...i,ij,...j", slopes, self.covariance, slopes))
        reach = stdtrit(self.freedom, (1 + LEVEL) / 2) * spread
        return np.exp([values, values - reach, values + reach])


def fit(table: pd.DataFrame, goals: list[str], also: Sequence[int] = ()) -> Surface:
    """The surface fitted to trainings, at least one of which met every goal.

    Args:
        table: a row per training: batch_size, learning_rate, last_step, status, and the goals.
        goals: columns with the steps to each, the hardest first; NaN if it was not met.
        also: batch sizes that may be tried next.
    """
    problem = _Problem(table, goals, also)
    starts = [problem.start(move) for move in STARTS]
    scatter = SCATTER
    for _ in range(ROUNDS):
        fits = [
            least_squares(problem.residuals, start, problem.slopes, args=(scatter,))
            for start in starts
        ]
        best = min(fits, key=lambda fit: fit.cost)
        starts = [best.x]
        off = scatter * problem.repeated * best.fun[: len(problem.met)][problem.met]
        count = len(off) / problem.goals
        variance = (off @ off) / problem.goals
        scatter = float(np.sqrt((WORTH * SCATTER**2 + variance) / (WORTH + count)))
    covariance = np.linalg.inv(best.jac.T @ best.jac)
    freedom = WORTH + max(0.0, count - 3)
    return replace(
        problem.surface(best.x), covariance=covariance, scatter=scatter, freedom=freedom
    )


class _Problem:
    """Least squares of trainings and priors, for parameters theta [p].

    Every training has a row per goal [n]: its batch size, rate, number of the goal and steps to it
    or, if it was not met, those after which the training was given up or diverged.
    """

    def __init__(self, table: pd.DataFrame, goals: list[str], also: Sequence[int]):
        self.goals = count = len(goals)
        self.batch_sizes, rates = (
            np.tile(table[name].to_numpy(float), count)
            for name in ("batch_size", "learning_rate")
        )
        self.log_rates = np.log(rates)
        self.goal = np.repeat(np.arange(count), len(table))
        self.steps = table[goals].T.fillna(table.last_step).to_numpy(float).ravel()
        self.met = table[goals].notna().to_numpy().T.ravel()
        self.diverged = ~self.met & np.tile(table.status.eq("infeasible"), count)
        self.sizes = np.unique([*self.batch_sizes, *also]).astype(float)
        # One training's steps to several goals count less than as many trainings
        self.repeated = np.sqrt(1 + SHARED * (count - 1))
        priors = [
            (np.log(self.sizes).mean(), UNKNOWN_BEND),
            (0, UNKNOWN),
            RATIO_PRIOR,
            POWER_PRIOR,
            *[(0, UNKNOWN)] * count,
            *[(0, DEPARTS)] * len(self.sizes),
        ]
        self.means, self.spreads = np.array(priors, float).T

    def surface(self, theta: np.ndarray) -> Surface:
        return Surface(theta, np.zeros((0, 0)), self.goals, self.sizes, SCATTER, 1.0)

    def start(self, move: float) -> np.ndarray:
        """Parameters that fit the fastest training exactly, with ln C moved from its mean."""
        steps = self.steps.reshape(self.goals, -1)
        fastest = np.where(self.met, self.steps, np.inf)[: steps.shape[1]].argmin()
        size = self.batch_sizes[[fastest]]
        theta = self.means.copy()
        theta[BEND] += move
        theta[RATE] = self.log_rates[fastest] - self.surface(theta)._log_rates(size)[0][0]
        law = self.surface(theta)._log_steps(size)[0][0]
        theta[FLOORS : FLOORS + self.goals] = np.log(steps[:, fastest]) - law
        return theta

    def _off(self, theta: np.ndarray, scatter: float) -> tuple[np.ndarray, np.ndarray]:
        """Residuals of the trainings [n], in standard deviations, and their slopes [n, p].

        If a training missed its goal, we only know that it would take more steps, or, if it
        diverged, that its rate was too high: the square of its residual is then -2 ln of the
        probability of that.
        """
        surface = self.surface(theta)
        best, moves = surface._log_rates(self.batch_sizes)
        values, slopes = surface._log_surface(self.batch_sizes, self.log_rates, self.goal)
        off = (np.log(self.steps) - values) / scatter
        slopes = -slopes / scatter
        below = (DIVERGES - (self.log_rates - best)) / BLUR
        off = np.where(self.diverged, below, off)
        slopes = np.where(self.diverged[:, None], moves / BLUR, slopes)
        log_chance = log_ndtr(-off)
        one_sided = np.sqrt(-2 * log_chance).clip(1e-9)
        density = np.exp(-(off**2) / 2 - log_chance) / np.sqrt(2 * np.pi)
        steepness = np.where(self.met, 1.0, density / one_sided)
        off = np.where(self.met, off, one_sided)
        slopes = steepness[:, None] * slopes
        return off / self.repeated, slopes / self.repeated

    def residuals(self, theta: np.ndarray, scatter: float) -> np.ndarray:
        return np.concatenate(
            [self._off(theta, scatter)[0], (theta - self.means) / self.spreads]
        )

    def slopes(self, theta: np.ndarray, scatter: float) -> np.ndarray:
        return np.concatenate([self._off(theta, scatter)[1], np.diag(1 / self.spreads)])
