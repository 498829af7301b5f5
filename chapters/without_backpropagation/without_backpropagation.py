"""Training without backpropagation: searches beside backpropagation's, and how fast flips bring a
readout's error down.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect
from lib.analysis.scaling.curve import satterthwaite

BASE = "sgd"  # with backpropagation
# What the papers' claims speak of, the authors' own first
ARMS = {
    "lra": "β = 0.1",
    "lra-1": "β = 1",
}
FOLDS = 3  # e-folds after which a run has converged: 95 % of the way to its floor
KINDS = {False: "features as they are", True: "uncorrelated features"}


# --- errors passed back by other ways -------------------------------------------------------------


def lost(trials: pd.DataFrame) -> dict[str, Effect]:
    """By arm, points of test error beyond backpropagation's on the same split, the mean over
    searches: of the trial whose validation error is lowest, and of equal ones the mean.

    trials: run to their budget, as of `lib.records.results.read`.
    """
    last = f"test@{trials.max_steps.max()}"
    least = trials.groupby(["algorithm", "replicate"]).best_error.transform("min")
    best = trials[trials.best_error == least]
    errors = best.groupby(["replicate", "algorithm"])[last].mean().unstack()
    beyond = errors[[*ARMS]].sub(errors[BASE], axis=0) * 100
    return {arm: scaling.mean_of(points.dropna()) for arm, points in beyond.items()}


# --- readouts that are flipped --------------------------------------------------------------------


def excess(runs: pd.DataFrame) -> pd.DataFrame:
    """The training error's excess over where a run ends, over that at its start: [steps,
    replicates], of one setting.
    """
    errors = runs.pivot(index="step", columns="replicate", values="training")
    return (errors - errors.iloc[-1]) / (errors.iloc[0] - errors.iloc[-1])


def folds(runs: pd.DataFrame, count: int = FOLDS) -> np.ndarray:
    """Steps at which the mean excess of the runs has fallen by 1 ... count e-folds, [1 + runs,
    count].

    The first row is of all runs, the others without each in turn.  On straight lines between the
    logarithms of the excess.
    """
    own = excess(runs)
    steps, values = own.index.to_numpy(float), own.to_numpy()
    n = values.shape[1]
    means = [values.mean(1), *((values.sum(1) - one) / (n - 1) for one in values.T)]
    logs = np.log(np.maximum(means, 1e-12))
    return np.array([[_reached(steps, own, -n) for n in range(1, count + 1)] for own in logs])


def jackknifed(values: np.ndarray) -> Effect:
    """The estimate of all runs, values[0], with its error from those without each in turn,
    values[1:].
    """
    rest = values[1:]
    error = np.sqrt((len(rest) - 1) * rest.var())
    return Effect(float(values[0]), float(error), len(rest) - 1.0, len(rest))


def _reached(steps: np.ndarray, logs: np.ndarray, level: float) -> float:
    """Where logs [n], 0 at first, fall to the level, between the steps [n] measured; NaN if they do
    not.
    """
    below = np.flatnonzero(logs <= level)
    if not len(below):
        return np.nan
    around = slice(below[0] - 1, below[0] + 1)
    return float(np.interp(-level, -logs[around], steps[around]))


def _singly(table: pd.DataFrame) -> pd.DataFrame:
    """Runs of one flip a step on all examples."""
    return table[(table.flips == 1) & (table.batch_size == table.batch_size.max())]


def falls(table: pd.DataFrame) -> pd.DataFrame:
    """The mean `excess` of runs of one flip a step on all examples: kind, features, visits (steps
    over features), excess.
    """
    rows = []
    for (features, whitened), own in _singly(table).groupby(["features", "whitened"]):
        mean = excess(own).mean(axis=1).iloc[1:]
        about = {"kind": KINDS[whitened], "features": features}
        rows.append(pd.DataFrame({**about, "visits": mean.index / features, "excess": mean}))
    return pd.concat(rows).round(4)


def convergence(table: pd.DataFrame) -> pd.DataFrame:
    """Of runs that judge one flip a step on all examples, a row per number of features and kind.

    table: of `boolean_readout.results`.  Columns: features, kind, slower (an `Effect`: ln of the
    steps of the last of FOLDS e-folds over those of the first, 0 for an exponential).
    """
    rows = []
    for (features, whitened), own in _singly(table).groupby(["features", "whitened"]):
        found = folds(own)
        slower = np.log((found[:, -1] - found[:, -2]) / found[:, 0])
        rows.append((features, KINDS[whitened], jackknifed(slower)))
    return pd.DataFrame(rows, columns=["features", "kind", "slower"])


def growth(table: pd.DataFrame) -> dict[str, Effect]:
    """By kind, the power of the number of features with which steps to FOLDS e-folds grow: a line
    through the logarithms; linear growth is a power of 1.
    """
    found = {}
    for whitened, own in _singly(table).groupby("whitened"):
        by = {n: np.log(folds(runs)[:, -1]) for n, runs in own.groupby("features")}
        each = list(map(jackknifed, by.values()))
        sizes = np.log(list(by))
        off = sizes - sizes.mean()
        weights = off / (off @ off)  # of least squares
        parts = [(w * e.error) ** 2 for w, e in zip(weights, each)]
        freedom = satterthwaite(parts, [e.freedom for e in each])
        value = float(weights @ [e.value for e in each])
        error = float(np.sqrt(sum(parts)))
        found[KINDS[whitened]] = Effect(value, error, float(freedom), min(e.n for e in each))
    return found
