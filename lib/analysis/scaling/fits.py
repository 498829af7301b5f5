"""The fit K* = c1/B + c2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import leastsq

from lib.analysis.scaling.steps import CURVE

FAR = 8  # natural logarithms beyond the sizes measured, where a bend counts as none


@dataclass(frozen=True)
class Hyperbola:
    """K* = c1 / B + c2: c1 in examples, c2 in steps, critical = c1 / c2 in examples (the bend), r2 in log space.

    residual: the factor by which points lie off, root mean square in log space; unlike r2 it does not reward steep curves.
    identified: whether the bend lies inside the measured range; outside, one of the constants is only bounded.
    """

    c1: float
    c2: float
    r2: float
    residual: float
    identified: bool

    @property
    def critical(self) -> float:
        return self.c1 / self.c2

    def predict(self, batch_size: np.ndarray) -> np.ndarray:
        """Steps to result [n] at these batch sizes [n]."""
        return self.c1 / np.asarray(batch_size, float) + self.c2


def check_points(b: np.ndarray, k: np.ndarray) -> None:
    """Raise ValueError unless batch sizes b and steps k are equally many, positive and finite."""
    for name, values in (("batch_size", b), ("steps", k)):
        wrong = values[~(np.isfinite(values) & (values > 0))]
        if wrong.size:
            raise ValueError(f"{name}: {wrong[0]:g} is not allowed; every value must be positive and finite")
    if len(k) != len(b):
        raise ValueError(f"steps: {len(k)} values for {len(b)} batch sizes are not allowed; one for each is needed")


def fit_hyperbola(batch_size: np.ndarray, steps: np.ndarray) -> Hyperbola:
    """Least squares on log steps of the curve that SGD theory gives (Bottou et al. 2018; McCandlish et al. 2018).

    batch_size, steps: [n], n >= 3.  Raises ValueError for fewer points, for lengths that differ, and for a
    batch size or steps that are not positive and finite: a cell that missed the goal has no place in the fit.
    """
    b, k = np.asarray(batch_size, float), np.asarray(steps, float)
    if len(b) < 3:
        raise ValueError(f"batch_size: {len(b)} points are not enough for two constants; at least 3 are needed")
    check_points(b, k)

    def residuals(p):
        return np.logaddexp(p[0] - np.log(b), p[1]) - np.log(k)

    start = [np.log(k[b.argmin()] * b.min()), np.log(k.min())]
    p = leastsq(residuals, start)[0]
    spread = np.sum((np.log(k) - np.log(k).mean()) ** 2)
    r2 = 1 - np.sum(residuals(p) ** 2) / spread if spread > 0 else np.nan
    off = float(np.exp(np.sqrt(np.mean(residuals(p) ** 2))))
    c1, c2 = np.exp(p)
    return Hyperbola(c1, c2, r2, off, bool(b.min() < c1 / c2 < b.max()))


def hyperbolas(b: np.ndarray, k: np.ndarray, points: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """c1 and c2 [draws] of `fit_hyperbola` for sizes b [n] and steps k [draws, n], by a search over the bend alone.

    For a given bend the best c2 is a mean of logarithms; the best bend is sought on a grid and refined by a parabola.
    A curve that is best with its bend at an end of the grid shows no floor (c2 = 0) or no noise term (c1 = 0).
    """
    bends = np.linspace(np.log(b.min()) - FAR, np.log(b.max()) + FAR, points)
    shape = np.logaddexp(0, bends[:, None] - np.log(b))  # [points, n]
    logs = np.log(k)
    # The sum of squares of (log k - shape) about its mean, for every draw and bend, without the [draws, points, n] array.
    centred, flat = logs - logs.mean(1, keepdims=True), shape - shape.mean(1, keepdims=True)
    loss = (flat**2).sum(1) - 2 * centred @ flat.T
    at = loss.argmin(1).clip(1, points - 2)
    left, centre, right = (loss[np.arange(len(k)), at + d] for d in (-1, 0, 1))
    curvature = np.maximum(left - 2 * centre + right, 1e-12)
    bend = bends[at] + np.clip(0.5 * (left - right) / curvature, -1, 1) * (bends[1] - bends[0])
    c2 = np.exp((logs - np.logaddexp(0, bend[:, None] - np.log(b))).mean(1))
    straight, flat = (loss.argmin(1) == end for end in (points - 1, 0))
    return np.where(flat, 0, c2 * np.exp(bend)), np.where(straight, 0, c2)


def on_one_line(curves: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Points over their curve's bend (x) and floor (y), and `off`, |log2| of their distance from 1 + 1/x."""
    points = curves.merge(summary, on=CURVE)
    points = points.assign(x=points.batch_size / points.critical, y=points.steps / points.c2)
    return points.assign(off=np.log2(points.y / (1 + 1 / points.x)).abs())
