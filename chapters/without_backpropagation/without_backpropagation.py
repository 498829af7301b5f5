"""Training without backpropagation: searches beside backpropagation's, and how fast flips bring a
readout's error down.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect
from lib.fields import POSITIVE, check

BASE = "sgd"  # with backpropagation
# What the papers' claims speak of, the authors' own first
ARMS = {
    "lra": "β = 0.1",
    "lra-1": "β = 1",
}
FOLDS = 3  # e-folds after which a run has converged: 95 % of the way to its floor
KINDS = {False: "features as they are", True: "uncorrelated features"}
READOUT = ["features", "batch_size", "flips", "take", "whitened"]


# --- errors passed back by other ways -------------------------------------------------------------


def ended(trials: pd.DataFrame) -> pd.DataFrame:
    """Test errors, a row per search (replicate) and a column per method: of the trial whose
    validation error is lowest.

    trials: run to their budget, as of `lib.records.results.read`.  Of equal ones the mean.
    """
    last = max(
        (column for column in trials if column.startswith("test@")), key=lambda name: int(name[5:])
    )
    best = trials[
        trials.best_error == trials.groupby(["algorithm", "replicate"]).best_error.transform("min")
    ]
    return best.groupby(["replicate", "algorithm"])[last].mean().unstack()


def lost(trials: pd.DataFrame) -> dict[str, Effect]:
    """By arm, points of test error beyond backpropagation's on the same split, the mean over
    searches.
    """
    errors = ended(trials) if len(trials) else pd.DataFrame()
    known = {
        arm: 100 * (errors[arm] - errors[BASE]).dropna()
        for arm in ARMS
        if {arm, BASE} <= set(errors)
    }
    return {arm: scaling.mean_of(points) for arm, points in known.items() if len(points) > 1}


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
    return np.array(
        [
            [_reached(steps, np.log(np.maximum(m, 1e-12)), -n) for n in range(1, count + 1)]
            for m in means
        ]
    )


def jackknifed(values: np.ndarray) -> Effect:
    """The estimate of all runs, values[0], with its error from those without each in turn,
    values[1:].
    """
    rest = values[1:]
    error = np.sqrt((len(rest) - 1) * rest.var())
    return Effect(float(values[0]), float(error), len(rest) - 1.0, len(rest))


def _reached(steps: np.ndarray, logs: np.ndarray, level: float) -> float:
    """Where logs [n] first fall to the level, between the steps [n] measured; NaN if they do not."""
    below = np.flatnonzero(logs <= level)
    if not len(below):
        return np.nan
    at = below[0]
    return (
        float(np.interp(-level, -logs[at - 1 : at + 1], steps[at - 1 : at + 1]))
        if at
        else float(steps[0])
    )


def _singly(table: pd.DataFrame) -> pd.DataFrame:
    """Runs of one flip a step on all examples."""
    return (
        table[(table.flips == 1) & (table.batch_size == table.batch_size.max())]
        if len(table)
        else table
    )


def falls(table: pd.DataFrame) -> pd.DataFrame:
    """The mean `excess` of runs of one flip a step on all examples: kind, features, visits (steps
    over features), excess.
    """
    rows = []
    for (features, whitened), own in _singly(table).groupby(["features", "whitened"]):
        mean = excess(own).mean(axis=1).iloc[1:]
        about = {"kind": KINDS[bool(whitened)], "features": features}
        rows.append(pd.DataFrame({**about, "visits": mean.index / features, "excess": mean}))
    return pd.concat(rows).round(4)


def convergence(table: pd.DataFrame) -> pd.DataFrame:
    """Of runs that judge one flip a step on all examples, a row per number of features and kind.

    table: of `boolean_readout.results`.  Columns: features, kind, slower (an `Effect`: ln of the
    steps of the last of FOLDS e-folds over those of the first, 0 for an exponential).
    """
    rows = []
    for (features, whitened), own in _singly(table).groupby(["features", "whitened"], sort=True):
        found = folds(own)
        slower = np.log((found[:, -1] - found[:, -2]) / found[:, 0])
        rows.append(
            {"features": int(features), "kind": KINDS[bool(whitened)], "slower": jackknifed(slower)}
        )
    return pd.DataFrame(rows, columns=["features", "kind", "slower"])


def growth(table: pd.DataFrame, fold: int = FOLDS) -> pd.DataFrame:
    """By kind, the power of the number of features with which steps to so many e-folds grow: a line
    through the logarithms.

    Columns: kind, power (an `Effect`; linear growth is a power of 1), least, most (features).
    """
    rows = []
    for whitened, own in _singly(table).groupby("whitened", sort=True) if len(table) else ():
        sizes = np.array(sorted(own.features.unique()))
        each = [jackknifed(np.log(folds(own[own.features == n])[:, fold - 1])) for n in sizes]
        off = np.log(sizes) - np.log(sizes).mean()
        weights = off / (off @ off)  # of least squares
        parts = np.array([(w * e.error) ** 2 for w, e in zip(weights, each)])
        # Satterthwaite's
        freedom = parts.sum() ** 2 / sum(part**2 / e.freedom for part, e in zip(parts, each))
        value = float(weights @ [e.value for e in each])
        power = Effect(value, float(np.sqrt(parts.sum())), float(freedom), min(e.n for e in each))
        rows.append(
            {
                "kind": KINDS[bool(whitened)],
                "power": power,
                "least": int(sizes[0]),
                "most": int(sizes[-1]),
            }
        )
    return pd.DataFrame(rows, columns=["kind", "power", "least", "most"])


def to_goal(table: pd.DataFrame, goal: float, column: str = "validation") -> pd.DataFrame:
    """Steps to the first check at which an error is at most the goal, a row per setting.

    Columns: those of READOUT, runs, met (how many), steps (geometric mean; NaN unless all met it),
    low, high (90 %, Student's t on logarithms).  Raises ValueError for a goal that is no positive
    number.
    """
    check("goal", goal, POSITIVE)
    rows = []
    for key, own in table.groupby(READOUT, sort=True) if len(table) else ():
        first = own[own[column] <= goal].groupby("replicate").step.min().clip(lower=1)
        runs = own.replicate.nunique()
        ends = (
            scaling.mean_of(np.log(first)).row().values() if len(first) == runs else (np.nan,) * 3
        )
        rows.append((*key, runs, len(first), *ends))
    return pd.DataFrame(rows, columns=[*READOUT, "runs", "met", "steps", "low", "high"])
