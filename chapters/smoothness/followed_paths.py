"""How smooth a path is, from the points of `lib.probes.tracks`: means along training, sparse over
dense, at equal rates.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.followed_paths import PATH, steps_around
from lib.analysis.rate_rules import builds_up_in
from lib.analysis.scaling import Effect

# times the steps over which momentum averages, that a trial takes at least for its effective rate
# to mean something
LAG = 10
MEASURES = {
    "lipschitz": "local Lipschitz constant",
    "along": "curvature along the step",
    "spectral": "largest eigenvalue",
    "square": "squared gradient norm",
    "trace": "gradient variance",
    "noise_scale": "simple noise scale",
}
THEORY = {
    "smoothness": "L",
    "noisy": "L M",
    "theory": "Δ L M / ε²",
}


def typical(paths: pd.DataFrame) -> pd.DataFrame:
    """One row per path: geometric means of MEASURES over the steps of the run, and what the theory
    makes of them.

    The distance between points grows, and each stands for the steps around it: the means are over
    training steps, as are the theory's, and those of authors who look at a fixed interval. c1 of K*
    = c1/B + c2 is proportional to Delta L M / eps^2 (the book's chapter on the theory): Delta is
    the fall of the loss from the first to the last point, L and M geometric means of `lipschitz`
    and `trace`, eps the mean of `square`.
    """
    ordered = paths.sort_values("step")
    by = [ordered[c] for c in PATH]
    weight = steps_around(ordered)
    share = weight / weight.groupby(by).transform("sum")
    logs = np.log(ordered[[*MEASURES]].clip(lower=1e-12))
    means = np.exp(logs.mul(share, axis=0).groupby(by).sum())
    loss = ordered.loss.groupby(by)
    square = (ordered.square * share).groupby(by).sum().clip(lower=1e-12)
    noisy = means.lipschitz * means.trace
    theory = (loss.first() - loss.last()) * noisy / square**2
    found = {"smoothness": means.lipschitz, "noisy": noisy, "theory": theory}
    return means.assign(**found).reset_index()


def over_dense(paths: pd.DataFrame) -> pd.DataFrame:
    """`typical` of sparse paths over the median of the dense paths of the same workload, algorithm
    and batch size.
    """
    means = typical(paths)
    by = ["workload", "algorithm", "batch_size"]
    dense = means[means.sparsity == 0].groupby(by)[[*MEASURES, *THEORY]].median()
    return _over(means[means.sparsity > 0], dense)


def over_twin(dense: pd.DataFrame, twins: pd.DataFrame) -> pd.DataFrame:
    """`typical` of paths over that of the dense path with the same trial: same hyperparameters and
    initialisation.
    """
    by = [column for column in PATH if column != "sparsity"]
    base = typical(dense[dense.sparsity == 0]).set_index(by)[[*MEASURES]]
    return _over(typical(twins), base)


def _over(means: pd.DataFrame, base: pd.DataFrame) -> pd.DataFrame:
    """PATH, and every column of base as a quotient, of the paths that base has in its index."""
    there = base.reindex(pd.MultiIndex.from_frame(means[base.index.names])).to_numpy()
    found = means[PATH].join(means[base.columns] / there)
    return found[~np.isnan(there[:, 0])].reset_index(drop=True)


def lipschitz_ratios(means: pd.DataFrame) -> dict[tuple[str, str], Effect]:
    """ln of the Lipschitz constant at the highest sparsity over the dense network's, by (workload,
    algorithm).

    means: of `typical`.  Within a search geometric means over its followed paths are compared, and
    searches of several batch sizes averaged; the standard error is Welch's, with Satterthwaite's
    degrees of freedom.  n: paths of the sparse network.
    """
    logs = np.log(means.lipschitz)
    by = ["workload", "algorithm", "batch_size", "sparsity"]
    found = logs.groupby([means[c] for c in by]).agg(["mean", "var", "size"]).reset_index()
    effects = {}
    for key, own in found.groupby(by[:2]):
        own = own[own.sparsity.isin([0.0, own.sparsity.max()])]
        both = own[own.groupby("batch_size").sparsity.transform("size") == 2]
        if both.empty:
            continue
        sparse = both.sparsity > 0
        sizes = both.batch_size.nunique()
        difference = both["mean"].where(sparse, -both["mean"]).sum() / sizes
        parts = both["var"] / both["size"] / sizes**2
        error = np.sqrt(parts.sum(skipna=False))
        freedom = parts.sum() ** 2 / (parts**2 / (both["size"] - 1)).sum()
        n = int(both["size"][sparse].sum())
        effects[key] = Effect(float(difference), float(error), float(freedom), n)
    return effects


def at_rates(paths: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """`typical` with `rate`, the effective learning rate of the trial, eta / (1 - momentum);
    trials: of `sweeps.results`.

    Trials whose momentum averages over more than a tenth of their steps have no such rate, and are
    left out.
    """
    own = trials.drop_duplicates(PATH)
    lag = builds_up_in(own)
    own = own.assign(rate=own.learning_rate * lag)[(lag == 1) | (lag < own.last_step / LAG)]
    return typical(paths).merge(own[[*PATH, "rate"]], on=PATH)


def rate_law(rows: pd.DataFrame) -> dict[str, Effect]:
    """How the local Lipschitz constant varies with the learning rate, and with sparsity at equal
    rate; rows: of `at_rates`.

    log L = power log(rate) + an offset for every workload and batch size + one for every sparsity,
    by least squares. power; factor: ln of the highest sparsity over the dense network, at equal
    rate and batch size.  n: paths.
    """
    names = rows.workload + rows.batch_size.astype(str)
    places = pd.get_dummies(names, dtype=float)
    levels = pd.get_dummies(rows.sparsity, dtype=float).drop(columns=0.0)
    design = np.column_stack([np.log(rows.rate), levels[sorted(levels)], places])
    logs = np.log(rows.lipschitz.to_numpy())
    fitted, (loss,), rank, _ = np.linalg.lstsq(design, logs)
    freedom = len(rows) - rank
    spread = np.diag(np.linalg.inv(design.T @ design))
    errors = np.sqrt(spread * loss / freedom)
    effects = [
        Effect(value, error, float(freedom), len(rows))
        for value, error in zip(fitted.tolist(), errors.tolist())
    ]
    return {"power": effects[0], "factor": effects[levels.shape[1]]}
