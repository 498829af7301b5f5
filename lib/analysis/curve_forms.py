"""K* = c1/B + c2 against other forms, and as a prediction of curves that are not measured."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import leastsq

from lib.analysis.scaling import (
    CURVE,
    LONG,
    at_every_goal,
    check_points,
    curve_from,
    either_way,
    mixed,
    ranged,
    redrawn,
    together,
)

# log K* of log parameters p and log B; the hyperbola is the one that the theory gives.
FORMS = {
    "c1/B + c2": lambda p, b: np.logaddexp(p[0] - b, p[1]),
    "c1/B": lambda p, b: p[0] - b,
    "c1/B^p": lambda p, b: p[0] - np.exp(p[1]) * b,
    "c1/B^p + c2": lambda p, b: np.logaddexp(p[0] - np.exp(p[2]) * b, p[1]),
    "c2 (1 + (Bc/B)^a)^(1/a)": lambda p, b: p[1] + np.logaddexp(0, np.exp(p[2]) * (p[0] - p[1] - b)) / np.exp(p[2]),
}
PARAMETERS = {"c1/B + c2": 2, "c1/B": 1, "c1/B^p": 2, "c1/B^p + c2": 3, "c2 (1 + (Bc/B)^a)^(1/a)": 3}


def fit_form(form: str, batch_size: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Log parameters of a form in FORMS by least squares on log steps; batch_size, steps: [n].

    Exponents start at one.  Raises ValueError for an unknown form, for fewer points than parameters, and for values that are
    not positive and finite.
    """
    if form not in FORMS:
        raise ValueError(f"form: {form!r} is unknown; allowed: {', '.join(FORMS)}")
    b, k, n = np.asarray(batch_size, float), np.asarray(steps, float), PARAMETERS[form]
    if len(b) < n:
        raise ValueError(f"batch_size: {len(b)} points are not enough for {n} constants")
    check_points(b, k)
    b, k = np.log(b), np.log(k)
    start = [k[b.argmin()] + b.min(), 0.0 if form == "c1/B^p" else k.min(), 0.0][:n]
    # Bounds by clipping, where the gradient then vanishes.  `least_squares` finds the same in six times the time.
    return leastsq(lambda p: FORMS[form](p.clip(-30, 30), b) - k, start, maxfev=5000)[0].clip(-30, 30)


def left_out(form: str, batch_size: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """log2 of predicted over measured steps [n] when each batch size in turn is left out of the fit and predicted."""
    b, k = np.asarray(batch_size, float), np.asarray(steps, float)
    found = []
    for i in range(len(b)):
        others = np.arange(len(b)) != i
        p = fit_form(form, b[others], k[others])
        found.append((FORMS[form](p, np.log(b[i])) - np.log(k[i])) / np.log(2))
    return np.array(found)


def left_out_factors(curves: pd.DataFrame, least: int = LONG, constants: int = 3) -> pd.DataFrame:
    """For every form and every curve with at least so many batch sizes: `factor`, the root mean square of `left_out`.

    constants: how many a form may have; shorter curves do not determine three.
    curves: a row per point with CURVE, batch_size and steps.  Columns: form, those of CURVE, factor (1: no error).
    """
    rows = []
    for key, c in curves.sort_values("batch_size").groupby(CURVE):
        for form in (f for f, n in PARAMETERS.items() if n <= constants and len(c) >= least):
            off = left_out(form, c.batch_size, c.steps)
            rows.append({"form": form, **dict(zip(CURVE, key)), "factor": 2 ** np.sqrt(np.mean(off**2))})
    return pd.DataFrame(rows, columns=["form", *CURVE, "factor"])


def predict_curve(curve: pd.DataFrame, sparsity: float) -> np.ndarray:
    """Steps to result at the batch sizes of the curve of one sparsity, predicted from the other sparsities' curves.

    curve: columns sparsity, batch_size, steps.  log c1 and log c2 of the others are fitted as straight lines in log
    density.  Returns [batch sizes, increasing].  Raises ValueError if fewer than two other sparsities are there.
    """
    others = [(s, c) for s, c in curve.groupby("sparsity") if s != sparsity]
    if len(others) < 2:
        raise ValueError(f"sparsity: {len(others)} other curves are not enough to predict from; at least 2 are needed")
    logs = np.array([fit_form("c1/B + c2", c.batch_size, c.steps) for _, c in others])
    there = _in_density([s for s, _ in others], sparsity) @ logs
    sizes = np.sort(curve[curve.sparsity == sparsity].batch_size.to_numpy(float))
    return np.exp(FORMS["c1/B + c2"](there, np.log(sizes)))


def _in_density(sparsities: list[float], sparsity: float) -> np.ndarray:
    """What a straight line in log density, fitted to values at these sparsities, makes of each at another: weights [n]."""
    return [1, np.log(1 - sparsity)] @ np.linalg.pinv(np.stack([np.ones(len(sparsities)), np.log1p(-np.array(sparsities))], 1))


def over_predicted(trials: pd.DataFrame, sparsity: float, draws: int = 500) -> pd.DataFrame:
    """Steps to every goal at one sparsity over those that the curves of the denser networks predict (`predict_curve`).

    A row per workload, algorithm, method of pruning, goal and batch size: CURVE, goal, batch_size, met (searches
    that met it) and ratio (median), ratio_low, ratio_high (5 and 95 % over drawn curves).  A search that missed it counts as
    its last step: where met is 0, a ratio is a lower bound.  Only where two denser networks or more are measured at three
    batch sizes, all by one protocol.
    """
    rows = []
    for network, own in trials[trials.sparsity <= sparsity].groupby(CURVE[:3]) if len(trials) else ():
        found = {level: at_every_goal(cells) for level, cells in own.groupby("sparsity")} if not mixed(own) else {}
        for goal, searches in found.pop(sparsity, {}).items():
            denser = {level: curve_from(ladder[goal], draws) for level, ladder in found.items() if goal in ladder}
            denser = {level: curve for level, curve in denser.items() if len(curve.logs.columns) >= 3}
            if len(denser) < 2:
                continue
            curve, *others = together(curve_from(searches, draws, least=0), *denser.values())
            met = searches.groupby("batch_size").steps.count()
            over = curve.to_numpy() / _predicted(dict(zip(denser, others)), sparsity, curve.columns)
            rows += [{**dict(zip(CURVE, (*network, sparsity))), "goal": goal, "batch_size": b, "met": met[b],
                      **ranged("ratio", either_way(values))} for b, values in zip(curve, over.T)]  # fmt: skip
    return pd.DataFrame(rows, columns=[*CURVE, "goal", "batch_size", "met", "ratio", "ratio_low", "ratio_high"])


def _predicted(curves: dict[float, pd.DataFrame], sparsity: float, sizes: pd.Index) -> np.ndarray:
    """As `predict_curve` for redrawn curves of other sparsities: steps [draws, batch sizes].

    NaN in a draw of which a curve shows no floor or no noise term: its logarithm says nothing of a power.
    """
    both = np.stack([redrawn(curve)[["c1", "c2"]] for curve in curves.values()])  # [levels, draws, 2]
    logs = np.log(np.where(both > 0, both, np.nan))
    there = np.tensordot(_in_density(list(curves), sparsity), logs, 1).T[..., None]  # [2, draws, 1]
    with np.errstate(invalid="ignore"):
        return np.exp(FORMS["c1/B + c2"](there, np.log(sizes.to_numpy(float))))
