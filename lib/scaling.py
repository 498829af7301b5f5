"""From trials to curves: steps to result with its interval, regimes, and the fit K* = c1/B + c2.

Works on the table of `lib.sweeps.results` (a row per trial) and measures nothing itself.
"""

from __future__ import annotations

import functools
import itertools
import operator
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Real

import numpy as np
import pandas as pd
from scipy.optimize import leastsq
from scipy.special import gammaln

from lib.book import named
from lib.workloads import workload

CELL = ["workload", "algorithm", "pruning", "sparsity", "batch_size", "trials", "replicate", "stop", "checks",
        "hits", "precision", "max_steps", "space", "label_smoothing", "workers", "compressor", "density", "feedback",
        "by_layer", "aggregation", "warm_up"]  # fmt: skip
SAME = ("replicate", "hits")  # searches of one cell: how many hits it waits for does not change its K*
PROTOCOL = ["trials", "stop", "checks", "precision", "space", "label_smoothing"]  # one each on a curve
LEVELS = (0.05, 0.5, 0.95)
TOLERANCE = 0.2  # of the operational definitions of the regimes
UNSEEN = 0.24  # what `unseen` finds on digits in searches of 32 trials up to their second hit
FAR = 8  # natural logarithms beyond the sizes measured, where a bend counts as none
LONG = 8  # batch sizes of a curve, for one to be left out and three constants fitted to the rest
WHOLE = (100, 5)  # trials and hits of a search of which redrawing shows nearly all
BEFORE, PERFECT = "more examples than larger batches", "perfect scaling"
DIMINISHING, MAXIMAL = "diminishing returns", "maximal data parallelism"


def goals(trials: pd.DataFrame) -> list[float]:
    """The ladder of goal errors that the table knows, the hardest first."""
    columns = [c for c in trials if c.startswith("steps@") and trials[c].notna().any()]
    return sorted(float(c.removeprefix("steps@")) for c in columns)


def at_goal(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """The table with `steps` and `goal` set to another goal of the ladder.  Raises ValueError if it is not on it."""
    column = f"steps@{goal:g}" if isinstance(goal, Real) else None
    if column not in trials:
        raise ValueError(
            f"goal: {goal!r} is not allowed; it must be one of {', '.join(f'{g:g}' for g in goals(trials))}"
        )
    return trials.assign(steps=trials[column], goal=goal)


def _slim(trials: pd.DataFrame) -> pd.DataFrame:
    """Only what curves are made of: taking the rows of all the columns, cell by cell, is slow."""
    wanted = {*CELL, "goal", "steps", "last_step", "status"}
    return trials[[c for c in trials if c in wanted or c.startswith("steps@")]]


def _half(n: int) -> int:
    """The default k: a search half as large as the cell's."""
    return max(1, n // 2)


@functools.lru_cache(maxsize=1024)
def best_of_k_pmf(n: int, k: int) -> np.ndarray:
    """P(best of k drawn without replacement from n is the j-th best), j = 1 ... n: C(n - j, k - 1) / C(n, k).

    Raises ValueError unless 1 <= k <= n.
    """
    if not 1 <= k <= n:
        raise ValueError(f"k: {k!r} is not allowed; it must be a whole number from 1 to {n}")
    j = np.arange(1, n + 1)
    possible = n - j >= k - 1
    left = np.where(possible, n - j, k - 1)
    log = _log_choose(left, k - 1) - _log_choose(n, k)
    chances = np.where(possible, np.exp(log), 0.0)
    chances.setflags(write=False)  # they are the cache's
    return chances


def _log_choose(n: np.ndarray | int, k: int) -> np.ndarray:
    return gammaln(np.add(n, 1)) - gammaln(k + 1) - gammaln(np.subtract(n, k) + 1)


def best_of_k(steps: np.ndarray, k: int) -> np.ndarray:
    """Quantiles LEVELS of the best of k of these trials; NaN (not reached) counts as infinite.

    A cell stops after its m-th hit, so only the first m order statistics are known.  A quantile beyond them is
    returned as inf: all that is known is that it exceeds the cell's last step.
    """
    ordered = np.sort(np.where(np.isnan(steps), np.inf, steps))
    total = np.cumsum(best_of_k_pmf(len(ordered), k))
    return ordered[np.minimum(np.searchsorted(total, np.array(LEVELS) - 1e-12), len(ordered) - 1)]


def steps_to_result(trials: pd.DataFrame, goal: float | None = None, k: int | None = None) -> pd.DataFrame:
    """One row per cell: steps (K*, NaN if no trial met the goal), low, median, high (5, 50, 95 % of the best of k) ...

    k defaults to half of the cell's trials: with k = n the best of k is K* itself, so the interval answers how much a
    search half as large would have varied.  Further columns: upper (high, or the cell's last step where high is not
    known and censored is True), hits_seen and infeasible (trials), k.
    """
    trials = trials if goal is None else at_goal(trials, goal)
    keys = [c for c in CELL if c in trials]
    rows = []
    first, cells = _grouped(trials, keys, "steps", "last_step", "status")
    for steps, last, status in cells:
        size = _half(len(steps)) if k is None else k
        low, median, high = best_of_k(steps, size)
        rows.append({
            "steps": float(np.fmin.reduce(steps)), "low": low, "median": median, "high": high, "upper": min(high, last.max()),
            "censored": np.isinf(high), "k": size, "hits_seen": int((~np.isnan(steps)).sum()),
            "infeasible": int((status == "infeasible").sum()),
        })  # fmt: skip
    return pd.concat([first[[*keys, "goal"]].reset_index(drop=True), pd.DataFrame(rows)], axis=1)


def _grouped(trials: pd.DataFrame, keys: list[str], *columns: str) -> tuple[pd.DataFrame, list[tuple[np.ndarray, ...]]]:
    """The first row of every group of trials, in the order of their keys, and these columns of each group.

    In numpy: to take the rows of a table group by group takes ten times as long.
    """
    number = trials.groupby(keys, dropna=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    split = (np.split(trials[column].to_numpy()[order], starts)[1:] for column in columns)
    return _slim(trials).iloc[order[starts]], list(zip(*split, strict=True))


def all_goals(trials: pd.DataFrame, missed: bool = False) -> pd.DataFrame:
    """`steps_to_result` at every goal of the ladder, one below the other; cells that missed a goal are left out.

    missed: these instead, without steps and range: where a line that is drawn has a gap.  Raises ValueError if none of the
    trials met any.
    """
    slim = _slim(trials)
    met = {g: slim.workload.isin(slim.workload[slim[f"steps@{g:g}"].notna()].unique()) for g in goals(slim)}
    if not met:
        ladder = ", ".join(c.removeprefix("steps@") for c in trials if c.startswith("steps@"))
        raise ValueError(f"goal: none of {len(trials)} trials met any of {ladder}; their lowest validation error was "
                         f"{trials.best_error.min():.3g}, so that easier goals or more steps are needed")  # fmt: skip
    curves = pd.concat([steps_to_result(slim[where], goal) for goal, where in met.items()], ignore_index=True)
    nothing = {"low": np.nan, "upper": np.nan} if missed else {}
    return curves[curves.steps.isna() if missed else curves.steps.notna()].reset_index(drop=True).assign(**nothing)


def well_met(trials: pd.DataFrame, hits: int = WHOLE[1]) -> float | None:
    """The hardest goal of the ladder that so many trials of a search met at every batch size, on average over its searches.

    trials: of one curve.  None if there is no such goal.
    """
    cells = trials.groupby(["batch_size", "replicate"])
    met = (g for g in goals(trials) if cells[f"steps@{g:g}"].count().groupby("batch_size").mean().min() >= hits)
    return next(met, None)


def mixed(trials: pd.DataFrame) -> dict[str, list]:
    """What these trials do not share of the protocol that a comparison needs to be of: field -> its values."""
    several = (c for c in PROTOCOL if c in trials and trials[c].nunique(dropna=False) > 1)
    return {c: trials[c].unique().tolist() for c in several}


def ladders(curves: pd.DataFrame) -> dict[str, list[float]]:
    """The goals of every curve of a table with `curve` (its name) and workload, the hardest first."""
    return {name: list(workload(w).goals) for name, w in zip(curves.curve, curves.workload)}


def curve_names(frame: pd.DataFrame) -> list[str]:
    """The workload's title and the algorithm of every row."""
    titles = {name: workload(name).title for name in frame.workload.unique()}
    return [f"{titles[name]}, {named(algorithm)}" for name, algorithm in zip(frame.workload, frame.algorithm)]


def of_sizes(trials: pd.DataFrame, least: int) -> pd.DataFrame:
    """The trials of curves that are measured at so many batch sizes."""
    return trials[trials.groupby(CURVE).batch_size.transform("nunique") >= least] if len(trials) else trials


def on_ladder(curves: pd.DataFrame) -> pd.DataFrame:
    """The curves of `all_goals` with `place`, that of the goal on its workload's ladder: 0 for the hardest."""
    return curves.assign(place=[workload(name).goals.index(g) for name, g in zip(curves.workload, curves.goal)])


def across_replicates(curve: pd.DataFrame) -> pd.DataFrame:
    """Replicates of a cell joined: steps (median), low, high (range), replicates (count of those that met the goal)."""
    keys = [c for c in CELL if c in curve and c not in SAME] + ["goal"]
    grouped = curve[curve.steps.notna()].groupby(keys, dropna=False).steps
    joined = grouped.agg(["median", "min", "max", "count"]).reset_index()
    return joined.rename(columns={"median": "steps", "min": "low", "max": "high", "count": "replicates"})


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
    _, searches = _grouped(cells, ["replicate"], *columns, "last_step")
    found = []
    for *search, last in searches:
        steps = np.fmin(np.stack(search, 1), last.max())  # [trials, columns]
        ranks = random.random((draws, len(steps))).argsort(1)
        found.append(steps[ranks[:, : _half(len(steps))]].min(1))
    return np.array(found)[random.integers(len(found), size=draws), np.arange(draws)]


@dataclass(frozen=True)
class Regimes:
    """Where one curve changes regime, in batch sizes (examples).

    start: the smallest size whose total of examples is within the tolerance of the least; perfect_end: the largest
    size up to which scaling is perfect; useful_end: the smallest size from which on the steps stay within the
    tolerance of the least.  leaves_perfect: whether a larger size than perfect_end was measured; reaches_plateau:
    whether at least two sizes lie on the floor, without which useful_end is only a lower bound; rises: whether the
    largest size takes more steps than the least by more than the tolerance.
    """

    start: float
    perfect_end: float
    useful_end: float
    leaves_perfect: bool
    reaches_plateau: bool
    rises: bool


def regimes(curve: pd.DataFrame) -> Regimes:
    """The regimes of one curve (batch_size, steps) by the operational definitions of this book.

    Let B0 be the smallest size whose examples B K*(B) are at most 1 + TOLERANCE times the least.  Scaling is perfect
    at B if K*(B) <= (1 + TOLERANCE) K*(B0) B0 / B there and at every size from B0 on.
    Raises ValueError if a batch size stands twice or no cell met the goal.
    """
    curve = _one_curve(curve)
    b, k = curve.batch_size.to_numpy(float), curve.steps.to_numpy(float)
    start = np.argmax(b * k <= (1 + TOLERANCE) * (b * k).min())
    perfect = np.logical_and.accumulate((b * k <= (1 + TOLERANCE) * b[start] * k[start])[start:])
    end = b[start:][perfect].max()
    floor = np.logical_and.accumulate((k <= (1 + TOLERANCE) * k.min())[::-1])[::-1]
    useful = b[np.argmax(floor)] if floor.any() else b[-1]
    return Regimes(b[start], end, useful, bool(end < b[-1]), bool(floor.sum() >= 2), not floor.any())


def _one_curve(curve: pd.DataFrame) -> pd.DataFrame:
    curve = curve[curve.steps.notna()].sort_values("batch_size")
    if curve.batch_size.duplicated().any() or curve.empty:
        raise ValueError(
            f"curve: {len(curve)} rows with {curve.batch_size.nunique()} batch sizes; one row per size is needed"
        )
    return curve


def label(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves with `regime`, local `slope` (d log2 K* / d log2 B from the size before) and `perfect` (steps if scaling
    had stayed perfect from the smallest size), for every curve in the table."""
    keys = [c for c in CELL if c in curves and c not in ("batch_size", "hits")] + ["goal"]
    return pd.concat([_label_one(_one_curve(c)) for _, c in curves.groupby(keys, dropna=False)], ignore_index=True)


def _label_one(curve: pd.DataFrame) -> pd.DataFrame:
    found, b, k = regimes(curve), curve.batch_size, curve.steps
    regime = np.select([b < found.start, b <= found.perfect_end], [BEFORE, PERFECT], DIMINISHING)
    if found.reaches_plateau:
        regime = np.where((b >= found.useful_end) & (b > found.perfect_end), MAXIMAL, regime)
    slope = np.log2(k).diff() / np.log2(b).diff()
    return curve.assign(regime=regime, slope=slope, perfect=k.iloc[0] * b.iloc[0] / b)


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
    _, searches = _grouped(reached(_slim(trials)), [*CURVE, "batch_size", "replicate"], "steps", "last_step")
    logs = [(np.log(steps), chances) for steps, chances in itertools.starmap(_best_of, searches)]
    shown = np.mean([p @ (log - p @ log) ** 2 for log, p in logs]) if logs else np.nan
    return float(np.sqrt(max(0, scatter(steps_to_result(trials)) ** 2 - shown)))


def _best_of(steps: np.ndarray, last: np.ndarray, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What the best of k of a cell's trials may take, k by default half of them, in steps, and how likely: [n] each.

    steps, last: to the goal, and followed, of every trial.  What the cell has not seen counts as its last step.
    """
    chances = best_of_k_pmf(len(steps), _half(len(steps)) if k is None else k)
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
    first, cells = _grouped(trials, ["batch_size", "replicate"], "steps", "last_step")
    for batch_size, own in itertools.groupby(zip(first.batch_size, cells), operator.itemgetter(0)):
        own = [cell for _, cell in own]
        found = [_best_of(*cell, k) for cell in own]
        replicates = [random.choice(steps, size=draws, p=chances) for steps, chances in found]
        columns[batch_size] = np.array(replicates)[random.integers(len(replicates), size=draws), np.arange(draws)]
        whole = len(own[-1][0]) >= WHOLE[0] and np.isfinite(own[-1][0]).sum() >= WHOLE[1]
        if len(replicates) == 1 and not whole:
            columns[batch_size] *= np.exp(widened * random.standard_normal(draws))
    return pd.DataFrame(columns)


def regime_intervals(trials: pd.DataFrame, goal: float, draws: int = 1000) -> dict:
    """5 to 95 % ranges of perfect_end and useful_end over `resampled` curves: name -> (low, high)."""
    curves = resampled(trials, goal, draws=draws)
    perfect, useful, _ = _regime_ends(curves.columns.to_numpy(float), curves.to_numpy())
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


@dataclass(frozen=True)
class Hyperbola:
    """K* = c1 / B + c2: c1 in examples, c2 in steps, critical = c1 / c2 in examples (the bend), r2 in log space.

    residual: the factor by which points lie off, root mean square in log space; unlike r2 it does not reward steep curves.
    identified: whether the bend lies inside the measured range; outside, one of the constants is only bounded.
    """

    c1: float
    c2: float
    r2: float
    residual: float
    identified: bool

    @property
    def critical(self) -> float:
        return self.c1 / self.c2

    def predict(self, batch_size: np.ndarray) -> np.ndarray:
        """Steps to result [n] at these batch sizes [n]."""
        return self.c1 / np.asarray(batch_size, float) + self.c2


def by_chance(curves: Sequence[pd.DataFrame]) -> float:
    """The factor by which the bends of these `resampled` curves would differ at most, 19 times out of 20, if they were one.

    As where bends are compared, those outside the batch sizes measured do not count; NaN if no draw has any inside.
    """
    bends = (redrawn(drawn).critical.where(lambda c, b=drawn.columns: c.between(b.min(), b.max())) for drawn in curves)
    logs = np.log(np.stack(list(bends)))
    apart = pd.DataFrame(logs - pd.DataFrame(logs).median(axis=1).to_numpy()[:, None])
    return float(np.exp((apart.max() - apart.min()).quantile(0.95, interpolation="nearest")))


def check_points(b: np.ndarray, k: np.ndarray) -> None:
    """Raise ValueError unless batch sizes b and steps k are equally many, positive and finite."""
    for name, values in (("batch_size", b), ("steps", k)):
        wrong = values[~(np.isfinite(values) & (values > 0))]
        if wrong.size:
            raise ValueError(f"{name}: {wrong[0]:g} is not allowed; every value must be positive and finite")
    if len(k) != len(b):
        raise ValueError(f"steps: {len(k)} values for {len(b)} batch sizes are not allowed; one for each is needed")


def fit_hyperbola(batch_size: np.ndarray, steps: np.ndarray) -> Hyperbola:
    """Least squares on log steps of the curve that SGD theory gives (Bottou et al. 2018; McCandlish et al. 2018).

    batch_size, steps: [n], n >= 3.  Raises ValueError for fewer points, for lengths that differ, and for a
    batch size or steps that are not positive and finite: a cell that missed the goal has no place in the fit.
    """
    b, k = np.asarray(batch_size, float), np.asarray(steps, float)
    if len(b) < 3:
        raise ValueError(f"batch_size: {len(b)} points are not enough for two constants; at least 3 are needed")
    check_points(b, k)

    def residuals(p):
        return np.logaddexp(p[0] - np.log(b), p[1]) - np.log(k)

    start = [np.log(k[b.argmin()] * b.min()), np.log(k.min())]
    p = leastsq(residuals, start)[0]
    spread = np.sum((np.log(k) - np.log(k).mean()) ** 2)
    r2 = 1 - np.sum(residuals(p) ** 2) / spread if spread > 0 else np.nan
    off = float(np.exp(np.sqrt(np.mean(residuals(p) ** 2))))
    c1, c2 = np.exp(p)
    return Hyperbola(c1, c2, r2, off, bool(b.min() < c1 / c2 < b.max()))


REDRAWN = ["perfect_end", "useful_end", "c1", "c2", "critical"]


def redrawn(curves: pd.DataFrame) -> pd.DataFrame:
    """What each `resampled` curve [draws, batch sizes] says, a row each: perfect_end, useful_end, c1, c2, critical.

    critical is inf for a draw without a floor.
    """
    b, k = curves.columns.to_numpy(float), curves.to_numpy()
    perfect, useful, _ = _regime_ends(b, k)
    c1, c2 = _hyperbolas(b, k)
    with np.errstate(divide="ignore"):
        return pd.DataFrame({"perfect_end": perfect, "useful_end": useful, "c1": c1, "c2": c2, "critical": c1 / c2})


def _regime_ends(b: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """perfect_end, useful_end and whether all three regimes are there [draws], as `regimes` and `all_three` find them.

    b: sizes [n] (increasing); k: steps [draws, n].
    """
    examples = b * k
    start = np.argmax(examples <= (1 + TOLERANCE) * examples.min(1, keepdims=True), axis=1)
    base = np.take_along_axis(examples, start[:, None], 1)
    before = np.arange(len(b)) < start[:, None]
    perfect = np.logical_and.accumulate(before | (examples <= (1 + TOLERANCE) * base), axis=1)
    floor = np.logical_and.accumulate((k <= (1 + TOLERANCE) * k.min(1, keepdims=True))[:, ::-1], axis=1)[:, ::-1]
    useful = np.where(floor.any(1), b[np.argmax(floor, axis=1)], b[-1])
    end = b[len(b) - 1 - np.argmax(perfect[:, ::-1], axis=1)]
    return end, useful, (end > b[start]) & (end < b[-1]) & (floor.sum(1) >= 2)


def all_three(summary: pd.DataFrame) -> pd.Series:
    """Which curves of `summaries` show all three regimes: perfect scaling over two sizes, an end to it, a floor of two."""
    return (summary.perfect_end > summary.start) & summary.leaves_perfect & summary.reaches_plateau


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
        trend, power = (_regime_ends(b, np.exp(k + off))[2].mean() for k in (np.log(r.c1 / b + r.c2), line))
        rows.append((1.0 if r.sizes >= LONG and not r.identified else trend, power))
    return pd.DataFrame(rows, columns=["trend", "power"], index=summary.index)


def _hyperbolas(b: np.ndarray, k: np.ndarray, points: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """c1 and c2 [draws] of `fit_hyperbola` for sizes b [n] and steps k [draws, n], by a search over the bend alone.

    For a given bend the best c2 is a mean of logarithms; the best bend is sought on a grid and refined by a parabola.
    A curve that is best with its bend at an end of the grid shows no floor (c2 = 0) or no noise term (c1 = 0).
    """
    bends = np.linspace(np.log(b.min()) - FAR, np.log(b.max()) + FAR, points)
    shape = np.logaddexp(0, bends[:, None] - np.log(b))  # [points, n]
    logs = np.log(k)
    # The sum of squares of (log k - shape) about its mean, for every draw and bend, without the [draws, points, n] array.
    centred, flat = logs - logs.mean(1, keepdims=True), shape - shape.mean(1, keepdims=True)
    loss = (flat**2).sum(1) - 2 * centred @ flat.T
    at = loss.argmin(1).clip(1, points - 2)
    left, centre, right = (loss[np.arange(len(k)), at + d] for d in (-1, 0, 1))
    curvature = np.maximum(left - 2 * centre + right, 1e-12)
    bend = bends[at] + np.clip(0.5 * (left - right) / curvature, -1, 1) * (bends[1] - bends[0])
    c2 = np.exp((logs - np.logaddexp(0, bend[:, None] - np.log(b))).mean(1))
    straight, flat = (loss.argmin(1) == end for end in (points - 1, 0))
    return np.where(flat, 0, c2 * np.exp(bend)), np.where(straight, 0, c2)


CURVE = ["workload", "algorithm", "pruning", "sparsity"]
SMALLEST, DENSEST = "its smallest batch", "the dense network"  # by what `relative` divides


def cut_short(trials: pd.DataFrame, n: int, hits: int) -> pd.DataFrame:
    """The table as searches of the first n trials would have left it that end once so many have met the goal."""
    cut = trials[trials.trial < n]
    ranks = cut.groupby([*CURVE, "batch_size", "replicate"]).steps
    end = cut.steps.where(ranks.rank(method="first") == hits).groupby([cut[k] for k in ranks.keys]).transform("max")
    last = end.fillna(cut.last_step)
    met = {c: cut[c].where(cut[c] <= last) for c in cut if c == "steps" or c.startswith("steps@")}
    return cut.assign(**met, last_step=last, trials=n)


def covered(short: pd.DataFrame, full: pd.DataFrame, name: str = "critical") -> pd.Series:
    """Whether the range of a curve in one table of `summaries` holds the value of the same curve in another."""
    both = short.merge(full, on=CURVE, suffixes=("", "_full"))
    return (both[f"{name}_low"] <= both[f"{name}_full"]) & (both[f"{name}_full"] <= both[f"{name}_high"])


def reached(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials without the cells of which none met the goal."""
    return trials[trials.groupby([*CURVE, "batch_size", "replicate"]).steps.transform("count") > 0]


def summaries(trials: pd.DataFrame, draws: int = 500, widened: float = UNSEEN) -> tuple[pd.DataFrame, dict]:
    """Every curve with at least three batch sizes on one row, at its workload's goal, and its draws by the same key.

    Columns: those of CURVE, sizes and replicates (counts), start, perfect_end, useful_end, leaves_perfect,
    reaches_plateau (as `Regimes`, of the median over replicates), c1, c2, critical, r2, identified (as `Hyperbola`), and
    for all five of `redrawn` name_low and name_high, their 5 and 95 % quantiles.  draws: (workload, ...) -> `resampled`.
    Raises ValueError if the trials of a curve are of several protocols.
    """
    rows, drawn, ends = [], {}, [f"{n}_{end}" for n in REDRAWN for end in ("low", "high")]
    trials = _slim(trials)
    for key, cells in trials.groupby(CURVE) if len(trials) else ():
        for name, values in mixed(cells).items():
            raise ValueError(f"{name}: {values} are not allowed on one curve, {key}; choose one")
    trials = of_sizes(reached(trials), 3) if len(trials) else trials
    curves = across_replicates(steps_to_result(trials)).groupby(CURVE) if len(trials) else None
    for key, cells in trials.groupby(CURVE) if len(trials) else ():
        curve = curves.get_group(key)
        drawn[key] = resampled(cells, cells.goal.iloc[0], None, draws, widened)
        own = redrawn(drawn[key])
        fit = fit_hyperbola(curve.batch_size, curve.steps)
        rows.append({
            **dict(zip(CURVE, key)), "sizes": len(curve), "replicates": int(cells.replicate.nunique()),
            **vars(regimes(curve)), **vars(fit), "critical": fit.critical,
            **{f"{n}_{end}": v for n in own for end, v in zip(("low", "high"), span_of(own[n]))},
        })  # fmt: skip
    known = [f.name for f in (*fields(Regimes), *fields(Hyperbola))]
    return pd.DataFrame(rows, columns=[*CURVE, "sizes", "replicates", *known, "critical", *ends]), drawn


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
    return beside(drawn, _dense, name)


def steps_over_dense(drawn: dict) -> pd.DataFrame:
    """Steps of every sparse curve of `summaries` over the dense network's, a row per batch size that both have.

    Columns: those of CURVE, batch_size, ratio (median), ratio_low, ratio_high (5 and 95 %) and draws (of it).
    """
    rows = []
    for key, curves in drawn.items():
        dense = drawn.get(_dense(key), pd.DataFrame())
        for b in curves.columns.intersection(dense.columns) if key[3] > 0 else ():
            ratio = (curves[b] / dense[b]).to_numpy()
            rows.append({**dict(zip(CURVE, key)), "batch_size": b, **ranged("ratio", ratio), "draws": ratio})
    return pd.DataFrame(rows, columns=[*CURVE, "batch_size", "ratio", "ratio_low", "ratio_high", "draws"])


def unmet(trials: pd.DataFrame) -> int:
    """How many points of sparse curves have no search of which a trial met the goal."""
    sparse = trials[trials.sparsity > 0] if len(trials) else trials
    return int((sparse.groupby([*CURVE, "batch_size"]).steps.count() == 0).sum()) if len(sparse) else 0


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
    return middle([ratios(drawn[key], drawn[_dense(key)], name) for key in keys])


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


def _dense(key: tuple) -> tuple:
    return (*key[:3], 0.0)


def sparsest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows at the highest sparsity of their workload and algorithm."""
    return rows[rows.sparsity == rows.groupby(["workload", "algorithm"]).sparsity.transform("max")]


def missed(curves: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """The cells in which no trial met the goal, with `predicted`: their steps by the line fitted to the rest of the curve.

    curves: of `steps_to_result`.  predicted is missing where the curve has no line.
    """
    lost = curves[curves.steps.isna()].merge(summary[[*CURVE, "c1", "c2"]], on=CURVE, how="left")
    return lost.assign(predicted=lost.c1 / lost.batch_size + lost.c2)


def on_one_line(curves: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Points over their curve's bend (x) and floor (y), and `off`, |log2| of their distance from 1 + 1/x."""
    points = curves.merge(summary, on=CURVE)
    points = points.assign(x=points.batch_size / points.critical, y=points.steps / points.c2)
    return points.assign(off=np.log2(points.y / (1 + 1 / points.x)).abs())
