"""One curve, search by search, and estimates from it with intervals: jackknife over searches, with
missed goals as bounds.

The unit is the search.  An estimate is computed from all searches, and again without each of them;
their spread gives its standard error, and Student's t its interval.  Curves that share searches
leave out the same one, so that ratios are paired.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import erfcx, stdtrit

from lib import forms, require
from lib.analysis.scaling.steps import (
    CURVE,
    PROTOCOL,
    SEARCH,
    apart,
    scatter_of,
    steps_to_result,
)
from lib.methods import spaces

LEVEL = 0.9  # of every interval in the book
ENOUGH = 3  # searches from whose scatter an error is estimated; fewer borrow it
# Expectation-maximisation rounds at most, if goals were missed, until means move less than this
ROUNDS, SETTLED = 60, 1e-4


@dataclass(frozen=True)
class Effect:
    """An estimate on its natural scale: logarithms for a ratio.

    value: the estimate.  error: its standard error.  freedom: degrees of freedom of that error, inf
    if it is taken as known.  n: independent searches.  below, above: whether the interval is
    unbounded on that side.
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

    def row(self, name: str = "", log: bool = True) -> dict[str, float]:
        """name, name_low, name_high; exponentiated, as a ratio, if log."""
        with np.errstate(over="ignore"):
            ends = (np.exp if log else np.asarray)([self.value, self.low, self.high])
        return dict(zip((name, f"{name}_low", f"{name}_high"), ends.tolist()))


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve at one goal.

    logs: ln K* [searches, batch sizes], NaN where there is no such search; if a search missed the
    goal, ln of its last step, which K* exceeds.  Rows by `SEARCH`, columns are batch sizes.
    missed: [searches, batch sizes], whether the goal was missed.  scatter: standard deviation of
    ln K* between searches, for a curve of fewer than ENOUGH.
    """

    logs: pd.DataFrame
    missed: pd.DataFrame
    scatter: float
    weights = None  # of the batch sizes in a fit, [m]; None: equal

    @functools.cached_property
    def sizes(self) -> np.ndarray:
        return self.logs.columns.to_numpy(float)

    @property
    def n(self) -> int:
        """Number of independent searches."""
        return len(self.logs)

    @functools.cached_property
    def met(self) -> np.ndarray:
        """At which batch sizes [m] some search met the goal."""
        return (~np.isnan(self.logs.to_numpy()) & ~self.missed.to_numpy()).any(0)

    @functools.cached_property
    def means(self) -> np.ndarray:
        """`mean` of all searches, [m]."""
        return self.mean(np.ones(self.n, bool))

    def mean(self, searches: np.ndarray) -> np.ndarray:
        """Mean ln K* [m] of some searches [n, true or false] by maximum likelihood.

        If goals were missed or searches are missing, ln K* is assumed normal about its batch size's
        mean plus its search's level.  A missed goal only means more steps than those in logs; if
        all searches missed, the mean is the prediction of c1/B + c2, fitted to all batch sizes.
        """
        logs = self.logs.to_numpy()[searches]
        missed = self.missed.to_numpy()[searches]
        met = ~(np.isnan(logs) | missed)
        if met.all():
            return logs.mean(0)
        met_sizes, met_searches = met.any(0), met.any(1)
        size_means = np.ma.masked_where(~met, logs).mean(0).filled(np.nan)
        size_means = np.where(met_sizes, size_means, np.fmax.reduce(logs))
        searched = ~np.isnan(size_means)
        if not searched.all():  # these searches lack some sizes
            others = forms.fit(self.sizes[searched], size_means[searched])
            fitted = others.log_steps(self.sizes)[0]
            size_means = np.where(searched, size_means, fitted)
        levels = np.zeros((len(logs), 1))  # of searches
        spread = self.scatter
        freedom = met.sum() - met_sizes.sum() - (met_searches.sum() - 1)
        for _ in range(ROUNDS):
            before = np.append(size_means, levels)
            expected = size_means + levels
            filled = np.select([met, missed], [logs, above(expected, logs, spread)], expected)
            size_means = filled.mean(0)
            if not met_sizes.all() and met_sizes.sum() >= 3:
                fitted = forms.fit(self.sizes, size_means).log_steps(self.sizes)[0]
                size_means = np.where(met_sizes, size_means, fitted)
            if met_searches.all():
                levels = (filled - size_means).mean(1, keepdims=True)
                levels = levels - levels.mean()
            if np.abs(np.append(size_means, levels) - before).max() < SETTLED:
                break
            if len(logs) >= ENOUGH and freedom > 0:
                residuals = (logs - size_means - levels)[met]
                spread = float(np.sqrt((residuals**2).sum() / freedom))
        return np.where(met_sizes, size_means, filled.mean(0))

    @functools.cached_property
    def moved(self) -> tuple[np.ndarray, float, float]:
        """Perturbed means [k, m]; the factor by which their squared deviations are multiplied;
        degrees of freedom.

        Each row leaves out one search; or, with fewer than ENOUGH, shifts one batch size by a
        borrowed standard error.
        """
        if self.n >= ENOUGH:
            rows = [self.mean(kept) for kept in ~np.eye(self.n, dtype=bool)]
            return np.stack(rows), (self.n - 1) / self.n, self.n - 1.0
        shifts = self.scatter / np.sqrt(self.n) * np.eye(len(self.sizes))
        return self.means + shifts, 1.0, np.inf

    def select(self, sizes: Sequence[int] | pd.Index, searches: pd.Index | None = None) -> Curve:
        """The curve with some of its batch sizes and some of its searches; itself if these are all,
        so that cached results are kept.
        """
        rows = self.logs.index if searches is None else searches
        logs = self.logs.loc[rows, list(sizes)]
        if logs.equals(self.logs):
            return self
        return replace(self, logs=logs, missed=self.missed.loc[logs.index, logs.columns])

    @property
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The standard deviation of one search's ln K* [m], and its degrees of freedom [m], inf if
        it is borrowed.
        """
        met = self.logs.mask(self.missed)
        counts = met.count().to_numpy()
        enough = counts >= ENOUGH
        spread = np.where(enough, met.std().to_numpy(), self.scatter)
        return spread, np.where(enough, counts - 1.0, np.inf)

    def points(self) -> pd.DataFrame:
        """A row per batch size that some search met: batch_size, steps (geometric mean), low, high,
        replicates, missed (counts), borrowed (whether the scatter is).
        """
        searched = self.logs.count().to_numpy()
        missed = self.missed.to_numpy().sum(0)
        spread, freedom = self.spread
        counts = np.maximum(searched - missed, 1)
        reach = stdtrit(freedom, 0.5 + LEVEL / 2) * spread / np.sqrt(counts)
        table = {
            "batch_size": self.logs.columns,
            "steps": np.exp(self.means),
            "low": np.exp(self.means - reach),
            "high": np.exp(self.means + reach),
            "replicates": searched,
            "missed": missed,
            "borrowed": np.isinf(freedom),
        }
        return pd.DataFrame(table)[self.met].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class AdaptiveCurve(Curve):
    """The curve of an adaptive search, which searches some batch sizes more often than others.

    All searches that met the goal count as independent; K* is their geometric mean.  The error of
    one search is the scatter of all about the fitted c1/B + c2, the same at every batch size; with
    fewer than three batch sizes, it is `scatter`.
    """

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """Number of searches at every batch size, [m]."""
        return self.logs.count().to_numpy()

    @property
    def n(self) -> int:
        """Number of searches at all batch sizes together."""
        return int(self.weights.sum())

    @functools.cached_property
    def means(self) -> np.ndarray:
        return self.logs.mean().to_numpy()

    @functools.cached_property
    def spread(self) -> tuple[float, float]:
        """As for a `Curve`, but the same at every batch size."""
        if len(self.sizes) < 3:
            return self.scatter, np.inf
        columns = self.logs.to_numpy().T
        sizes = self.sizes.repeat(self.weights)
        freedom = self.n - 2.0
        loss = forms.fit(sizes, columns[~np.isnan(columns)]).loss[0]
        return float(np.sqrt(loss / freedom)), freedom

    @functools.cached_property
    def moved(self) -> tuple[np.ndarray, float, float]:
        """As for a `Curve`, with every batch size shifted up and down by its standard error."""
        error, freedom = self.spread
        shifts = error * np.diag(1 / np.sqrt(self.weights))
        return self.means + np.concatenate([shifts, -shifts]), 0.5, freedom


def curve_of(searches: pd.DataFrame, share: float = 0.5) -> Curve:
    """The curve from rows of `steps_to_result`, of its independent searches (`apart`), or of an
    adaptive one.

    share: leave out batch sizes that a smaller share of the searches has.
    """
    # Tables of side studies hold one network, which they do not name
    name = searches.workload.iloc[0] if "workload" in searches else ""
    scatter = scatter_of(name)
    if "space" in searches and searches.space.iloc[0] == spaces.ADAPTIVE:
        met = searches.dropna(subset="steps").set_index(["replicate", "batch_size"])
        logs = np.log(met.steps).unstack()
        # Search numbers do not correspond between curves: none may be paired with this one
        logs.index = [(*searches[CURVE].iloc[0], number) for number in logs.index]
        return AdaptiveCurve(logs, logs > np.inf, scatter)
    by = searches.set_index([*SEARCH, "batch_size"])
    alone = not by.index.has_duplicates
    require(alone, "searches", len(by), "one row per search and size")
    missed = by.steps.isna().unstack(fill_value=False)
    steps = by.steps.fillna(by.last_step).astype(float)
    logs = np.log(steps).unstack()
    searched = logs.notna()
    replicates, splits = map(np.array, zip(*logs.index))
    kept = apart(replicates, splits, searched.sum(axis=1).to_numpy())
    counts = searched[kept].sum()
    sizes = logs.columns[counts >= share * counts.max()]
    kept &= searched[sizes].any(axis=1).to_numpy()
    return Curve(logs.loc[kept, sizes], missed.loc[kept, sizes], scatter)


def curves_of(searches: pd.DataFrame, least: int = 3) -> dict[tuple, Curve]:
    """Every curve from rows of `steps_to_result` by its CURVE key, if at least so many batch sizes
    met the goal.  Raises ValueError if a curve was measured under several protocols.
    """
    by = searches.groupby(CURVE)
    counts = by[searches.columns.intersection(PROTOCOL)].nunique(dropna=False).max()
    mixed = list(counts.index[counts > 1])
    require(not mixed, "searches", mixed, "constant along a curve; choose a value")
    curves = {key: curve_of(rows) for key, rows in searches.groupby(CURVE)}
    return {key: curve for key, curve in curves.items() if curve.met.sum() >= least}


def curves(trials: pd.DataFrame, least: int = 3) -> dict[tuple, Curve]:
    """`curves_of` for trials, at the goal of the table."""
    return curves_of(steps_to_result(trials), least) if len(trials) else {}


def above(mean: np.ndarray, bound: np.ndarray, spread: float) -> np.ndarray:
    """Mean of a normal variable that is known to exceed a bound."""
    z = (bound - mean) / max(spread, 1e-6)
    return mean + spread * np.sqrt(2 / np.pi) / erfcx(z / np.sqrt(2))


# --- estimates ------------------------------------------------------------------------------------


def estimate(statistic: Callable[..., np.ndarray], *curves: Curve) -> Effect | list[Effect]:
    """A statistic of curves with its interval.

    statistic: called with one (sizes [m], means [k, m]) per curve; returns values [k], or [k, j]
    for j statistics at once.  Curves that share ENOUGH searches are paired, using only these;
    others count as independent.
    """
    curves = paired(curves)
    index = curves[0].logs.index
    together = all(c.logs.index.equals(index) and c.n >= ENOUGH for c in curves[1:])
    groups = [curves] if together else [[curve] for curve in curves]
    # The means, then the perturbed means beside the means of the other curves; all together, since
    # most statistics take as long for one row as for many
    ends = np.cumsum([1, *(len(group[0].moved[0]) for group in groups)])
    lines = []
    for curve in curves:
        means = curve.means[None].repeat(ends[-1], 0)
        for group, first, last in zip(groups, ends, ends[1:]):
            if curve in group:
                means[first:last] = curve.moved[0]
        lines.append((curve.sizes, means))
    values = np.asarray(statistic(*lines))
    (value,), *parts = np.split(values, ends[:-1])
    variances = []
    freedoms = []
    for group, moved in zip(groups, parts):
        _, factor, freedom = group[0].moved
        centre = moved.mean(0) if freedom < np.inf else value
        squares = (moved - centre) ** 2
        variances.append(factor * squares.sum(0))
        freedoms.append(freedom)
    errors = np.sqrt(sum(variances))
    rows = np.transpose([value, errors, satterthwaite(variances, freedoms)])
    n = min(curve.n for curve in curves)
    effects = [Effect(*row, n) for row in np.atleast_2d(rows).tolist()]
    return effects if np.ndim(value) else effects[0]


def drawn(
    effect: Effect, value: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends [40000] of the intervals of estimates drawn about `value` with this one's error."""
    size = 40_000
    spread = np.full(size, effect.error)
    if np.isfinite(effect.freedom):
        spread *= np.sqrt(random.chisquare(effect.freedom, size) / effect.freedom)
    reach = stdtrit(effect.freedom, 0.5 + LEVEL / 2) * spread
    middle = value + effect.error * random.standard_normal(size)
    return middle - reach, middle + reach


def satterthwaite(variances: Sequence[np.ndarray], freedoms: Sequence[float]) -> np.ndarray:
    """Degrees of freedom of the sum of independent variances with these; a billion where that is
    zero or not finite.
    """
    total = sum(variances)
    parts = sum(variance**2 / freedom for variance, freedom in zip(variances, freedoms))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = total**2 / parts
    return np.where(np.isfinite(freedom) & (freedom > 0), freedom, 1e9)


def mean_of(values: Sequence[float]) -> Effect:
    """The mean of independent values, one per search or seed, with Student's t; the error of a
    single one is unknown.
    """
    values = np.asarray(values, float)
    n = len(values)
    error = values.std(ddof=1) / n**0.5 if n > 1 else np.inf
    return Effect(float(values.mean()), float(error), max(n - 1.0, 1.0), n)


def less(above: Effect, below: Effect) -> Effect:
    """One estimate minus another, independent one, unbounded where the first is."""
    variances = [above.error**2, below.error**2]
    freedom = satterthwaite(variances, [above.freedom, below.freedom])
    return replace(
        above,
        value=above.value - below.value,
        error=sum(variances) ** 0.5,
        freedom=float(freedom),
        n=min(above.n, below.n),
    )


def share(met: int, of: int) -> tuple[float, float, float]:
    """The share `met` / `of`, and the ends of its interval by Wilson's (1927) score; NaN if `of` is
    zero.
    """
    if not of:
        return np.nan, np.nan, np.nan
    from scipy import stats  # slow to import

    ends = stats.binomtest(int(met), int(of)).proportion_ci(LEVEL, "wilson")
    return met / of, float(ends.low), float(ends.high)


def paired(curves: Sequence[Curve]) -> list[Curve]:
    """The curves with only the searches that all share, if these are half of the fewest, and ENOUGH
    if all have as many; else each with its own searches.
    """
    shared = _shared([c.logs.index for c in curves]).sort_values()
    fewest = min(c.n for c in curves)
    if len(shared) < max(min(ENOUGH, fewest), fewest / 2):
        return list(curves)
    return [c.select(c.logs.columns, shared) for c in curves]


def alike(*curves: Curve, among: Sequence[int] | None = None) -> list[Curve]:
    """The curves at the batch sizes that all have: a longer curve would bend elsewhere if the form
    is not exact.

    among: use only these batch sizes; None: all.
    """
    sizes = _shared([c.logs.columns for c in curves])
    sizes = sizes if among is None else sizes.intersection(among)
    return [c.select(sizes) for c in curves]


def _shared(indices: list[pd.Index]) -> pd.Index:
    return functools.reduce(pd.Index.intersection, indices)


@functools.lru_cache(maxsize=4096)  # many claims use the same curves
def critical(curve: Curve) -> Effect:
    """ln of the critical batch size, in examples; unbounded on a side where it may lie farther than
    REACH beyond the batch sizes measured.
    """
    bend = estimate(lambda line: forms.log_critical(*line, curve.weights), curve)
    low, high = np.log(curve.sizes[[0, -1]]) + [-forms.REACH, forms.REACH]
    return replace(bend, below=bool(bend.low <= low), above=bool(bend.high >= high))


@functools.lru_cache(maxsize=4096)
def critical_ratio(above: Curve, below: Curve) -> Effect | None:
    """ln of one critical batch size over another, at the batch sizes that both have; None if fewer
    than three.
    """
    above, below = alike(above, below)
    if min(above.met.sum(), below.met.sum()) < 3:
        return None

    def difference(a: tuple, b: tuple) -> np.ndarray:
        return forms.log_critical(*a, above.weights) - forms.log_critical(*b, below.weights)

    ratio = estimate(difference, above, below)
    top, bottom = critical(above), critical(below)
    return replace(ratio, below=top.below or bottom.above, above=top.above or bottom.below)


RATIO = ["batch_size", "ratio", "ratio_low", "ratio_high", "n", "effect"]


def steps_ratio(above: Curve, below: Curve) -> pd.DataFrame:
    """Steps of one curve over those of another, a row per batch size that both have: RATIO; effect
    is an `Effect`.
    """
    above, below = alike(above, below)
    sizes = above.logs.columns
    effects = estimate(lambda a, b: a[1] - b[1], above, below) if len(sizes) else []
    rows = [
        {"batch_size": int(size), "n": effect.n, "effect": effect, **effect.row("ratio")}
        for size, effect in zip(sizes, effects)
    ]
    return pd.DataFrame(rows, columns=RATIO)


def mean_steps_ratio(above: Curve, below: Curve, sizes: Sequence[int] | None = None) -> Effect:
    """ln of the geometric mean, over batch sizes that both have (or these of them), of steps over
    steps.
    """
    curves = alike(above, below, among=sizes)
    return estimate(lambda a, b: (a[1] - b[1]).mean(1), *curves)


def draws(curve: Curve) -> pd.DataFrame:
    """Curves of K* [draws, batch sizes] drawn about the means with their error, for discontinuous
    statistics.

    Jackknife rows serve as directions; one chi-square per draw gives Student's t.
    """
    random = np.random.default_rng(0)
    moved, factor, freedom = curve.moved
    centre = moved.mean(0) if freedom < np.inf else curve.means
    normal = random.standard_normal((1000, len(moved)))
    off = normal @ (moved - centre) * np.sqrt(factor)
    if freedom < np.inf:
        off *= np.sqrt(freedom / random.chisquare(freedom, (1000, 1)))
    return pd.DataFrame(np.exp(curve.means + off), columns=curve.logs.columns)


def span_of(values: Sequence[float]) -> tuple[float, float]:
    """The 5 and 95 % quantiles, each one of the values."""
    return tuple(map(float, np.quantile(values, [0.05, 0.95], method="nearest")))
