"""One curve over another: sparse over dense, method over method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lib.analysis.scaling.intervals import ranged, ranges, redrawn
from lib.analysis.scaling.steps import CURVE, grouped, half
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


def at_equal_steps(trials: pd.DataFrame, draws: int = 200) -> pd.DataFrame:
    """Which goal a pruned network's search has met by the step at which the dense network's meets the hardest one.

    A row per pruned curve and batch size that the dense network has, too: CURVE, batch_size and rungs [draws], places on the
    workload's ladder of goals (0 for the hardest; inf if none is met).  A draw is a random half of the trials of one
    replicate, chosen at random, of either network; what a search has not seen counts as its last step, as in `resampled`.
    """
    random, rows = np.random.default_rng(0), []
    for key, cells in trials.groupby([*CURVE[:3], "batch_size"]):
        columns = [f"steps@{goal:g}" for goal in workload(key[0]).goals]
        found = {s: _halves(own, columns, draws, random) for s, own in cells.groupby("sparsity")}
        if 0.0 not in found:
            continue
        for sparsity in sorted(found.keys() - {0.0}):
            met = found[sparsity] <= found[0.0][:, :1]  # [draws, goals]
            rungs = np.where(met.any(1), met.argmax(1), np.inf)
            rows.append({**dict(zip(CURVE, (*key[:3], sparsity))), "batch_size": key[3], "rungs": rungs})
    return pd.DataFrame(rows, columns=[*CURVE, "batch_size", "rungs"])


def _halves(cells: pd.DataFrame, columns: list[str], draws: int, random: np.random.Generator) -> np.ndarray:
    """Fewest steps [draws, columns] among a random half of the trials of a replicate chosen at random; at most its last step."""
    _, searches = grouped(cells, ["replicate"], *columns, "last_step")
    found = []
    for *search, last in searches:
        steps = np.fmin(np.stack(search, 1), last.max())  # [trials, columns]
        ranks = random.random((draws, len(steps))).argsort(1)
        found.append(steps[ranks[:, : half(len(steps))]].min(1))
    return np.array(found)[random.integers(len(found), size=draws), np.arange(draws)]


def ratios(above: pd.DataFrame, below: pd.DataFrame, name: str) -> np.ndarray:
    """A quantity of `redrawn` of one `resampled` curve over that of another, [draws].

    Both are read at the batch sizes that both have: a longer curve bends elsewhere if the fit is not the truth.  Empty
    if these are fewer than three.  0 or inf where one of the two is not bounded, and in turn where neither is.
    """
    shared = above.columns.intersection(below.columns)
    if len(shared) < 3:
        return np.empty(0)
    top, bottom = (redrawn(curves[shared])[name] for curves in (above, below))
    with np.errstate(divide="ignore", invalid="ignore"):
        return either_way(top.to_numpy() / bottom.to_numpy())


def either_way(values: np.ndarray) -> np.ndarray:
    """Values of which the unknown ones (NaN) count as 0 and as inf in turn, so that they widen a range at both ends."""
    unknown = np.isnan(values)
    values[unknown] = np.resize([0, np.inf], unknown.sum())
    return values


def beside(drawn: dict, partner: Callable[[tuple], tuple], name: str) -> pd.DataFrame:
    """A quantity of `redrawn` for every curve over that of its partner (`ratios`), where they share three batch sizes.

    drawn: as `summaries` returns it.  partner: of a key of it, another, or the same for a curve that has none.  Columns:
    those of CURVE, sizes (shared), ratio (median), ratio_low, ratio_high (5 and 95 %).
    """
    rows = []
    for key, curves in drawn.items():
        other = partner(key)
        if other == key or other not in drawn or not len(values := ratios(curves, drawn[other], name)):
            continue
        sizes = len(curves.columns.intersection(drawn[other].columns))
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
    for key, curves in drawn.items():
        dense = drawn.get(dense_key(key), pd.DataFrame())
        for b in curves.columns.intersection(dense.columns) if key[3] > 0 else ():
            ratio = (curves[b] / dense[b]).to_numpy()
            rows.append({**dict(zip(CURVE, key)), "batch_size": b, **ranged("ratio", ratio), "draws": ratio})
    return pd.DataFrame(rows, columns=[*CURVE, "batch_size", "ratio", "ratio_low", "ratio_high", "draws"])


def relative(curves: pd.DataFrame, drawn: dict) -> pd.DataFrame:
    """Steps over those of the curve's smallest batch, and over the densest network's at the same batch size.

    curves: of `across_replicates`.  drawn: of `summaries`.  The rows of curves, twice: `over` says by what they are
    divided, relative, relative_low and relative_high (5 and 95 % of the draws; NaN where there are none) with what result.
    """
    network = CURVE[:3]
    first = curves.sort_values("batch_size").groupby(CURVE).steps.transform("first").reindex(curves.index)
    least = curves.groupby(network).sparsity.min()
    densest = curves[curves.sparsity == least.loc[pd.MultiIndex.from_frame(curves[network])].to_numpy()]
    dense = curves.merge(densest[[*network, "batch_size", "steps"]], "left", [*network, "batch_size"], suffixes=("", "_dense"))
    both = {SMALLEST: curves.steps / first, DENSEST: curves.steps / dense.steps_dense.to_numpy()}
    twice = pd.concat([curves.assign(over=over, relative=ratio) for over, ratio in both.items()])
    parts = []
    for key, draws in drawn.items():
        own = {SMALLEST: draws.div(draws.iloc[:, 0], axis=0)}
        if (below := drawn.get((*key[:3], least.get(key[:3])))) is not None:
            own[DENSEST] = draws / below[draws.columns.intersection(below.columns)]
        parts += [ranges(d.dropna(axis=1), "relative").assign(over=o, **dict(zip(CURVE, key))) for o, d in own.items()]
    ends = pd.concat(parts) if parts else pd.DataFrame(columns=[*CURVE, "batch_size", "over", "relative_low", "relative_high"])
    return twice.merge(ends.astype({"batch_size": curves.batch_size.dtype}), "left", [*CURVE, "batch_size", "over"])


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
