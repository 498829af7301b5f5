"""Curves as their searches know them: intervals over searches, and whole curves drawn from these."""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import chdtri

from lib.analysis.scaling.fits import hyperbolas
from lib.analysis.scaling.rules import regime_ends
from lib.analysis.scaling.steps import CURVE, ENOUGH, SEARCH, apart, scatter_of, steps_to_result

DRAWS = 1000
LEAST = 3  # batch sizes that tell a floor from a slope
FARTHEST = 300.0  # of a logarithm that is drawn: two searches leave Student's t one degree of freedom, and exp would overflow
REDRAWN = ["perfect_end", "useful_end", "c1", "c2", "critical"]


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve at one goal, search by search.

    logs: ln K* [searches, batch sizes], NaN where there is no such search; a search that missed the goal counts as its last
    step.  Rows by `SEARCH` (replicate, split).  scatter: standard deviation of ln K* between searches, for a batch size that
    has fewer than ENOUGH.  seed: of the draws of such batch sizes, its own for every curve.
    """

    logs: pd.DataFrame
    scatter: float
    seed: int
    size: int = DRAWS

    @functools.cached_property
    def draws(self) -> pd.DataFrame:
        """Curves of K* [draws, batch sizes], of the searches that are independent (`apart`)."""
        return self.drawn(self.logs[_apart(self.logs)])

    def drawn(self, logs: pd.DataFrame) -> pd.DataFrame:
        """Curves of K* [draws, batch sizes] whose logarithms scatter about the mean of these searches as Student's t.

        A search has one normal number a draw, and a draw one quantile of chi-square, whatever the curve and batch size: whole
        curves move together, and a ratio of curves of the same searches is drawn as its paired t interval.
        """
        known = logs[logs.columns[logs.notna().any()]]
        counts, means = known.count().to_numpy(), known.mean().to_numpy()
        weights = (known - means).fillna(0).to_numpy() / np.sqrt(counts * np.maximum(counts - 1, 1))
        off = np.stack([_normal(self.size, *search) for search in known.index], 1) @ weights
        off *= np.stack([_widths(self.size, max(n - 1, 1)) for n in counts], 1)
        for place in np.flatnonzero(counts < ENOUGH):
            error = self.scatter / np.sqrt(counts[place])
            off[:, place] = error * _normal(self.size, self.seed, int(known.columns[place]))
        return pd.DataFrame(np.exp((means + off).clip(-FARTHEST, FARTHEST)), columns=known.columns)


@functools.lru_cache(maxsize=4096)
def _normal(size: int, *seed: int) -> np.ndarray:
    """Standard normal numbers [size], half of them the others' negatives: the middle of what is drawn is its mean."""
    half = np.random.default_rng(seed).standard_normal((size + 1) // 2)
    return np.concatenate([half, -half])[:size]


@functools.lru_cache(maxsize=256)
def _widths(size: int, freedom: int) -> np.ndarray:
    """What makes normal numbers Student's t [size]: one draw of the chance for all degrees of freedom."""
    chance = np.random.default_rng(0).random((size + 1) // 2)
    return np.sqrt(freedom / chdtri(freedom, np.concatenate([chance, chance])[:size]))


def _apart(logs: pd.DataFrame) -> np.ndarray:
    """`apart` of the searches of a `Curve` [searches, batch sizes]."""
    return apart(*(logs.index.get_level_values(name) for name in SEARCH), logs.notna().sum(axis=1).to_numpy())


def curve_of(trials: pd.DataFrame, goal: float | None = None, draws: int = DRAWS, least: int = 1) -> Curve:
    """The trials of one curve as a `Curve`, at the batch sizes at which so many searches, at least, met the goal."""
    return curve_from(steps_to_result(trials, goal), draws, least)


def curve_from(searches: pd.DataFrame, draws: int = DRAWS, least: int = 1) -> Curve:
    """As `curve_of`, of the rows of `steps_to_result`."""
    logs = np.log(searches.steps.fillna(searches.last_step)).to_numpy()
    logs = pd.Series(logs, [searches[c] for c in (*SEARCH, "batch_size")]).unstack().sort_index()
    met = searches.groupby("batch_size").steps.count()
    about = searches.iloc[0][[c for c in (*CURVE, "density", "goal") if c in searches]]
    seed = zlib.crc32(str(about.tolist()).encode())
    return Curve(logs[met.index[met >= least]], scatter_of(about.get("workload", "")), seed, draws)


def together(*curves: Curve) -> list[pd.DataFrame]:
    """The draws of several curves, of the searches that they share; of each one's own if they do not share two."""
    shared = functools.reduce(lambda a, b: a.intersection(b), (c.logs.index for c in curves)).sort_values()
    if len(shared):
        cells = pd.concat([c.logs.loc[shared] for c in curves], axis=1)
        shared = shared[_apart(cells)]
    return [c.drawn(c.logs.loc[shared]) if len(shared) > 1 else c.draws for c in curves]


@functools.lru_cache(maxsize=128)  # several quantities of the same two curves are compared
def pair(above: Curve, below: Curve) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The draws of two curves at the batch sizes both have, of the searches both have there (`together`).

    Without such searches (`paired`), of each one's own.  Not to be changed.
    """
    known = paired(above, below)
    if known.empty:
        sizes = above.logs.columns.intersection(below.logs.columns)
        return above.draws[sizes], below.draws[sizes]
    tops, bottoms = (c.logs.loc[known.index, known.columns].where(known) for c in (above, below))
    kept = _apart(tops)
    return above.drawn(tops[kept]), below.drawn(bottoms[kept])


@functools.lru_cache(maxsize=128)
def paired(above: Curve, below: Curve) -> pd.DataFrame:
    """Where two curves share searches [searches, batch sizes]; empty if they cannot be paired.  Not to be changed.

    Left out, if LEAST others remain, are batch sizes at which they share one search at most, or less than half as many as
    elsewhere: Student's t of two searches says next to nothing.
    """
    rows, sizes = (a.intersection(b) for a, b in zip(above.logs.axes, below.logs.axes))
    known = above.logs.loc[rows, sizes].notna() & below.logs.loc[rows, sizes].notna()
    counts = known[_apart(above.logs.loc[rows, sizes].where(known))].sum()
    enough = (counts > 1) & (counts >= counts.max() / 2)
    if enough.sum() >= LEAST:
        return known.loc[:, enough]
    return known if (counts > 1).all() else known.iloc[:0, :0]


def redrawn(draws: pd.DataFrame) -> pd.DataFrame:
    """What each drawn curve [draws, batch sizes] says, a row each: perfect_end, useful_end, c1, c2, critical.

    critical is inf for a draw without a floor.
    """
    b, k = draws.columns.to_numpy(float), draws.to_numpy()
    perfect, useful = regime_ends(b, k)
    c1, c2 = hyperbolas(b, k)
    with np.errstate(divide="ignore"):
        return pd.DataFrame({"perfect_end": perfect, "useful_end": useful, "c1": c1, "c2": c2, "critical": c1 / c2})


def span_of(values: list[float] | np.ndarray | pd.Series) -> tuple[float, float]:
    """The 5 and 95 % quantiles, each one of the values."""
    return tuple(map(float, np.quantile(values, [0.05, 0.95], method="nearest")))


def ranges(draws: pd.DataFrame, name: str) -> pd.DataFrame:
    """Draws [draws, batch sizes] as rows of a table: batch_size, name_low, name_high (5 and 95 %)."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=0, method="nearest")
    return pd.DataFrame({"batch_size": draws.columns, f"{name}_low": low, f"{name}_high": high})


def ranged(name: str, values: np.ndarray) -> dict[str, float]:
    """Draws as columns of a table: name (the median), name_low, name_high (`span_of`)."""
    return {name: float(np.median(values)), **dict(zip((f"{name}_low", f"{name}_high"), span_of(values)))}


def wilson(met: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share of trials."""
    from scipy.stats import binomtest  # slow to import, and most chapters count no shares

    return tuple(binomtest(int(met), int(trials)).proportion_ci(level, method="wilson"))
