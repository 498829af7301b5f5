"""The best learning rate against batch size: its value in each search, rules that may hold for it,
and rho, the batch size at which it bends over that at which steps do.

The definitions are those of `chapters/learning_rates/predictions.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import forms
from lib.analysis.scaling import POINT, Effect
from lib.records.searches import WINDOW

SIZES = 5  # the fewest batch sizes for which each is left out in turn
# Ranges tried for the power rule, and for the free exponent
POWERS, EXPONENTS = (-1.0, 2.0), (0.1, 3.0)
ROUNDS, PLACES = 4, 41  # of grid refinement, and points along each parameter
SOON, EDGE = "ended too soon", "at an end of its draw"


def best_rates(trials: pd.DataFrame) -> pd.DataFrame:
    """The best rate of every search that met its goal.

    Args:
        trials: at their goals, a row each, as from `lib.records.results.read`.

    Returns:
        POINT; steps (the fewest, k1); rate (the geometric mean over trials
        within WINDOW k1); why (SOON or EDGE if it does not count, else "").
    """
    rows = []
    for key, search in trials.groupby(POINT, sort=False):
        fewest = search.steps.min()
        limit = WINDOW * fewest
        drawn = search.learning_rate
        well = drawn[search.steps <= limit]
        if well.empty:
            continue
        rate = np.exp(np.log(well).mean())
        why = SOON if search.last_step.max() < limit else ""
        if well.min() == drawn.min() or well.max() == drawn.max():
            why = EDGE
        rows.append((*key, fewest, rate, why))
    return pd.DataFrame(rows, columns=[*POINT, "steps", "rate", "why"])


# --- rules ----------------------------------------------------------------------------------------

Shape = Callable[..., np.ndarray]  # maps ln B and the parameters to ln of rate over its factor
RULES: dict[str, tuple[Shape, int]] = {  # and the number of parameters: ln b and exponents
    "constant": (lambda x: 0 * x, 0),
    "linear": (lambda x: x, 0),
    "square root": (lambda x: x / 2, 0),
    "power": (lambda x, p: p * x, 1),
    "saturating": (lambda x, b: -np.logaddexp(0, b - x), 1),
    "saturating square root": (lambda x, b: -np.logaddexp(0, b - x) / 2, 1),
    "surge": (lambda x, b: -np.logaddexp((b - x) / 2, (x - b) / 2), 1),
    "free exponent": (lambda x, b, p: -np.logaddexp(0, p * (b - x)), 2),
}
RIVALS = [name for name in RULES if name != "free exponent"]


@dataclass(frozen=True)
class Fit:
    """A rule fitted to best rates: ln of its factor, and its parameters, ln b first."""

    rule: str
    factor: float
    parameters: tuple[float, ...]

    def log_rates(self, sizes: np.ndarray) -> np.ndarray:
        """ln of the rates [m] at batch sizes [m]."""
        return self.factor + RULES[self.rule][0](np.log(sizes), *self.parameters)


def fit(rule: str, sizes: np.ndarray, logs: np.ndarray) -> Fit:
    """Least squares fit to ln of the rates [m] at batch sizes [m], on ever finer grids."""
    shape, count = RULES[rule]
    x = np.log(sizes)
    bends = x.min() - forms.FAR, x.max() + forms.FAR
    ends = np.array([POWERS] if rule == "power" else [bends, EXPONENTS][:count])
    best = ()
    for _ in range(ROUNDS if count else 0):
        axes = np.linspace(*ends.T, PLACES)
        grid = np.meshgrid(*axes.T)
        points = np.stack(grid, -1).reshape(-1, count)
        residuals = logs - shape(x, *points.T[..., None])
        best = points[residuals.var(1).argmin()]
        width = axes[1] - axes[0]
        ends = best[:, None] + np.outer(width, [-2, 2])
    factor = np.mean(logs - shape(x, *best))
    return Fit(rule, float(factor), tuple(map(float, best)))


def left_out(rule: str, sizes: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """ln of the rate [m] that a rule fitted to all other batch sizes predicts for each; NaN for
    fewer than SIZES batch sizes.
    """
    if len(sizes) < SIZES:
        return np.full(len(sizes), np.nan)
    others = ~np.eye(len(sizes), dtype=bool)
    fits = [fit(rule, sizes[rows], logs[rows]) for rows in others]
    return np.array([law.log_rates(size) for law, size in zip(fits, sizes)])


def error(rule: str, sizes: np.ndarray, logs: np.ndarray) -> float:
    """Root mean square of ln(predicted / best rate) over batch sizes, each left out in turn."""
    return float(np.sqrt(np.mean((left_out(rule, sizes, logs) - logs) ** 2)))


def bend(logs: pd.Series) -> float:
    """ln b of 1 + b/B fitted to ln K* or minus ln of the rates, by batch size: ln C, ln B_eta.  NaN
    counts for nothing, as of a size that only one search has, where that is left out.
    """
    logs = logs.dropna()
    return forms.fit(logs.index.to_numpy(float), logs.to_numpy()).bend[0]


def log_rho(rates: pd.DataFrame, steps: pd.DataFrame) -> float:
    """ln of B_eta / C from the means of ln rate and ln K* [searches, batch sizes]; a batch size
    without a rate counts for C only.  NaN for fewer than three rates.
    """
    means = rates.mean()
    return bend(-means) - bend(steps.mean()) if means.count() > 2 else np.nan


def jackknife(statistic: Callable[..., float], *tables: pd.DataFrame) -> Effect:
    """A statistic of tables with a row per search, and its error by leaving out each search."""
    index = tables[0].index
    n = len(index)
    value = statistic(*tables)
    if n < 2:
        return Effect(value, np.inf, 1.0, n)
    parts = [statistic(*(table.drop(index=row) for table in tables)) for row in index]
    error = np.sqrt((n - 1) * np.var(parts))
    return Effect(value, float(error), n - 1.0, n)
