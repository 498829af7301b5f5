"""Training without backpropagation: searches beside backpropagation's, and how fast flips bring a
readout's error down.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect

BASE = "sgd"  # with backpropagation
ARMS = {"lra": "β = 0.1", "lra-1": "β = 1"}  # of the claims, the authors' own first
FOLDS = 3  # e-folds after which a run has converged: 95 % of the way to its floor
KINDS = {False: "features as they are", True: "uncorrelated features"}


def lost(trials: pd.DataFrame) -> dict[str, Effect]:
    """By arm, points of test error beyond backpropagation's on the same split, the mean over
    searches: of the trial whose validation error is lowest, and of equal ones the mean.
    """
    last = f"test@{trials.max_steps.max()}"
    least = trials.groupby(["algorithm", "replicate"]).best_error.transform("min")
    best = trials[trials.best_error == least]
    errors = best.groupby(["replicate", "algorithm"])[last].mean().unstack()
    beyond = errors[[*ARMS]].sub(errors[BASE], axis=0) * 100
    return {arm: scaling.mean_of(points.dropna()) for arm, points in beyond.items()}


def excess(runs: pd.DataFrame) -> pd.DataFrame:
    """The training error's excess over where a run ends, over that at its start: [steps,
    replicates], of one setting.
    """
    errors = runs.pivot(index="step", columns="replicate", values="training")
    return (errors - errors.iloc[-1]) / (errors.iloc[0] - errors.iloc[-1])


def folds(own: pd.DataFrame) -> np.ndarray:
    """Steps at which the mean of an `excess` has fallen by 1 ... FOLDS e-folds, [1 + runs, FOLDS]:
    of all runs, then without each in turn; on lines between logarithms of the excess.
    """
    others = own.rsub(own.sum(axis=1), axis=0) / (own.shape[1] - 1)
    means = np.column_stack([own.mean(axis=1), others])
    fallen = -np.log(np.maximum(means, 1e-12))
    levels = np.arange(1, FOLDS + 1)
    return np.array([np.interp(levels, one, own.index) for one in fallen.T])


def convergence(table: pd.DataFrame) -> pd.DataFrame:
    """Of runs of one flip a step on all examples: features, kind, and slower: ln of the last of
    FOLDS e-folds' steps over the first's, 0 for an exponential, with the jackknife's error.
    """
    rows = []
    singly = table[(table.flips == 1) & (table.batch_size == table.batch_size.max())]
    for (features, whitened), own in singly.groupby(["features", "whitened"]):
        found = folds(excess(own))
        last = found[:, -1] - found[:, -2]
        every, *others = np.log(last / found[:, 0])
        runs = len(others)
        square = (runs - 1) * np.var(others)
        slower = Effect(float(every), float(np.sqrt(square)), runs - 1.0, runs)
        rows.append((features, KINDS[whitened], slower))
    columns = ["features", "kind", "slower"]
    return pd.DataFrame(rows, columns=columns)
