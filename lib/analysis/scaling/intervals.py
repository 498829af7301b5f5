"""How far the luck of a search moves a curve."""

from __future__ import annotations

import itertools
import operator
import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis.scaling.fits import hyperbolas
from lib.analysis.scaling.regimes import regime_ends
from lib.analysis.scaling.steps import (
    CELL,
    CURVE,
    SAME,
    WHOLE,
    at_goal,
    best_of_k_pmf,
    grouped,
    half,
    reached,
    slimmed,
    steps_to_result,
)

UNSEEN = 0.24  # what `unseen` finds on digits in searches of 32 trials up to their second hit
LONG = 8  # batch sizes of a curve, for one to be left out and three constants fitted to the rest


def scatter(curves: pd.DataFrame) -> float:
    """Standard deviation of ln K* between searches of one cell, pooled over the cells searched several times.

    curves: of `steps_to_result`.  NaN if no cell was.
    """
    met = curves[curves.steps.notna()]
    cells = np.log(met.steps).groupby([met[c] for c in CELL if c in met and c not in SAME], dropna=False)
    freedom = len(met) - cells.ngroups
    return float(np.sqrt((cells.var(ddof=0) * cells.size()).sum() / freedom)) if freedom else np.nan


def unseen(trials: pd.DataFrame) -> float:
    """The part of `scatter` that redrawing one search does not show: what a single search has to be widened by."""
    _, searches = grouped(reached(slimmed(trials)), [*CURVE, "batch_size", "replicate"], "steps", "last_step")
    logs = [(np.log(steps), chances) for steps, chances in itertools.starmap(best_of, searches)]
    shown = np.mean([p @ (log - p @ log) ** 2 for log, p in logs]) if logs else np.nan
    return float(np.sqrt(max(0, scatter(steps_to_result(trials)) ** 2 - shown)))


def best_of(steps: np.ndarray, last: np.ndarray, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What the best of k of a cell's trials may take, k by default half of them, in steps, and how likely: [n] each.

    steps, last: to the goal, and followed, of every trial.  What the cell has not seen counts as its last step.
    """
    chances = best_of_k_pmf(len(steps), half(len(steps)) if k is None else k)
    return np.sort(np.fmin(steps, last.max())).astype(float), chances / chances.sum()


def resampled(
    trials: pd.DataFrame, goal: float, k: int | None = None, draws: int = 1000, widened: float = UNSEEN
) -> pd.DataFrame:
    """One curve redrawn, [draws, batch sizes]: per batch size one replicate at random and the best of k of its trials.

    k defaults to half of the trials.  A draw beyond the hits that a cell has seen counts as the cell's last step, which
    makes large values too small.  One search does not know how another would have differed: where there is no replicate
    and the search was less than `WHOLE`, a draw is multiplied by a log-normal factor, of whose logarithm `widened` is the
    standard deviation.  The trials themselves are the seed: a curve that several comparisons share is drawn alike in all
    of them, row by row, and other curves independently.
    """
    trials = at_goal(trials, goal)[["batch_size", "replicate", "steps", "last_step"]]
    trials = trials.sort_values(["batch_size", "replicate"], kind="stable")  # in whatever order they come
    random = np.random.default_rng(zlib.crc32(trials[["batch_size", "steps"]].to_numpy(float).tobytes()))
    columns = {}
    first, cells = grouped(trials, ["batch_size", "replicate"], "steps", "last_step")
    for batch_size, own in itertools.groupby(zip(first.batch_size, cells), operator.itemgetter(0)):
        own = [cell for _, cell in own]
        found = [best_of(*cell, k) for cell in own]
        replicates = [random.choice(steps, size=draws, p=chances) for steps, chances in found]
        columns[batch_size] = np.array(replicates)[random.integers(len(replicates), size=draws), np.arange(draws)]
        whole = len(own[-1][0]) >= WHOLE[0] and np.isfinite(own[-1][0]).sum() >= WHOLE[1]
        if len(replicates) == 1 and not whole:
            columns[batch_size] *= np.exp(widened * random.standard_normal(draws))
    return pd.DataFrame(columns)


def regime_intervals(trials: pd.DataFrame, goal: float, draws: int = 1000) -> dict:
    """5 to 95 % ranges of perfect_end and useful_end over `resampled` curves: name -> (low, high)."""
    curves = resampled(trials, goal, draws=draws)
    perfect, useful, _ = regime_ends(curves.columns.to_numpy(float), curves.to_numpy())
    return {"perfect_end": span_of(perfect), "useful_end": span_of(useful)}


def span_of(values: list[float] | np.ndarray | pd.Series) -> tuple[float, float]:
    """The 5 and 95 % quantiles, each one of the values."""
    return tuple(map(float, np.quantile(values, [0.05, 0.95], method="nearest")))


def wilson(met: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share of trials (Wilson's score interval)."""
    from scipy.stats import binomtest  # slow to import, and most chapters count no shares

    return tuple(binomtest(int(met), int(trials)).proportion_ci(method="wilson"))


def ranges(draws: pd.DataFrame, name: str) -> pd.DataFrame:
    """Draws [draws, batch sizes] as rows of a table: batch_size, name_low, name_high (5 and 95 %)."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=0, method="nearest")
    return pd.DataFrame({"batch_size": draws.columns, f"{name}_low": low, f"{name}_high": high})


def ranged(name: str, values: np.ndarray) -> dict[str, float]:
    """Draws as columns of a table: name (the median), name_low, name_high (`span_of`)."""
    return {name: float(np.median(values)), **dict(zip((f"{name}_low", f"{name}_high"), span_of(values)))}


def by_chance(curves: Sequence[pd.DataFrame]) -> float:
    """The factor by which the bends of these `resampled` curves would differ at most, 19 times out of 20, if they were one.

    As where bends are compared, those outside the batch sizes measured do not count; NaN if no draw has any inside.
    """
    bends = (redrawn(drawn).critical.where(lambda c, b=drawn.columns: c.between(b.min(), b.max())) for drawn in curves)
    logs = np.log(np.stack(list(bends)))
    apart = pd.DataFrame(logs - pd.DataFrame(logs).median(axis=1).to_numpy()[:, None])
    return float(np.exp((apart.max() - apart.min()).quantile(0.95, interpolation="nearest")))


REDRAWN = ["perfect_end", "useful_end", "c1", "c2", "critical"]


def redrawn(curves: pd.DataFrame) -> pd.DataFrame:
    """What each `resampled` curve [draws, batch sizes] says, a row each: perfect_end, useful_end, c1, c2, critical.

    critical is inf for a draw without a floor.
    """
    b, k = curves.columns.to_numpy(float), curves.to_numpy()
    perfect, useful, _ = regime_ends(b, k)
    c1, c2 = hyperbolas(b, k)
    with np.errstate(divide="ignore"):
        return pd.DataFrame({"perfect_end": perfect, "useful_end": useful, "c1": c1, "c2": c2, "critical": c1 / c2})


def expected_regimes(summary: pd.DataFrame, drawn: dict, draws: int = 1000) -> pd.DataFrame:
    """How likely `all_three` is for every curve of `summaries`, were it exactly of a form and searches as scattered.

    Columns: trend, for its c1/B + c2 (1 for a curve of LONG sizes that does not bend within them, which ought to); power,
    for the straight line through the logarithms of its draws, which has no floor.  The scatter at a batch size is that of
    the draws, and a point the median of as many searches as the curve has.
    """
    random, rows = np.random.default_rng(0), []
    for r in summary.itertuples():
        own = drawn[tuple(getattr(r, c) for c in CURVE)]
        b, logs = own.columns.to_numpy(float), np.log(own.to_numpy())
        off = np.median(logs.std(0) * random.standard_normal((r.replicates, draws, len(b))), axis=0)
        line = np.polyval(np.polyfit(np.log(b), logs.mean(0), 1), np.log(b))
        trend, power = (regime_ends(b, np.exp(k + off))[2].mean() for k in (np.log(r.c1 / b + r.c2), line))
        rows.append((1.0 if r.sizes >= LONG and not r.identified else trend, power))
    return pd.DataFrame(rows, columns=["trend", "power"], index=summary.index)


def covered(short: pd.DataFrame, full: pd.DataFrame, name: str = "critical") -> pd.Series:
    """Whether the range of a curve in one table of `summaries` holds the value of the same curve in another."""
    both = short.merge(full, on=CURVE, suffixes=("", "_full"))
    return (both[f"{name}_low"] <= both[f"{name}_full"]) & (both[f"{name}_full"] <= both[f"{name}_high"])
