"""Training without backpropagation: searches beside backpropagation's, and how fast flips bring a readout's error down."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib import require_number
from lib.analysis import evidence, method_results, scaling

BASE = "sgd"  # with backpropagation
ARMS = {"lra": "β = 0.1", "lra-1": "β = 1"}  # what the papers' claims speak of, the authors' own first
FOLDS = 3  # e-folds after which a run has converged: 95 % of the way to its floor
KINDS = {False: "features as they are", True: "uncorrelated features"}
READOUT = ["features", "batch_size", "flips", "take", "whitened"]


# --- errors passed back by other ways -----------------------------------------------------------------------------------


def sooner(drawn: dict) -> pd.DataFrame:
    """Steps with backpropagation over those with each arm, the geometric mean over batch sizes, of the searches of both.

    drawn: of `scaling.summaries`.  A table of `lib.analysis.evidence`; arms that lack searches are left out.
    """
    found = {name: method_results.ratios(drawn, BASE, arm, method_results.at_ends(0)) for arm, name in ARMS.items()}
    effects = evidence.pooled((name, list(own.values())) for name, own in found.items() if own)
    searches = {ARMS[key[1]]: len(curve.logs) for key, curve in drawn.items() if key[1] in ARMS}
    return effects.assign(n=[searches[name] for name in effects.name])


def ended(trials: pd.DataFrame) -> pd.DataFrame:
    """Test errors, a row per search (replicate) and a column per method: of the trial whose validation error is lowest.

    trials: run to their budget, as of `lib.records.results.read`.  Of equal ones the mean.
    """
    last = max((column for column in trials if column.startswith("test@")), key=lambda name: int(name[5:]))
    best = trials[trials.best_error == trials.groupby(["algorithm", "replicate"]).best_error.transform("min")]
    return best.groupby(["replicate", "algorithm"])[last].mean().unstack()


def lost(trials: pd.DataFrame) -> pd.DataFrame:
    """By arm, points of test error beyond backpropagation's on the same split: mean, and Student's t over searches (90 %)."""
    errors = ended(trials) if len(trials) else pd.DataFrame()
    rows = []
    for arm, name in ARMS.items():
        points = 100 * (errors[arm] - errors[BASE]).dropna() if {arm, BASE} <= set(errors) else pd.Series(dtype=float)
        if len(points) > 1:
            rows.append((name, *interval(points), len(points)))
    return evidence.table(rows)


def interval(values: Iterable[float]) -> tuple[float, float, float]:
    """The mean and its 90 % interval by Student's t; NaN ends for a single value."""
    values = np.asarray(list(values), float)
    middle = float(values.mean())
    if len(values) < 2:
        return middle, np.nan, np.nan
    reach = stdtrit(len(values) - 1, 0.95) * values.std(ddof=1) / len(values) ** 0.5
    return middle, float(middle - reach), float(middle + reach)


# --- readouts that are flipped ------------------------------------------------------------------------------------------


def excess(runs: pd.DataFrame) -> pd.DataFrame:
    """The training error's excess over where a run ends, over that at its start: [steps, replicates], of one setting."""
    errors = runs.pivot(index="step", columns="replicate", values="training")
    return (errors - errors.iloc[-1]) / (errors.iloc[0] - errors.iloc[-1])


def folds(runs: pd.DataFrame, count: int = FOLDS, draws: int = 400, seed: int = 0) -> np.ndarray:
    """Steps at which the mean excess of the runs has fallen by 1 ... count e-folds, [1 + draws, count].

    The first row is of all runs, the others of resampled ones.  On straight lines between the logarithms of the excess.
    """
    own = excess(runs)
    steps, values = own.index.to_numpy(float), own.to_numpy()
    picks = np.random.default_rng(seed).integers(values.shape[1], size=(draws, values.shape[1]))
    means = [values.mean(1), *(values[:, pick].mean(1) for pick in picks)]
    return np.array([[_reached(steps, np.log(np.maximum(m, 1e-12)), -n) for n in range(1, count + 1)] for m in means])


def _reached(steps: np.ndarray, logs: np.ndarray, level: float) -> float:
    """Where logs [n] first fall to the level, between the steps [n] measured; NaN if they do not."""
    below = np.flatnonzero(logs <= level)
    if not len(below):
        return np.nan
    at = below[0]
    return float(np.interp(-level, -logs[at - 1 : at + 1], steps[at - 1 : at + 1])) if at else float(steps[0])


def convergence(table: pd.DataFrame) -> pd.DataFrame:
    """Of runs that judge one flip a step on all examples, a row per number of features and kind.

    table: of `lib.systems.boolean_readout.results`.  Columns: features, whitened, kind, first, steps (to one e-fold, and to
    FOLDS), slower (steps of the last e-fold over those of the first), and for the latter two name_low and name_high (5, 95 %).
    """
    rows = []
    for (features, whitened), own in _singly(table).groupby(["features", "whitened"], sort=True):
        found = folds(own)
        slower = (found[:, -1] - found[:, -2]) / found[:, 0]
        ends = {name: scaling.ranged(name, values[1:]) for name, values in (("steps", found[:, -1]), ("slower", slower))}
        rows.append({"features": int(features), "whitened": bool(whitened), "kind": KINDS[bool(whitened)], "first": found[0, 0],
                     **ends["steps"], **ends["slower"], "steps": found[0, -1], "slower": slower[0]})  # fmt: skip
    return pd.DataFrame(rows)


def _singly(table: pd.DataFrame) -> pd.DataFrame:
    """Runs of one flip a step on all examples."""
    return table[(table.flips == 1) & (table.batch_size == table.batch_size.max())] if len(table) else table


def straightness(table: pd.DataFrame) -> pd.DataFrame:
    """By kind of features, steps of the last e-fold over those of the first, either way, the median over numbers of features.

    An exponential has 1.  A table of `lib.analysis.evidence`.
    """
    found = {kind: [] for kind in KINDS.values()}
    for (_, whitened), own in _singly(table).groupby(["features", "whitened"], sort=True) if len(table) else ():
        steps = folds(own)[1:]
        found[KINDS[bool(whitened)]].append((steps[:, -1] - steps[:, -2]) / steps[:, 0])
    return evidence.folded(evidence.pooled((kind, draws) for kind, draws in found.items() if draws))


def growth(table: pd.DataFrame, fold: int = FOLDS) -> pd.DataFrame:
    """By kind, the power of the number of features with which steps to so many e-folds grow: a line through the logarithms.

    Columns: kind, power, low, high (5 and 95 % over resampled runs), least, most (features), n (numbers of features).  Linear
    growth is a power of 1.
    """
    rows = []
    for whitened, own in _singly(table).groupby("whitened", sort=True) if len(table) else ():
        sizes = sorted(own.features.unique())
        logs = np.log([folds(own[own.features == n], seed=n)[:, fold - 1] for n in sizes])  # [features, draws]
        powers = np.polyfit(np.log(sizes), logs, 1)[0] if len(sizes) > 1 else np.full(logs.shape[1], np.nan)
        rows.append((KINDS[bool(whitened)], powers[0], *scaling.span_of(powers[1:]), sizes[0], sizes[-1], len(sizes)))
    return pd.DataFrame(rows, columns=["kind", "power", "low", "high", "least", "most", "n"])


def off_linear(table: pd.DataFrame) -> pd.DataFrame:
    """By kind, the factor, either way, by which steps per feature change from the fewest features to the most, on that line."""
    powers = growth(table)
    wide = np.log(powers.most / powers.least)
    ends = [np.exp((powers[name] - 1) * wide) for name in ("power", "low", "high")]
    return evidence.folded(evidence.table(zip(powers.kind, *ends, powers.n, strict=True)))


def to_goal(table: pd.DataFrame, goal: float, column: str = "validation") -> pd.DataFrame:
    """Steps to the first check at which an error is at most the goal, a row per setting.

    Columns: those of READOUT, runs, met (how many), steps (geometric mean; NaN unless all met it), low, high (90 %, Student's t
    on logarithms).  Raises ValueError for a goal that is no positive number.
    """
    require_number("goal", goal, lambda v: 0 < v < np.inf, "a positive finite number")
    rows = []
    for key, own in table.groupby(READOUT, sort=True) if len(table) else ():
        first = own[own[column] <= goal].groupby("replicate").step.min().clip(lower=1)
        runs = own.replicate.nunique()
        ends = np.exp(interval(np.log(first))) if len(first) == runs else (np.nan,) * 3
        rows.append((*key, runs, len(first), *ends))
    return pd.DataFrame(rows, columns=[*READOUT, "runs", "met", "steps", "low", "high"])
