"""Training methods side by side: how each one's curve lies to another's, by the steps and by the time that they take."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd

from lib.analysis import evidence, rate_rules, scaling
from lib.methods import method as known_method
from lib.records import on_record, results, store
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload

BASE = "sgd"  # by which ratios of methods divide
QUANTITIES = ("critical", "c1", "c2")
ENDS = 2  # batch sizes at either end of a curve that count as the smallest, or the largest
SEVERAL = 3  # searches from which on a claim is judged
KEPT, HELD = "square-root rule", "square root, β₂ too"  # rules for Adam's rate that keep beta2, or its half-life
TRIES = 5  # trials that a small budget allows (AlgoPerf's)


def compared(*more: Study) -> pd.DataFrame:
    """All trials on record of the networks that were searched with many methods, and of `more`, a table as `results.read`."""
    studies = [plans.study(name) for name in plans.WHICH]
    names = {cell.workload for study in (*studies, *more) for cell in study.cells}
    every = on_record.gathered(*studies, *more, **plans.USUAL)
    lacking = {cell: None for study in studies for cell in results.missing(study)}
    found = results.read(Study("compared", "Training methods", tuple(c for c in every.cells if c.workload in names)))
    found.attrs.update(missing=store.Shared(lacking), cells_planned=len(every.cells) + len(lacking))
    return found


def grid(name: str, batch_sizes: Iterable[int], methods: Iterable[str], searches: int, trials: int) -> Study:
    """So many searches by every method at every batch size of the dense network called `name`, each on a split of its own.

    SGD, by which ratios divide, is always one of the methods.  Searches that the book plans come first and are taken as they
    are planned; an own workload has one split.
    Raises ValueError as `lib.studies.cells.Cell`.
    """
    planned = [c for study in plans.WHICH for c in plans.study(study).cells if c.workload == name and not c.sparsity]
    known = {(c.algorithm, c.batch_size, c.replicate): c for c in planned if c.trials == trials}
    first = min((c.replicate for c in planned), default=1)
    split = not workload(name).source and any(c.split for c in planned)
    cells = [
        known.get((method, size, n)) or Cell(name, size, method, trials=trials, replicate=n, split=n * split, hits=1)
        for n in range(first, first + searches)
        for size in batch_sizes
        for method in dict.fromkeys((BASE, *methods))
    ]
    return Study(name, workload(name).title, tuple(cells))


def title(name: str) -> str:
    """A method as pages spell it; a reader's own by the title that its file gives."""
    return known_method(name).title


def unmeasured(trials: pd.DataFrame, methods: Iterable[str]) -> list[str]:
    """Of these methods, those of which no trial is on record."""
    known = set(trials.algorithm) if len(trials) else set()
    return [name for name in methods if name not in known]


def over(drawn: dict, base: str = BASE) -> pd.DataFrame:
    """Every curve beside that of the base method on the same network: a row per curve and quantity.

    drawn: of `scaling.summaries`.  Columns: those of CURVE, sizes (batch sizes shared), what ("critical", "c1" or "c2"),
    ratio (median), ratio_low, ratio_high (5 and 95 %), searches (of the curve).
    """
    parts = [scaling.beside(drawn, lambda key: (key[0], base, *key[2:]), name).assign(what=name) for name in QUANTITIES]
    found = pd.concat(parts, ignore_index=True)
    found["searches"] = [len(drawn[key].logs) for key in found[scaling.CURVE].itertuples(index=False, name=None)]
    return found


def everywhere(compared: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods with SEVERAL searches on every network of which any method has them; of one search, where none has.

    compared: as of `over`.
    """
    several = compared[compared.searches >= SEVERAL]
    rows = several if len(several) else compared
    return rows[rows.groupby("algorithm").workload.transform("nunique") == rows.workload.nunique()]


def in_order(measured: dict[str, float], predicted: dict[str, float]) -> tuple[int, int]:
    """How many pairs of methods lie in the predicted order, and how many of those measured the prediction tells apart."""
    both = [name for name in measured if name in predicted]
    told = [(a, b) for a, b in itertools.combinations(both, 2) if predicted[a] != predicted[b]]
    agree = [(measured[a] < measured[b]) == (predicted[a] < predicted[b]) for a, b in told]
    return sum(agree), len(told)


def ratios(drawn: dict, above: str, below: str, of: Callable[[scaling.Curve, scaling.Curve], np.ndarray]) -> dict:
    """`of` the curves of two methods on every dense network with SEVERAL searches of both: workload -> draws."""
    found = {}
    for (work, method, *rest), curve in drawn.items():
        other = drawn.get((work, below, *rest))
        if method == above and other is not None and not rest[-1] and min(map(_searches, (curve, other))) >= SEVERAL:
            if len(values := of(curve, other)):
                found[work] = values
    return found


def _searches(curve: scaling.Curve) -> int:
    return len(curve.logs.dropna(how="all"))


def critical(above: scaling.Curve, below: scaling.Curve) -> np.ndarray:
    """The critical batch size of one curve over that of another, [draws]."""
    return scaling.ratios(above, below, "critical")


def at_ends(end: int) -> Callable[[scaling.Curve, scaling.Curve], np.ndarray]:
    """Steps of one curve over another's, the geometric mean over the ENDS smallest (end -1), or largest (1), batch sizes of both.

    0: over all.  Of curves that share fewer than three batch sizes, nothing.
    """
    places = {-1: slice(None, ENDS), 0: slice(None), 1: slice(-ENDS, None)}[end]

    def steps(above: scaling.Curve, below: scaling.Curve) -> np.ndarray:
        shared = scaling.steps_ratio(above, below).sort_index(axis=1)
        return np.exp(np.log(shared.iloc[:, places]).mean(axis=1)).to_numpy() if shared.shape[1] >= 3 else np.empty(0)

    return steps


def at_size(batch_size: int) -> Callable[[scaling.Curve, scaling.Curve], np.ndarray]:
    """Steps of one curve over another's at one batch size, [draws]; nothing where they are not compared there."""

    def steps(above: scaling.Curve, below: scaling.Curve) -> np.ndarray:
        return scaling.steps_ratio(above, below).get(batch_size, pd.Series(dtype=float)).to_numpy()

    return steps


def growth(above: scaling.Curve, below: scaling.Curve) -> np.ndarray:
    """By what factor the ratio of steps grows from the smallest batch sizes to the largest, [draws]."""
    small, large = (at_ends(end)(above, below) for end in (-1, 1))
    return large / small


def by_network(found: dict) -> pd.DataFrame:
    """A table of `lib.analysis.evidence` with a row per network."""
    return evidence.pooled((evidence.title(work), [draws]) for work, draws in found.items())


def by_pair(groups: dict[str, dict]) -> pd.DataFrame:
    """A table of `lib.analysis.evidence` with a row per name, the median over its networks; empty unless all are measured."""
    whole = all(groups.values())
    return evidence.pooled((name, list(found.values())) for name, found in groups.items() if whole)


# --- fewer trials -----------------------------------------------------------------------------------------------------


def with_few_trials(trials: pd.DataFrame, tries: int = TRIES) -> pd.DataFrame:
    """What a search of so few trials would have found, by network, method and batch size.

    A search that ended early knows its fastest trials alone, so every network and sparsity is read at the hardest goal at
    which, for all its methods, most searches of most batch sizes know.  Columns: workload, algorithm, sparsity, batch_size,
    goal, steps (median over searches of the median of a search of so few), least (of whole searches), searches.  Networks
    without such a goal are left out.
    """
    parts = [part for _, own in trials.groupby(["workload", "sparsity"], sort=False) if (part := _with_few(own, tries)) is not None]
    columns = ["workload", "algorithm", "sparsity", "batch_size", "goal", "steps", "least", "searches"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _with_few(own: pd.DataFrame, tries: int) -> pd.DataFrame | None:
    keys = ["workload", "algorithm", "sparsity", "batch_size"]
    for goal in scaling.goals(own):
        searches = own.groupby([*keys, *scaling.SEARCH])[f"steps@{goal:g}"]
        few = searches.agg(steps=lambda steps: _median(steps.to_numpy(), tries), least="min").reset_index()
        points = few.groupby(keys)[["steps", "least"]].median().assign(searches=few.groupby(keys).size()).reset_index()
        known = np.isfinite(points.steps).groupby(points.algorithm).mean()
        if len(known) and known.min() > 0.5:
            return points[np.isfinite(points.steps)].assign(goal=goal)
    return None


def _median(steps: np.ndarray, tries: int) -> float:
    """Of the best of so many of a search's trials; inf where the search ended before it is known."""
    return float(scaling.best_of_k(steps, min(tries, len(steps)))[1])


# --- time -------------------------------------------------------------------------------------------------------------


def in_time(drawn: dict, times: pd.DataFrame, base: str = BASE) -> pd.DataFrame:
    """Steps and time of every dense curve over those of the base method, a row per batch size that both have.

    times: workload, algorithm, batch_size, ratio (seconds of a step over the base method's), as `step_times.over_sgd` gives
    them; between and beyond the batch sizes timed, the ratio is interpolated on the logarithm of the size, or kept.
    Columns: workload, algorithm, batch_size, steps, steps_low, steps_high (ratios: median, 5, 95 %), dearer (a step's time
    over the base's), time, time_low, time_high.  Curves whose steps were not timed are left out.
    """
    rows = [_timed(work, method, size, size, dearer, draws)
            for work, method, dearer, ratios in _both(drawn, times, base) for size, draws in ratios.items()]  # fmt: skip
    return pd.DataFrame(rows, columns=TIMED)


def shared_out(drawn: dict, times: pd.DataFrame, base: str = BASE) -> pd.DataFrame:
    """A network's largest batch size by all its methods that were timed, shared by devices: a row for each share that was timed.

    Networks without one are left out.  A device makes the whole update, beside the gradient of its share alone; what it sends
    is left out.  Columns: as those of `in_time`, and share (examples on each device), at which `dearer` is read.
    """
    pairs, common = list(_both(drawn, times, base)), {}
    for work, _, _, ratios in pairs:
        common[work] = common.get(work, set(ratios.columns)) & set(ratios.columns)
    rows = [_timed(work, method, size, share, dearer, ratios[size])
            for work, method, dearer, ratios in pairs if common[work]
            for size in (max(common[work]),)
            for share in dearer.index[dearer.index <= size]]  # fmt: skip
    return pd.DataFrame(rows, columns=[*TIMED[:3], "share", *TIMED[3:]])


TIMED = ["workload", "algorithm", "batch_size", "dearer", "steps", "steps_low", "steps_high", "time", "time_low", "time_high"]


def quickest(timed: pd.DataFrame, common: pd.DataFrame) -> pd.DataFrame:
    """Of methods measured everywhere, the one that takes the least time at each network's largest batch size: a row per network.

    timed: of `in_time`; common: of `everywhere`.  Columns: workload, algorithm, batch_size, time (over the base method's), rivals
    (how many others, the base among them).  The base itself where no method takes less time.
    """
    own = timed.merge(common[["workload", "algorithm"]].drop_duplicates())
    last = own[own.batch_size == own.groupby("workload").batch_size.transform("max")]
    rivals = last.groupby("workload").algorithm.transform("size")
    least = last.assign(rivals=rivals).sort_values("time", kind="stable").drop_duplicates("workload")
    slow = least.time >= 1
    least = least.assign(algorithm=least.algorithm.mask(slow, BASE), time=least.time.mask(slow, 1.0))
    return least[["workload", "algorithm", "batch_size", "time", "rivals"]].reset_index(drop=True)


def on_every_network(least: pd.DataFrame) -> str | None:
    """The one method that all rows of `quickest` name, if they agree on one and it is not the base."""
    names = {*least.algorithm}
    return names.pop() if len(names) == 1 and BASE not in names else None


def _both(drawn: dict, times: pd.DataFrame, base: str) -> Iterator[tuple]:
    """Dense curves whose steps were timed: workload, method, its ratios by batch size timed, `scaling.steps_ratio` to the base."""
    for (work, method, *rest), curve in drawn.items():
        other, own = drawn.get((work, base, *rest)), times[(times.workload == work) & (times.algorithm == method)]
        if method != base and other is not None and not rest[-1] and len(own):
            yield work, method, own.set_index("batch_size").ratio.sort_index(), scaling.steps_ratio(curve, other)


def _timed(work: str, method: str, size: int, share: int, ratios: pd.Series, draws: pd.Series) -> dict:
    dearer = float(np.exp(np.interp(np.log(share), np.log(ratios.index), np.log(ratios))))
    return {"workload": work, "algorithm": method, "batch_size": size, "share": share, "dearer": dearer,
            **scaling.ranged("steps", draws), **scaling.ranged("time", dearer * draws)}  # fmt: skip


# --- claims -----------------------------------------------------------------------------------------------------------


SMALLEST, ALL, LARGEST = -1, 0, 1  # batch sizes that a claim is about
BY_NETWORK = {  # of claims that are judged on every network: the methods above and below, and the batch sizes
    "O1": ("lars-warmup", "clars", LARGEST), "O4": ("momentum", "momentum-ema", SMALLEST), "O5": ("momentum", "kfac", ALL),
    "O5b": ("momentum", "kfac", LARGEST), "O6": ("muon", "adam", ALL), "O7b": ("sgd", "adam", ALL),
}  # fmt: skip
BY_PAIR = {  # of claims that are judged on pairs of methods: the pairs' names
    "O2": {"Nesterov against LARS": ("nesterov", "lars", LARGEST), "Adam against LAMB": ("adam", "lamb", LARGEST)},
    "O3": {"Adam": ("adam", "momentum", ALL), "K-FAC": ("kfac", "momentum", ALL)},
    "O7": {"SGD and Adam": ("sgd", "adam", SMALLEST), "momentum and Adam": ("momentum", "adam", SMALLEST)},
}


def claimed(drawn: dict, times: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The effects that the claims on training methods are judged by, by their keys; empty where a method is not measured.

    drawn: of `scaling.summaries`; times: as of `in_time`.
    """
    of = {"O3": critical, "O6": critical, "O7b": growth}  # others: steps

    def found(key: str, above: str, below: str, where: int) -> dict:
        return ratios(drawn, above, below, of.get(key) or at_ends(where))

    effects = {key: by_network(found(key, *methods)) for key, methods in BY_NETWORK.items()}
    effects |= {key: by_pair({name: found(key, *methods) for name, methods in own.items()}) for key, own in BY_PAIR.items()}
    return effects | {"O5b": _faster(drawn, times, *BY_NETWORK["O5b"][:2]), "O7": evidence.folded(effects["O7"])}


def asked(trials: pd.DataFrame, key: str) -> dict[str, pd.DataFrame]:
    """The trials that a claim is judged on, by its group, as `claimed` names it."""
    dense = trials[trials.sparsity == 0]
    several = dense.groupby(["workload", "algorithm"]).replicate.transform("nunique") >= SEVERAL
    place = {SMALLEST: 1, LARGEST: -1}
    rank = {end: (way * dense.batch_size).groupby(dense.workload).rank("dense") for end, way in place.items()}

    def own(above: str, below: str, where: int) -> pd.DataFrame:
        counted = rank[where] <= ENDS if where else True
        return dense[dense.algorithm.isin((above, below)) & several & counted]

    if key in BY_PAIR:
        return {name: own(*methods) for name, methods in BY_PAIR[key].items()}
    return {evidence.title(work): part for work, part in own(*BY_NETWORK[key]).groupby("workload")}


def kept_beta(costs: pd.DataFrame) -> pd.DataFrame:
    """By network, steps if Adam's beta2 is kept over those if its half-life is, by a square-root rule to smaller batch sizes.

    costs: of `rate_rules.costs`.  The geometric mean over batch sizes below the start's, its interval over resampled ones; a
    missed goal counts as `rate_rules.MOST` steps.  Empty unless both rules were retrained on every network.
    """
    rows = []
    for work, own in costs.groupby("workload", sort=False) if len(costs) else ():
        small = own[own.batch_size < own.batch_size[own.base.astype(bool)].min()]
        wide = small.pivot(index="batch_size", columns="rule", values="middle").clip(upper=rate_rules.MOST)
        if not {KEPT, HELD} <= {*wide.columns} or wide[[KEPT, HELD]].isna().any(axis=None):
            return evidence.table([])
        effect, low, high, n = evidence.resampled(np.log(wide[KEPT] / wide[HELD]), np.mean)
        rows.append((evidence.title(work), *np.exp([effect, low, high]), n))
    return evidence.table(rows)


def _faster(drawn: dict, times: pd.DataFrame, above: str, below: str) -> pd.DataFrame:
    """By network, the time that one method takes over that of another, at the largest batch sizes."""
    found = {}
    for work, draws in ratios(drawn, above, below, at_ends(1)).items():
        own = times[times.workload == work].sort_values("batch_size").groupby("algorithm").ratio.last()
        if {above, below} <= {*own.index}:
            found[work] = draws * own[above] / own[below]
    return by_network(found)
