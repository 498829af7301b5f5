"""How smooth a path is, from the points of `lib.probes.tracks`: means along training, and sparse
over dense.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import Effect
from lib.probes import tracks
from lib.probes.tracks import PATH, steps_around

MEASURES = {"lipschitz": "local Lipschitz constant", "spectral": "largest eigenvalue"}


def followed() -> pd.DataFrame:
    """The points of all paths along which smoothness was measured."""
    return tracks.every().dropna(subset="lipschitz")


def typical(paths: pd.DataFrame) -> pd.DataFrame:
    """One row per path: geometric means of MEASURES over the steps of the run.

    The distance between points grows, and each stands for the steps around it: the means are over
    training steps, as are those of authors who look at a fixed interval.
    """
    ordered = paths.sort_values("step")
    by = [ordered[c] for c in PATH]
    weight = steps_around(ordered)
    share = weight / weight.groupby(by).transform("sum")
    logs = np.log(ordered[[*MEASURES]].clip(lower=1e-12))
    return np.exp(logs.mul(share, axis=0).groupby(by).sum()).reset_index()


def over_dense(sparse: pd.DataFrame, dense: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """`typical` of sparse paths over the median of dense paths that have the same values of these
    columns; PATH and MEASURES of those that have a dense one.
    """
    base = typical(dense[dense.sparsity == 0]).groupby(by)[[*MEASURES]].median()
    both = typical(sparse[sparse.sparsity > 0]).merge(base, on=by, suffixes=("", "_dense"))
    over = {name: both[name] / both[f"{name}_dense"] for name in MEASURES}
    return both[PATH].assign(**over)


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
