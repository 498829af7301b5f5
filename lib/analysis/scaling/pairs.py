"""One curve over another: sparse over dense, method over method."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lib.analysis.scaling.draws import Curve, pair, paired, ranged, ranges, redrawn
from lib.analysis.scaling.steps import CURVE, SEARCH
from lib.workloads.catalogue import workload

SMALLEST, DENSEST = "its smallest batch", "the dense network"  # by what `relative` divides


def cost_of_sparsity(curve: pd.DataFrame) -> pd.Series:
    """Steps to result of the sparsest network over those of the densest, by batch size, where both are measured."""
    wide = curve.pivot(index="batch_size", columns="sparsity", values="steps")
    return (
        (wide[wide.columns.max()] / wide[wide.columns.min()]).dropna()
        if len(wide.columns) > 1
        else pd.Series(dtype=float)
    )


def at_equal_steps(trials: pd.DataFrame) -> pd.DataFrame:
    """Which goal a pruned network's search has met by the step at which the dense network's meets the hardest one.

    A row per pruned curve, batch size and search (`SEARCH`) that the dense network has, too, and in which it met that goal:
    CURVE, batch_size, replicate, split and rung, its place on the workload's ladder of goals (0 for the hardest; inf if none).
    """
    parts = []
    for name, own in trials.groupby("workload") if len(trials) else ():
        ladder = [f"steps@{goal:g}" for goal in workload(name).goals]
        found = own.groupby([*CURVE, "batch_size", *SEARCH])[ladder].min().reset_index()
        dense = found[found.sparsity == 0].drop(columns="sparsity").rename(columns={ladder[0]: "end"})
        where = [c for c in (*CURVE, "batch_size", *SEARCH) if c != "sparsity"]
        both = found[found.sparsity > 0].merge(dense[[*where, "end"]].dropna(), on=where)
        met = both[ladder].le(both.end, axis=0).to_numpy()
        parts.append(both.assign(rung=np.where(met.any(1), met.argmax(1), np.inf)))
    columns = [*CURVE, "batch_size", *SEARCH, "rung"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def ratios(above: Curve, below: Curve, name: str) -> np.ndarray:
    """A quantity of `redrawn` of one curve over that of another, [draws], on the searches and batch sizes both have (`pair`).

    A longer curve bends elsewhere if the fit is not the truth.  Empty if both have fewer than three batch sizes.  0 or inf
    where one of the two is not bounded, and in turn where neither is.
    """
    drawn = _both_redrawn(above, below)
    if drawn is None:
        return np.empty(0)
    top, bottom = (each[name].to_numpy() for each in drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        return either_way(top / bottom)


@functools.lru_cache(maxsize=128)
def _both_redrawn(above: Curve, below: Curve) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """`redrawn` of the draws of a `pair`; None if the two share fewer than three batch sizes."""
    tops, bottoms = pair(above, below)
    return (redrawn(tops), redrawn(bottoms)) if len(tops.columns) >= 3 else None


def steps_ratio(above: Curve, below: Curve) -> pd.DataFrame:
    """Steps of one curve over those of another, [draws, batch sizes], on the searches and batch sizes both have (`pair`)."""
    top, bottom = pair(above, below)
    return top / bottom


def either_way(values: np.ndarray) -> np.ndarray:
    """Values of which the unknown ones (NaN) count as 0 and as inf in turn, so that they widen a range at both ends."""
    unknown = np.isnan(values)
    values[unknown] = np.resize([0, np.inf], unknown.sum())
    return values


def beside(drawn: dict, partner: Callable[[tuple], tuple], name: str) -> pd.DataFrame:
    """A quantity of `redrawn` for every curve over that of its partner (`ratios`), where they share three batch sizes.

    drawn: as `summaries` returns it.  partner: of a key of it, another, or the same for a curve that has none.  Columns:
    those of CURVE, sizes (that are compared), ratio (median), ratio_low, ratio_high (5 and 95 %).
    """
    rows = []
    for key, curve in drawn.items():
        other = partner(key)
        if other == key or other not in drawn or not len(values := ratios(curve, drawn[other], name)):
            continue
        both = paired(curve, drawn[other])
        sizes = both.shape[1] or len(curve.logs.columns.intersection(drawn[other].logs.columns))
        rows.append({**dict(zip(CURVE, key)), "sizes": sizes, **ranged("ratio", values)})
    return pd.DataFrame(rows, columns=[*CURVE, "sizes", "ratio", "ratio_low", "ratio_high"])


def against_dense(drawn: dict, name: str) -> pd.DataFrame:
    """Every sparse curve `beside` its dense one."""
    return beside(drawn, dense_key, name)


def steps_over_dense(drawn: dict) -> pd.DataFrame:
    """Steps of every sparse curve of `summaries` over the dense network's, a row per batch size that both have.

    Columns: those of CURVE, batch_size, ratio (median), ratio_low, ratio_high (5 and 95 %) and draws (of it).
    """
    rows = []
    for key, curve in drawn.items():
        if key[3] == 0 or dense_key(key) not in drawn:
            continue
        for b, ratio in steps_ratio(curve, drawn[dense_key(key)]).items():
            rows.append({**dict(zip(CURVE, key)), "batch_size": b, **ranged("ratio", ratio), "draws": ratio.to_numpy()})
    return pd.DataFrame(rows, columns=[*CURVE, "batch_size", "ratio", "ratio_low", "ratio_high", "draws"])


def relative(curves: pd.DataFrame, drawn: dict) -> pd.DataFrame:
    """Steps over those of the curve's smallest batch, and over the densest network's at the same batch size.

    curves: of `across_replicates`.  drawn: of `summaries`.  The rows of curves, twice: `over` says by what they are
    divided, relative, relative_low and relative_high with what result: the median and the 5 and 95 % of the draws on shared
    searches; without draws, the quotient of the points, and no range.
    """
    network = CURVE[:3]
    first = curves.sort_values("batch_size").groupby(CURVE).steps.transform("first").reindex(curves.index)
    least = curves.groupby(network).sparsity.min()
    densest = curves[curves.sparsity == least.loc[pd.MultiIndex.from_frame(curves[network])].to_numpy()]
    dense = curves.merge(densest[[*network, "batch_size", "steps"]], "left", [*network, "batch_size"], suffixes=("", "_dense"))
    both = {SMALLEST: curves.steps / first, DENSEST: curves.steps / dense.steps_dense.to_numpy()}
    twice = pd.concat([curves.assign(over=over, plain=ratio) for over, ratio in both.items()])
    parts = []
    for key, curve in drawn.items():
        own = {SMALLEST: curve.draws.div(curve.draws.iloc[:, 0], axis=0)}
        if (below := drawn.get((*key[:3], least.get(key[:3])))) is not None:
            own[DENSEST] = steps_ratio(curve, below)
        parts += [ranges(d, "relative").assign(relative=d.median().to_numpy(), over=over, **dict(zip(CURVE, key)))
                  for over, d in own.items()]  # fmt: skip
    columns = [*CURVE, "batch_size", "over", "relative", "relative_low", "relative_high"]
    ends = pd.concat(parts) if parts else pd.DataFrame(columns=columns)
    found = twice.merge(ends.astype({"batch_size": curves.batch_size.dtype}), "left", [*CURVE, "batch_size", "over"])
    return found.assign(relative=found.relative.astype(float).fillna(found.plain)).drop(columns="plain")


def against_sensitivity(drawn: dict, name: str) -> pd.DataFrame:
    """Every curve pruned in another way `beside` that pruned by connection sensitivity."""
    return beside(drawn, lambda key: (*key[:2], "connection-sensitivity", key[3]), name)


def pooled(drawn: dict, name: str, pairs: pd.DataFrame) -> tuple[float, float, float]:
    """`middle` of the ratios of pairs (rows of `against_dense`): its 5 % quantile, median, 95 % quantile."""
    keys = pairs[CURVE].itertuples(index=False, name=None)
    return middle([ratios(drawn[key], drawn[dense_key(key)], name) for key in keys])


def middle(draws: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """The median of several ratios, each given by as many draws, row by row: its 5, 50, 95 % quantiles.

    A median, since a ratio that a curve does not bound would rule a mean; between two middle ones, their geometric mean.
    NaN if there is no ratio.
    """
    if not len(draws):
        return (np.nan,) * 3
    ordered, n = np.sort(np.stack(list(draws)), axis=0), len(draws)
    with np.errstate(invalid="ignore"):
        between = either_way(np.sqrt(ordered[(n - 1) // 2] * ordered[n // 2]))
    return tuple(map(float, np.quantile(between, [0.05, 0.5, 0.95], method="nearest")))


def dense_key(key: tuple) -> tuple:
    return (*key[:3], 0.0)
