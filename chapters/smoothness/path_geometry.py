"""Where gradients point along a path, and how steadily, from the points of `experiments`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import mean_of

CURVE = ["workload", "algorithm", "sparsity"]
PATH = [*CURVE, "batch_size", "replicate"]
# Part of a path, by steps; like the percentiles, chosen before looking at any path
MIDDLE = (0.1, 0.9)
PERCENTILES = (0.1, 0.9)
KINDS = {
    "batch_cosine": "batch gradients, own end",
    "random": "random gradients, own end",
    "twin_batch_cosine": "batch gradients, end of another data order",
    "cosine": "full gradients, own end",
    "full_random": "full gradients, part due to chance",
}
QUANTITIES = {"secant": "restricted secant", "bound": "error bound"}


def by_path(points: pd.DataFrame) -> pd.DataFrame:
    """One row per path: over the middle 80 % of its steps, means of KINDS, and NAME_spread, the
    `spread` of the full gradient's QUANTITIES.

    full_random: the cosine expected for the full gradient by chance, `random` times its cosine with
    the batch gradient.
    """
    part = points.step / (points.step + points.left - 1)
    middle = points[(part > MIDDLE[0]) & (part <= MIDDLE[1])]
    paths = middle.assign(full_random=middle.random * middle.between).groupby(PATH)
    spreads = paths[[*QUANTITIES]].agg(spread).add_suffix("_spread")
    return pd.concat([paths[[*KINDS]].mean(), spreads], axis=1).reset_index()


def spread(values: pd.Series) -> float:
    """The 90th percentile over the 10th; infinite if that is not positive."""
    low, high = np.quantile(values, PERCENTILES)
    return float(high / low) if low > 0 else np.inf


def cosines(paths: pd.DataFrame) -> pd.DataFrame:
    """The mean over searches of each of KINDS at every batch size: CURVE, batch_size, kind, cosine,
    low, high (90 %; infinite for one search), searches; paths: from `by_path`.
    """
    keys = [*CURVE, "batch_size", "kind"]
    long = paths.melt(keys[:-1], [*KINDS], "kind", "mean")
    rows = []
    for key, cosines in long.groupby(keys)["mean"]:
        ends = mean_of(cosines).row(log=False).values()
        rows.append((*key, *ends, len(cosines)))
    means = pd.DataFrame(rows, columns=[*keys, "cosine", "low", "high", "searches"])
    return means.assign(kind=means.kind.map(KINDS))


def spreads(paths: pd.DataFrame) -> pd.DataFrame:
    """ln of the full gradient's `spread` by network, method and quantity: the median over a
    search's paths, averaged over searches (effect).
    """
    network = ["workload", "algorithm"]
    search = [*network, "replicate"]
    names = {f"{name}_spread": title for name, title in QUANTITIES.items()}
    logs = paths[search].join(np.log(paths[[*names]]))
    medians = logs.groupby(search, sort=False).median().rename(columns=names)
    rows = [
        (*key, quantity, mean_of(values))
        for key, searches in medians.groupby(level=network, sort=False)
        for quantity, values in searches.items()
    ]
    return pd.DataFrame(rows, columns=[*network, "quantity", "effect"])
