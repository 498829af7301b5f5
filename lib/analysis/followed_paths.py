"""From the points of `lib.probes.tracks` to what a path says: means along training, sparse over
dense, predicted bends.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import Effect

# times the steps over which momentum averages, that a trial takes at least for its effective rate
# to mean something
LAG = 10
PATH = ["workload", "algorithm", "batch_size", "sparsity", "trial"]
MEASURES = {
    "lipschitz": "local Lipschitz constant",
    "along": "curvature along the step",
    "spectral": "largest eigenvalue",
    "square": "squared gradient norm",
    "trace": "gradient variance",
    "noise_scale": "simple noise scale",
}
THEORY = {
    "smoothness": "smoothness, L",
    "noisy": "with noise, L M",
    "theory": "the theory, Δ L M / ε²",
}


def _stands_for(ordered: pd.DataFrame) -> pd.Series:
    """Half the steps to the neighbouring points on the same path, for points in the order of steps:
    the trapezoidal rule.

    A path of one point stands for its step.
    """
    apart = ordered.groupby(PATH).step.diff()
    after = apart.groupby([ordered[c] for c in PATH]).shift(-1)
    return (apart.fillna(0) + after.fillna(0)).where(
        apart.notna() | after.notna(), 2 * ordered.step
    ) / 2


def typical(paths: pd.DataFrame) -> pd.DataFrame:
    """One row per path: geometric means of MEASURES over the steps of the run, and what the theory
    makes of them.

    Points lie ever farther apart, and each counts for the steps around it: the means are over
    training steps, as are the theory's, and those of authors who look at a fixed interval. c1 of K*
    = c1/B + c2 is proportional to Delta L M / eps^2 (the book's chapter on the theory): Delta is
    the fall of the loss from the first to the last point, L and M geometric means of `lipschitz`
    and `trace`, eps (epsilon) the mean of `square`.
    """
    ordered = paths.sort_values("step")
    by = [ordered[c] for c in PATH]
    weight = _stands_for(ordered)
    share = weight / weight.groupby(by).transform("sum")
    means = np.exp(
        np.log(ordered[[*MEASURES]].clip(lower=1e-12)).mul(share, axis=0).groupby(by).sum()
    )
    loss = ordered.loss.groupby(by)
    square = (ordered.square * share).groupby(by).sum().clip(lower=1e-12)
    noisy = means.lipschitz * means.trace
    fall = loss.first() - loss.last()
    return means.assign(
        smoothness=means.lipschitz, noisy=noisy, theory=fall * noisy / square**2, epsilon=square
    ).reset_index()


def over_dense(paths: pd.DataFrame) -> pd.DataFrame:
    """`typical` of sparse paths over the median of the dense paths of the same workload, algorithm
    and batch size.
    """
    means, by = typical(paths), ["workload", "algorithm", "batch_size"]
    columns = [*MEASURES, *THEORY, "epsilon"]
    dense = means[means.sparsity == 0].groupby(by)[columns].median().add_suffix("_dense")
    sparse = means[means.sparsity > 0].set_index(PATH)
    joined = sparse[columns].reset_index().join(dense, on=by).dropna(subset=["lipschitz_dense"])
    return joined[PATH].join(pd.DataFrame({c: joined[c] / joined[f"{c}_dense"] for c in columns}))


def over_twin(dense: pd.DataFrame, twins: pd.DataFrame) -> pd.DataFrame:
    """`typical` of paths over that of the dense path with the same trial: same hyperparameters and
    initialisation.
    """
    by, columns = ["workload", "algorithm", "batch_size", "trial"], list(MEASURES)
    base = typical(dense[dense.sparsity == 0]).set_index(by)[columns].add_suffix("_dense")
    joined = typical(twins).join(base, on=by).dropna(subset=["lipschitz_dense"])
    return joined[PATH].join(pd.DataFrame({c: joined[c] / joined[f"{c}_dense"] for c in columns}))


def lipschitz_ratios(means: pd.DataFrame) -> dict[tuple[str, str], Effect]:
    """ln of the Lipschitz constant at the highest sparsity over the dense network's, by (workload,
    algorithm).

    means: of `typical`.  Within a search geometric means over its followed paths are compared, and
    searches of several batch sizes averaged; the standard error is Welch's, with Satterthwaite's
    degrees of freedom.  n: paths of the sparse network.
    """
    logs = (
        means.assign(log=np.log(means.lipschitz))
        .groupby(["workload", "algorithm", "batch_size", "sparsity"])
        .log
    )
    found = logs.agg(["mean", "var", "size"]).reset_index()
    effects = {}
    for key, own in found.groupby(["workload", "algorithm"]):
        top = own.sparsity.max()
        both = [own[own.sparsity == level].set_index("batch_size") for level in (0.0, top)]
        both = [table.loc[both[0].index.intersection(both[1].index)] for table in both]
        if top and len(both[0]):
            dense, sparse = both
            parts = pd.concat([table["var"] / table["size"] for table in both]) / len(dense) ** 2
            freedom = parts.sum() ** 2 / (parts**2 / (pd.concat(both)["size"] - 1)).sum()
            difference = float((sparse["mean"] - dense["mean"]).mean())
            effects[key] = Effect(
                difference,
                float(np.sqrt(parts.sum(skipna=False))),
                float(freedom),
                int(sparse["size"].sum()),
            )
    return effects


def at_rates(paths: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """`typical` with `rate`, the effective learning rate of the trial, eta / (1 - momentum);
    trials: of `sweeps.results`.

    Trials whose momentum averages over more than a tenth of their steps have no such rate, and are
    left out.
    """
    own = trials[trials.replicate == 0].drop_duplicates(PATH)
    lag = 1 / (1 - own.momentum.fillna(0))
    own = own.assign(rate=own.learning_rate * lag)[(lag == 1) | (lag < own.last_step / LAG)]
    return typical(paths).merge(own[[*PATH, "rate"]], on=PATH)


def rate_law(rows: pd.DataFrame) -> dict[str, Effect]:
    """How the local Lipschitz constant goes with the learning rate, and with sparsity at equal
    rate; rows: of `at_rates`.

    log L = power log(rate) + an offset for every workload and batch size + one for every sparsity,
    by least squares. power; factor: ln of the highest sparsity over the dense network, at equal
    rate and batch size.  n: paths.
    """
    places = pd.get_dummies(rows.workload + rows.batch_size.astype(str), dtype=float)
    levels = pd.get_dummies(rows.sparsity, dtype=float).drop(columns=0.0)
    design = np.column_stack([np.log(rows.rate), levels[sorted(levels)], places])
    logs = np.log(rows.lipschitz.to_numpy())
    fitted, (loss,), rank, _ = np.linalg.lstsq(design, logs)
    freedom = len(rows) - rank
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * loss / freedom)
    places = {"power": 0, "factor": levels.shape[1]}
    return {
        name: Effect(float(fitted[i]), float(errors[i]), float(freedom), len(rows))
        for name, i in places.items()
    }


def noise_scales(paths: pd.DataFrame) -> pd.DataFrame:
    """One row per path: noise_scale, tr(Sigma) over |G|^2 averaged over its progress; apart, each
    averaged over its steps.

    A step at batch size B is worth 1 / (1 + noise scale / B) of one at an unlimited batch
    (McCandlish et al. 2018, equation
    2.7), and the bend is the mean over such steps.
    """
    own = paths.sort_values("step").copy(deep=False)
    square, weight = own.square.clip(lower=0), _stands_for(own)
    progress = weight / (square + own.trace / own.batch_size)
    parts = {
        "up": own.trace * progress,
        "down": square * progress,
        "trace": own.trace * weight,
        "square": square * weight,
    }
    total = own[PATH].assign(**parts).groupby(PATH)[[*parts]].sum()
    found = {"noise_scale": total.up / total.down, "apart": total.trace / total.square}
    return pd.DataFrame(found).reset_index()


def predicted_bends(paths: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Curves of `scaling.summaries` beside the noise scale of their followed trials: predicted
    (median), least, most, apart (median), followed (count)."""
    by = ["workload", "algorithm", "sparsity"]
    own = noise_scales(paths).groupby(by)
    found = (
        own.noise_scale.agg(["median", "min", "max", "count"])
        .assign(apart=own.apart.median())
        .reset_index()
    )
    found = found.rename(
        columns={"median": "predicted", "min": "least", "max": "most", "count": "followed"}
    )
    return found.merge(summary, on=by)
