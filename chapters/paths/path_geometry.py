"""Where gradients point along a path, how steadily, and how batch sizes change this, from the
points of `experiments`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect, mean_of
from lib.workloads.catalogue import workload

CURVE = ["workload", "algorithm", "sparsity"]
PATH = [*CURVE, "batch_size", "replicate"]
# Of a path, by steps: chosen before any was looked at, as are the percentiles below
MIDDLE = (
    0.1,
    0.9,
)
PERCENTILES = (0.1, 0.9)
LEAST = 3  # searches, and batch sizes, of a fit with an interval
KINDS = {
    "batch_cosine": "real gradients, own end",
    "random": "random gradients, own end",
    "twin_batch_cosine": "real gradients, end of another data order",
}
QUANTITIES = {"secant": "restricted secant", "bound": "error bound"}


def middle(points: pd.DataFrame) -> pd.DataFrame:
    """The points of the middle 80 % of each path, by steps."""
    part = points.step / (points.step + points.left - 1)
    return points[(part > MIDDLE[0]) & (part <= MIDDLE[1])]


def with_controls(points: pd.DataFrame) -> pd.DataFrame:
    """The table with three columns more.

    full_random: the cosine that the full gradient has by chance, `random` times its cosine with the
    batch's. expected, twin_expected: the batch's cosine with either end, from the full gradient's
    and the noise of B examples that are drawn without replacement: cosine / sqrt(1 + (1/B - 1/N)
    tr(Sigma) / |G|^2).
    """
    totals = {name: workload(name).train_size for name in points.workload.unique()}
    drawn = 1 / points.batch_size - 1 / points.workload.map(totals)
    noise = points.trace / points.square.where(points.square > 0) * drawn
    shrunk = 1 / np.sqrt(1 + noise)
    return points.assign(
        full_random=points.random * points.between,
        expected=points.cosine * shrunk,
        twin_expected=points.twin_cosine * shrunk,
    )


def by_path(points: pd.DataFrame) -> pd.DataFrame:
    """One row per path: steps; means over its middle of every cosine of `with_controls`;
    noise_scale, tr(Sigma) over |G|^2 averaged over its progress (as `followed_paths.noise_scales`);
    NAME_positive, the share of all its points where the cosine NAME is above zero; NAME_spread of
    QUANTITIES, `spread` of the full gradient's over its middle.
    """
    full = with_controls(points)
    cosines = list(full.filter(regex="cosine|random|expected"))
    inner = middle(full)
    square = inner.square.clip(lower=0)
    progress = 1 / (square + inner.trace / inner.batch_size)
    by = inner.assign(up=inner.trace * progress, down=square * progress).groupby(PATH)
    signs = full[cosines].gt(0).groupby([full[c] for c in PATH]).mean().add_suffix("_positive")
    spreads = by[[*QUANTITIES]].agg(spread).add_suffix("_spread")
    sums = by[["up", "down"]].sum()
    steps = full.groupby(PATH).left.max().rename("steps")
    noise = (sums.up / sums.down).rename("noise_scale")
    return pd.concat([steps, by[cosines].mean(), noise, signs, spreads], axis=1).reset_index()


def spread(values: pd.Series) -> float:
    """The 90th percentile over the 10th; infinite if that is not positive."""
    low, high = np.quantile(values, PERCENTILES)
    return float(high / low) if low > 0 else np.inf


def spread_of_walk(power: float, points: int = 1000) -> float:
    """`spread` over the middle of a path, with equal steps, of a power of the steps left.

    On a random walk the power is -1 for the restricted secant and -1/2 for the error bound; on a
    straight line both are -1.
    """
    left = 1 - np.linspace(*MIDDLE, points)
    return spread(left**power)


def cosines(paths: pd.DataFrame) -> pd.DataFrame:
    """Of `by_path`, the mean over searches of each of KINDS at every batch size: CURVE, batch_size,
    kind, cosine, low, high (90 %; infinite of one), searches."""
    keys = [*CURVE, "batch_size", "kind"]
    groups = paths.melt(keys[:-1], [*KINDS], "kind", "mean").groupby(keys)["mean"]
    rows = [(*key, *mean_of(own).row(log=False).values(), len(own)) for key, own in groups]
    return pd.DataFrame(rows, columns=[*keys, "cosine", "low", "high", "searches"])


def scale_of_cosines(paths: pd.DataFrame, kind: str) -> pd.DataFrame:
    """By curve, the scale B_s of cos^2 = cos_inf^2 / (1 + B_s / B), from mean cosines of a column
    of `by_path`.

    CURVE, scale with low and high (90 %, by the jackknife over searches), product: the most over
    the least of K cos^2 over batch sizes, one if K is proportional to 1 / cos^2.  Only curves of
    three batch sizes and searches or more; a batch size whose mean is not positive has no place in a fit, and
    such a curve has none.
    """
    rows = []
    for key, own in paths.groupby(CURVE):
        table = own.pivot(index="replicate", columns="batch_size", values=[kind, "steps"])
        wide = table[kind].dropna()
        steps = np.exp(np.log(table["steps"]).mean())
        n = len(wide)
        means = wide.mean()
        moved = np.vstack([means, (n * means - wide) / max(n - 1, 1)])
        if min(n, len(means)) < LEAST or not (moved > 0).all():
            continue
        whole, *without = scaling.log_critical(means.index.to_numpy(float), -2 * np.log(moved))
        scale = Effect(whole, float(np.std(without) * np.sqrt(n - 1)), n - 1, n)
        product = steps * means**2
        spread = product.max() / product.min()
        rows.append((*key, *scale.row().values(), spread))
    return pd.DataFrame(rows, columns=[*CURVE, "scale", "low", "high", "product"])


def scales(paths: pd.DataFrame) -> pd.DataFrame:
    """`scale_of_cosines` of each of KINDS one below the other, with kind; and the noise scale,
    geometric mean over paths.
    """
    found = [scale_of_cosines(paths, kind).assign(kind=kind) for kind in KINDS]
    logs = np.log(paths.noise_scale).groupby([paths[c] for c in CURVE])
    rows = [(*key, *mean_of(own).row().values()) for key, own in logs]
    noise = pd.DataFrame(rows, columns=[*CURVE, "scale", "low", "high"])
    return pd.concat([*found, noise.assign(kind="noise_scale")], ignore_index=True)


def beside_steps(told: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """`scales` with the critical batch sizes of the same curves below them, kind "critical"; off:
    the factor to these, either way.

    curves: of `front.critical`, one for each of CURVE at most.  Of a curve without a critical batch
    size nothing is off.
    """
    columns = {"critical": "scale", "critical_low": "low", "critical_high": "high"}
    steps = curves[[*CURVE, *columns]].rename(columns=columns).merge(told[CURVE].drop_duplicates())
    every = pd.concat([told, steps.assign(kind="critical")], ignore_index=True)
    known = every[CURVE].merge(steps[[*CURVE, "scale"]], on=CURVE, how="left").scale
    return every.assign(off=np.exp(np.log(every.scale / known).abs()))


def along(points: pd.DataFrame, parts: int = 10) -> pd.DataFrame:
    """QUANTITIES of the full gradient over their medians along the path, by the share of it
    completed, in `parts` equal parts.

    CURVE, batch_size, part (its middle, 0 to 1), quantity, value (median over searches), low, high
    (10 and 90 %).  Points where a quantity is not positive are left out.
    """
    before = points.step - 1
    done = before / (before + points.left)
    own = points.assign(part=(np.floor(done * parts) + 0.5) / parts)
    long = own.melt([*PATH, "part"], [*QUANTITIES], "quantity", "value")
    long = long[long.value > 0]
    long["value"] /= long.groupby([*PATH, "quantity"]).value.transform("median")
    each = long.groupby([*PATH, "part", "quantity"]).value.median()
    groups = each.groupby([*CURVE, "batch_size", "part", "quantity"])
    low = groups.quantile(0.1)
    high = groups.quantile(0.9)
    found = {"value": groups.median(), "low": low, "high": high}
    return pd.DataFrame(found).reset_index()


def spreads(paths: pd.DataFrame) -> pd.DataFrame:
    """By network, method and quantity, ln of the full gradient's `spread`: the median over a
    search's paths, the mean over searches (effect)."""
    network = ["workload", "algorithm"]
    logs = np.log(paths[[f"{name}_spread" for name in QUANTITIES]])
    searches = logs.groupby([paths[c] for c in (*network, "replicate")], sort=False).median()
    searches.columns = list(QUANTITIES.values())
    rows = [
        (*key, title, mean_of(values))
        for key, own in searches.groupby(level=network, sort=False)
        for title, values in own.items()
    ]
    return pd.DataFrame(rows, columns=[*network, "quantity", "effect"])
