"""How smooth a path is, from the points of `lib.probes.tracks`: means along training, and sparse
over dense.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect
from lib.probes import tracks
from lib.probes.tracks import PATH, steps_around

MEASURES = {"lipschitz": "local Lipschitz constant", "spectral": "largest eigenvalue"}


def followed() -> pd.DataFrame:
    """The points of all paths along which smoothness was measured."""
    return tracks.every().dropna(subset="lipschitz")


def typical(paths: pd.DataFrame) -> pd.DataFrame:
    """One row per path: geometric means of MEASURES over the steps of the run.

    The distance between points grows, and each represents the steps around it: so the means are
    over training steps, like those of authors who measure at fixed intervals.
    """
    ordered = paths.sort_values("step")
    path = [ordered[column] for column in PATH]
    weight = steps_around(ordered)
    share = weight / weight.groupby(path).transform("sum")
    logs = np.log(ordered[[*MEASURES]].clip(lower=1e-12))
    return np.exp(logs.mul(share, axis=0).groupby(path).sum()).reset_index()


def over_dense(sparse: pd.DataFrame, dense: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """`typical` of sparse paths over the median of the dense paths with the same values in columns
    `by`: PATH and MEASURES; sparse paths without a dense one are left out.
    """
    medians = typical(dense[dense.sparsity == 0]).groupby(by)[[*MEASURES]].median()
    pairs = typical(sparse[sparse.sparsity > 0]).merge(medians, on=by, suffixes=("", "_dense"))
    return pairs[PATH].assign(
        **{name: pairs[name] / pairs[f"{name}_dense"] for name in MEASURES}
    )


def lipschitz_ratios(means: pd.DataFrame) -> dict[tuple[str, str], Effect]:
    """ln of the Lipschitz constant at the highest sparsity over the dense network's, by (workload,
    algorithm).

    means: from `typical`.  Each search counts as the geometric mean over its followed paths, which
    are not independent.  Searches at the same batch size and split are compared, and the error
    comes from the scatter of these ratios.  n: number of splits, since searches on one split share
    their examples at all batch sizes.
    """
    search = ["workload", "algorithm", "replicate", "split", "batch_size", "sparsity"]
    logs = means.assign(log=np.log(means.lipschitz)).groupby(search).log.mean()
    effects = {}
    for key, searches in logs.unstack("sparsity").groupby(search[:2]):
        sparsities = searches.dropna(axis=1, how="all").columns
        if 0.0 in sparsities and sparsities.max() > 0:
            ratios = (searches[sparsities.max()] - searches[0.0]).dropna()
            splits = ratios.groupby(["replicate", "split"]).ngroups
            if splits:
                effects[key] = replace(scaling.mean_of(ratios), n=splits)
    return effects
