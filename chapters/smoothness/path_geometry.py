"""Where gradients point along a path, and how steadily, from the points of `experiments`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import mean_of

CURVE = ["workload", "algorithm", "sparsity"]
PATH = [*CURVE, "batch_size", "replicate"]
# Of a path, by steps: chosen before any was looked at, as are the percentiles below
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


def middle(points: pd.DataFrame) -> pd.DataFrame:
    """The points of the middle 80 % of each path, by steps."""
    part = points.step / (points.step + points.left - 1)
    return points[(part > MIDDLE[0]) & (part <= MIDDLE[1])]


def by_path(points: pd.DataFrame) -> pd.DataFrame:
    """One row per path: means of KINDS over its middle; NAME_spread of QUANTITIES, `spread` of the
    full gradient's over its middle.

    full_random: the cosine that the full gradient has by chance, `random` times its cosine with the
    batch's.
    """
    full = points.assign(full_random=points.random * points.between)
    by = middle(full).groupby(PATH)
    spreads = by[[*QUANTITIES]].agg(spread).add_suffix("_spread")
    return pd.concat([by[[*KINDS]].mean(), spreads], axis=1).reset_index()


def spread(values: pd.Series) -> float:
    """The 90th percentile over the 10th; infinite if that is not positive."""
    low, high = np.quantile(values, PERCENTILES)
    return float(high / low) if low > 0 else np.inf


def cosines(paths: pd.DataFrame) -> pd.DataFrame:
    """Of `by_path`, the mean over searches of each of KINDS at every batch size: CURVE, batch_size,
    kind, cosine, low, high (90 %; infinite of one), searches."""
    keys = [*CURVE, "batch_size", "kind"]
    groups = paths.melt(keys[:-1], [*KINDS], "kind", "mean").groupby(keys)["mean"]
    rows = [(*key, *mean_of(own).row(log=False).values(), len(own)) for key, own in groups]
    found = pd.DataFrame(rows, columns=[*keys, "cosine", "low", "high", "searches"])
    return found.assign(kind=found.kind.map(KINDS))


def shares_of_chance(paths: pd.DataFrame) -> pd.DataFrame:
    """By batch size, the share of a cosine that chance makes: full gradient, batch's gradient."""
    means = paths.groupby("batch_size")[[*KINDS]].mean()
    return pd.DataFrame(
        {"full": means.full_random / means.cosine, "batch": means.random / means.batch_cosine}
    )


def spreads(paths: pd.DataFrame) -> pd.DataFrame:
    """By network, method and quantity, ln of the full gradient's `spread`: the median over a
    search's paths, the mean over searches (effect)."""
    network = ["workload", "algorithm"]
    wanted = [f"{name}_spread" for name in QUANTITIES]
    logs = np.log(paths[wanted])
    by = [paths[column] for column in (*network, "replicate")]
    searches = logs.groupby(by, sort=False).median()
    searches.columns = list(QUANTITIES.values())
    rows = [
        (*key, title, mean_of(values))
        for key, own in searches.groupby(level=network, sort=False)
        for title, values in own.items()
    ]
    return pd.DataFrame(rows, columns=[*network, "quantity", "effect"])
