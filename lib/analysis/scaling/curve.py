"""One curve, search by search, and what it says with an interval: the jackknife over searches,
missed goals as bounds.

The unit is the search.  An estimate is computed from all searches and again without each of them;
their spread gives its standard error, and Student's t its interval.  Curves that share searches
lose the same one, so that ratios are paired.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, stdtr, stdtrit

from lib.analysis.scaling import forms
from lib.analysis.scaling.steps import CURVE, SEARCH, apart, scatter_of, steps_to_result

LEVEL = 0.9  # of every interval in the book
ENOUGH = 3  # searches that tell their own scatter
# Of expectation and maximisation where goals were missed, or until means move less than this
ROUNDS, SETTLED = (
    60,
    1e-4,
)
LOG_ROOT = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Effect:
    """An estimate on its own scale: natural logarithms for a ratio.

    value: the estimate.  error: its standard error.  freedom: degrees of freedom of that error, inf
    if it is known. n: independent searches.  below, above: whether the interval is open on that
    side, since something has no bound there.
    """

    value: float
    error: float
    freedom: float
    n: int
    below: bool = False
    above: bool = False

    @property
    def low(self) -> float:
        return -np.inf if self.below else self.value - self.reach

    @property
    def high(self) -> float:
        return np.inf if self.above else self.value + self.reach

    @property
    def reach(self) -> float:
        """Half the width of the interval at LEVEL."""
        return float(stdtrit(self.freedom, 0.5 + LEVEL / 2) * self.error)

    def p_value(self, threshold: float) -> float:
        """Of a one-sided test against a threshold, on the side on which the estimate lies."""
        if not self.error > 0:
            return 0.0 if self.value != threshold else 0.5
        beyond = abs(self.value - threshold) / self.error
        return float(stdtr(self.freedom, -beyond))

    def row(self, name: str = "", log: bool = True) -> dict[str, float]:
        """name, name_low, name_high; of a ratio if log."""
        of = np.exp if log else float
        with np.errstate(over="ignore"):
            return {
                name: float(of(self.value)),
                f"{name}_low": float(of(self.low)),
                f"{name}_high": float(of(self.high)),
            }


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve at one goal.

    logs: ln K* [searches, batch sizes], NaN where there is no such search; where a search missed
    the goal, ln of its last step, which K* exceeds.  Rows by `SEARCH`, columns the batch sizes.
    missed: [searches, batch sizes], whether the goal was missed. scatter: standard deviation of ln
    K* between searches, for a curve of fewer than ENOUGH.
    """

    logs: pd.DataFrame
    missed: pd.DataFrame
    scatter: float

    @property
    def sizes(self) -> np.ndarray:
        return self.logs.columns.to_numpy(float)

    @property
    def n(self) -> int:
        """Independent searches."""
        return len(self.logs)

    @property
    def met(self) -> np.ndarray:
        """At which batch sizes [m] some search met the goal."""
        return (self.logs.notna() & ~self.missed).to_numpy().any(0)

    @functools.cached_property
    def means(self) -> np.ndarray:
        """Mean ln K* [m], goals that were missed and searches that are lacking completed
        (`completed`).
        """
        return completed(self.sizes, self.logs.to_numpy(), self.missed.to_numpy(), self.scatter)

    @functools.cached_property
    def without_one(self) -> np.ndarray:
        """`means` [n, m] without each search in turn."""
        logs, missed = self.logs.to_numpy(), self.missed.to_numpy()
        if not missed.any() and not np.isnan(logs).any():
            return (len(logs) * logs.mean(0) - logs) / (len(logs) - 1)
        rest = [np.arange(len(logs)) != i for i in range(len(logs))]
        return np.stack(
            [completed(self.sizes, logs[kept], missed[kept], self.scatter) for kept in rest]
        )

    def moved(self) -> tuple[np.ndarray, float, float]:
        """Rows of means [k, m], each off by a part of the error; the factor of their squared
        deviations; degrees of freedom.

        Without each search in turn; or, of fewer than ENOUGH, each batch size shifted by a borrowed
        standard error.
        """
        if self.n >= ENOUGH:
            return self.without_one, (self.n - 1) / self.n, self.n - 1.0
        return self.means + self.scatter / np.sqrt(self.n) * np.eye(len(self.sizes)), 1.0, np.inf

    def at(self, sizes: Sequence[int] | pd.Index, searches: pd.Index | None = None) -> Curve:
        """The curve at some of its batch sizes and of some of its searches."""
        rows = self.logs.index if searches is None else searches
        return Curve(
            self.logs.loc[rows, list(sizes)], self.missed.loc[rows, list(sizes)], self.scatter
        )

    def points(self) -> pd.DataFrame:
        """A row per batch size that some search met: batch_size, steps (geometric mean), low, high,
        replicates, missed.
        """
        known = self.logs.notna().sum().to_numpy()
        lost = self.missed.sum().to_numpy()
        spread = self.logs.where(~self.missed).std().to_numpy()
        met = known - lost
        own = met >= ENOUGH
        error = np.where(own, spread, self.scatter) / np.sqrt(np.maximum(met, 1))
        reach = error * np.where(own, stdtrit(np.maximum(met - 1, 1), 0.95), stdtrit(np.inf, 0.95))
        table = pd.DataFrame(
            {
                "batch_size": self.logs.columns,
                "steps": np.exp(self.means),
                "low": np.exp(self.means - reach),
                "high": np.exp(self.means + reach),
                "replicates": known,
                "missed": lost,
                "borrowed": ~own,
            }
        )
        return table[self.met].reset_index(drop=True)


def curve_of(searches: pd.DataFrame, share: float = 0.5) -> Curve:
    """The curve of rows of `steps_to_result`, of its independent searches (`apart`).

    share: batch sizes that fewer of the searches have are left out.
    """
    about = searches.iloc[0]
    logs = np.log(searches.steps.fillna(searches.last_step).to_numpy(float))
    keys = [searches[name] for name in (*SEARCH, "batch_size")]
    table = pd.Series(logs, keys).unstack().sort_index()
    missed = (
        pd.Series(searches.steps.isna().to_numpy(), keys)
        .unstack()
        .reindex_like(table)
        .fillna(False)
        .astype(bool)
    )
    rows = apart(
        *(table.index.get_level_values(name) for name in SEARCH),
        table.notna().sum(axis=1).to_numpy(),
    )
    table, missed = table[rows], missed[rows]
    counts = table.notna().sum()
    common = counts.index[counts >= share * counts.max()]
    table = table[common].dropna(how="all")
    return Curve(table, missed.loc[table.index, common], scatter_of(about.get("workload", "")))


def curves_of(searches: pd.DataFrame, least: int = 3) -> dict[tuple, Curve]:
    """Every curve of rows of `steps_to_result` by its CURVE key, of those with at least so many
    batch sizes met.
    """
    found = {key: curve_of(own) for key, own in searches.groupby(CURVE)} if len(searches) else {}
    return {key: curve for key, curve in found.items() if curve.met.sum() >= least}


def curves(trials: pd.DataFrame, goal: float | None = None, least: int = 3) -> dict[tuple, Curve]:
    """`curves_of` of trials, at the table's goal or another of its ladder."""
    return curves_of(steps_to_result(trials, goal), least) if len(trials) else {}


def completed(
    sizes: np.ndarray, logs: np.ndarray, missed: np.ndarray, scatter: float
) -> np.ndarray:
    """Mean ln K* [m] of searches [n, m] by maximum likelihood, where some goals were missed or
    searches are lacking.

    ln K* is taken for normal about its batch size's mean plus its search's own level.  A missed
    goal is only known to take more than the steps in logs; where all searches missed, the mean is
    what c1/B^p + c2, fitted to all batch sizes, says of it.
    """
    known = ~np.isnan(logs)
    if known.all() and not missed.any():
        return logs.mean(0)
    met = known & ~missed
    some, least = met.any(0), np.where(known, logs, -np.inf).max(0)
    counts = np.maximum(met.sum(0), 1)
    level = np.where(some, np.where(met, logs, 0.0).sum(0) / counts, least)
    own, spread = np.zeros(len(logs)), scatter
    freedom = met.sum() - some.sum() - (met.any(1).sum() - 1)
    for _ in range(ROUNDS):
        expected = level + own[:, None]
        filled = np.where(met, logs, np.where(missed, _above(expected, logs, spread), expected))
        before, level = (level, own), filled.mean(0)
        if not some.all() and some.sum() >= 3:
            fitted = forms.fit(sizes, level, forms.exponents(sizes[some])).log_steps(sizes)[0]
            level = np.where(some, level, fitted)
        if met.any(1).all():
            own = (filled - level).mean(1)
            own = own - own.mean()
        if max(np.abs(level - before[0]).max(), np.abs(own - before[1]).max()) < SETTLED:
            break
        if len(logs) >= ENOUGH and freedom > 0:
            residuals = (logs - level - own[:, None])[met]
            spread = float(np.sqrt((residuals**2).sum() / freedom))
    return level if some.all() else np.where(some, level, filled.mean(0))


def _above(mean: np.ndarray, bound: np.ndarray, spread: float) -> np.ndarray:
    """Mean of a normal variable that is known to exceed a bound."""
    z = (bound - mean) / max(spread, 1e-6)
    return mean + spread * np.exp(-0.5 * z**2 - LOG_ROOT - log_ndtr(-z))


# --- estimates ------------------------------------------------------------------------------------


def estimate(statistic: Callable[..., np.ndarray], *curves: Curve) -> Effect | list[Effect]:
    """A statistic of curves with its interval.

    statistic: of one (sizes [m], means [k, m]) per curve; returns values [k], or [k, j] for j
    statistics at once. Curves that share ENOUGH searches are paired, by these searches alone;
    others are taken for independent.
    """
    curves = paired(curves)
    shared = len(curves) == 1 or all(
        c.logs.index.equals(curves[0].logs.index) and c.n >= ENOUGH for c in curves
    )
    whole = np.asarray(statistic(*((c.sizes, c.means[None]) for c in curves)))[0]
    parts = []
    for moving in (range(len(curves)),) if shared else [(i,) for i in range(len(curves))]:
        moves = [c.moved() for c in curves]
        rows, factor, freedom = len(moves[moving[0]][0]), *moves[moving[0]][1:]
        means = [
            m[0] if i in moving else np.repeat(c.means[None], rows, 0)
            for i, (c, m) in enumerate(zip(curves, moves))
        ]
        values = np.asarray(statistic(*((c.sizes, m) for c, m in zip(curves, means))))
        centre = values.mean(0) if freedom < np.inf else whole
        parts.append((factor * ((values - centre) ** 2).sum(0), freedom))
    n = min(c.n for c in curves)
    total = sum(variance for variance, _ in parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = total**2 / sum(variance**2 / df for variance, df in parts)  # Satterthwaite's
    freedom = np.where(np.isfinite(freedom) & (freedom > 0), freedom, 1e9)
    if np.ndim(whole) == 0:
        return Effect(float(whole), float(np.sqrt(total)), float(freedom), n)
    return [
        Effect(float(w), float(np.sqrt(t)), float(f), n) for w, t, f in zip(whole, total, freedom)
    ]


def mean_of(values: Sequence[float]) -> Effect:
    """The mean of independent values, one a search or seed, with Student's t; a single one has no
    error that is known.
    """
    values = np.asarray(values, float)
    n = len(values)
    error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return Effect(float(values.mean()), error, max(n - 1.0, 1.0), n)


def paired(curves: Sequence[Curve]) -> list[Curve]:
    """The curves at the searches that all share, if these are ENOUGH and half of the fewest; else
    each with its own.
    """
    if len(curves) == 1:
        return list(curves)
    index = functools.reduce(
        lambda a, b: a.intersection(b), (c.logs.index for c in curves)
    ).sort_values()
    if len(index) < max(ENOUGH, min(c.n for c in curves) / 2):
        return list(curves)
    return [c.at(c.logs.columns, index) for c in curves]


def alike(*curves: Curve) -> list[Curve]:
    """The curves at the batch sizes that all have: a longer curve bends elsewhere if the form is
    not the truth.
    """
    sizes = functools.reduce(lambda a, b: a.intersection(b), (c.logs.columns for c in curves))
    return [c.at(sizes) for c in curves]


def critical(curve: Curve) -> Effect:
    """ln of the critical batch size, in examples; open where it may lie beyond REACH of the batch
    sizes measured.
    """
    found = estimate(lambda own: forms.log_critical(*own), curve)
    low, high = np.log(curve.sizes.min()) - forms.REACH, np.log(curve.sizes.max()) + forms.REACH
    below, above = found.low <= low, found.high >= high
    return Effect(found.value, found.error, found.freedom, found.n, below, above)


def critical_ratio(above: Curve, below: Curve) -> Effect | None:
    """ln of one critical batch size over another, at the batch sizes both have; None if these are
    fewer than three.
    """
    above, below = alike(above, below)
    if min(above.met.sum(), below.met.sum()) < 3:
        return None
    top, bottom = critical(above), critical(below)
    found = estimate(lambda a, b: forms.log_critical(*a) - forms.log_critical(*b), above, below)
    return Effect(
        found.value,
        found.error,
        found.freedom,
        found.n,
        top.below or bottom.above,
        top.above or bottom.below,
    )


def steps_ratio(above: Curve, below: Curve) -> pd.DataFrame:
    """Steps of one curve over those of another: batch_size, ratio, ratio_low, ratio_high, n and
    effect (an `Effect`).
    """
    above, below = alike(above, below)
    if not len(above.sizes):
        return pd.DataFrame(
            columns=["batch_size", "ratio", "ratio_low", "ratio_high", "n", "effect"]
        )
    found = estimate(lambda a, b: a[1] - b[1], above, below)
    rows = [
        {"batch_size": int(b), **e.row("ratio"), "n": e.n, "effect": e}
        for b, e in zip(above.sizes, found)
    ]
    return pd.DataFrame(rows)


def mean_steps_ratio(above: Curve, below: Curve, sizes: Sequence[int] | None = None) -> Effect:
    """ln of the geometric mean, over batch sizes that both have (or these of them), of steps over
    steps.
    """
    above, below = alike(above, below)
    chosen = [b for b in above.logs.columns if sizes is None or b in set(sizes)]
    above, below = above.at(chosen), below.at(chosen)
    return estimate(lambda a, b: (a[1] - b[1]).mean(1), above, below)


def draws(curve: Curve, size: int = 1000) -> pd.DataFrame:
    """Curves of K* [draws, batch sizes] that scatter about the means as their error does, for
    statistics that jump.

    With jackknife rows as directions; Student's t by one chi-square a draw.
    """
    random = np.random.default_rng(0)
    moved, factor, freedom = curve.moved()
    centre = moved.mean(0) if freedom < np.inf else curve.means
    off = random.standard_normal((size, len(moved))) @ (moved - centre) * np.sqrt(factor)
    if freedom < np.inf:
        off *= np.sqrt(freedom / random.chisquare(freedom, (size, 1)))
    return pd.DataFrame(np.exp(curve.means + off), columns=curve.logs.columns)


def span_of(values: Sequence[float]) -> tuple[float, float]:
    """The 5 and 95 % quantiles, each one of the values."""
    return tuple(map(float, np.quantile(values, [0.05, 0.95], method="nearest")))
