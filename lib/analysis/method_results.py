"""Training methods side by side: how each one's curve lies to another's, by the steps and by the
time that they take.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd

from lib.analysis import goals, ranges, scaling
from lib.analysis.scaling import Curve, Effect
from lib.methods import method as known_method
from lib.records import on_record, results, store
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload

BASE = "sgd"  # by which ratios of methods divide
ENDS = 2  # batch sizes at either end of a curve that count as the smallest, or the largest
SEVERAL = 3  # searches from which on titles speak of a method
TRIES = 5  # trials that a small budget allows (AlgoPerf's)


def compared(*more: Study) -> pd.DataFrame:
    """All trials on record of the networks that were searched with many methods, and of `more`,
    each at its goal.

    A table as `results.read`, without `scaling.WITHIN_BUDGETS`.  Momentum as published:
    `whole_range` joins the lower half of its range.
    """
    studies = [plans.study(name) for name in plans.WHICH]
    asked = [*studies, *more]
    every = on_record.gathered(*asked, **plans.USUAL)
    names = {cell.workload for study in asked for cell in study.cells}
    cells = [cell for cell in every.cells if cell.workload in names]
    found = _at_goals(tuple(cells)).copy(deep=False)
    lacking = dict.fromkeys(cell for own in studies for cell in results.missing(own))
    planned = len(every.cells) + len(lacking)
    found.attrs.update(missing=store.Shared(lacking), cells_planned=planned)
    return found


@functools.lru_cache(maxsize=1)  # of claims, and of several pages that a build makes
def _at_goals(cells: tuple[Cell, ...]) -> pd.DataFrame:
    study = Study("compared", "Training methods", cells)
    return goals.at_goals(results.read(study, without=scaling.WITHIN_BUDGETS))


def whole_range(trials: pd.DataFrame, low: pd.DataFrame) -> pd.DataFrame:
    """The table of `compared` with momentum over its whole range, where that is measured
    (`ranges.whole`).

    low: the trials of `ranges.low_momentum`.
    """
    return goals.at_goals(ranges.whole(trials, low))


def grid(
    name: str, batch_sizes: Iterable[int], methods: Iterable[str], searches: int, trials: int
) -> Study:
    """So many searches by every method at every batch size of the dense network called `name`, each
    on a split of its own.

    SGD, by which ratios divide, is always one of the methods.  Searches that the book plans come
    first and are taken as they are planned; an own workload has one split. Raises ValueError as
    `lib.studies.cells.Cell`.
    """
    studies = map(plans.study, plans.WHICH)
    planned = [c for s in studies for c in s.cells if c.workload == name and not c.sparsity]
    known = {(c.algorithm, c.batch_size, c.replicate): c for c in planned if c.trials == trials}
    first = min((c.replicate for c in planned), default=1)
    split = not workload(name).source and any(c.split for c in planned)
    wanted = itertools.product(
        range(first, first + searches), batch_sizes, dict.fromkeys((BASE, *methods))
    )
    cells = tuple(
        known.get((method, size, n))
        or Cell(name, size, method, trials=trials, replicate=n, split=n * split, hits=1)
        for n, size, method in wanted
    )
    return Study(name, workload(name).title, cells)


def title(name: str) -> str:
    """A method as pages spell it; a reader's own by the title that its file gives."""
    return known_method(name).title


def unmeasured(trials: pd.DataFrame, methods: Iterable[str]) -> list[str]:
    """Of these methods, those of which no trial is on record."""
    known = set(trials.algorithm) if len(trials) else set()
    return [name for name in methods if name not in known]


def over(curves: dict, base: str = BASE) -> pd.DataFrame:
    """Every curve beside that of the base method on the same network: a row per curve and quantity.

    curves: of `scaling.curves`.  Columns: those of CURVE, what (of QUANTITIES), ratio, ratio_low,
    ratio_high (90 %), n (searches compared), searches (of the curve), effect (`scaling.Effect`).
    """
    rows = []
    for key, curve, other in _beside(curves, base):
        for what, compare in QUANTITIES.items():
            if (found := compare(curve, other)) is not None:
                counts = {"n": found.n, "searches": curve.n, "effect": found}
                rows.append((key, {"what": what, **found.row("ratio"), **counts}))
    columns = ["what", "ratio", "ratio_low", "ratio_high", "n", "searches", "effect"]
    return scaling.by_curve(rows, columns)


def _beside(curves: dict, base: str) -> Iterator[tuple[tuple, Curve, Curve]]:
    """Every curve of another method, by its key, and the base method's on the same network."""
    return scaling.with_partner(curves, lambda key: (key[0], base, *key[2:]))


def at_end(end: int) -> Callable[[Curve, Curve], Effect | None]:
    """ln of steps of one curve over another's, the mean over the ENDS smallest (-1), all (0) or
    ENDS largest (1) batch sizes.

    Of those that both have; None where these are fewer than three.
    """
    places = {-1: slice(None, ENDS), 0: slice(None), 1: slice(-ENDS, None)}[end]

    def steps(above: Curve, below: Curve) -> Effect | None:
        shared = above.logs.columns.intersection(below.logs.columns)
        return scaling.mean_steps_ratio(above, below, shared[places]) if len(shared) >= 3 else None

    return steps


QUANTITIES = {"critical": scaling.critical_ratio, "small": at_end(-1), "large": at_end(1)}


def between(
    curves: dict, above: str, below: str, of: Callable[[Curve, Curve], Effect | None]
) -> dict[str, Effect]:
    """`of` the curves of two methods, on every dense network that has both: workload -> effect."""
    dense = [own for own in _beside(curves, below) if own[0][1] == above and not own[0][3]]
    found = {key[0]: of(curve, other) for key, curve, other in dense}
    return {name: effect for name, effect in found.items() if effect is not None}


def everywhere(compared: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods with SEVERAL searches on every network of which any method has them; of one
    search, where none has.

    compared: as of `over`.
    """
    several = compared[compared.searches >= SEVERAL]
    rows = several if len(several) else compared
    return rows[rows.groupby("algorithm").workload.transform("nunique") == rows.workload.nunique()]


# --- fewer trials ---------------------------------------------------------------------------------


def with_few_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """What a search of TRIES trials would have found, by network, method and batch size.

    A search that ended early knows its fastest trials alone, so every network and sparsity is read
    at the hardest goal at which, for all its methods, most searches of most batch sizes know.
    Columns: workload, algorithm, sparsity, batch_size, goal, steps (median over searches of the
    median of a search of so few), least (of whole searches), searches.  Networks without such a
    goal are left out.
    """
    keys = ["workload", "algorithm", "sparsity", "batch_size"]
    parts = [pd.DataFrame(columns=[*keys, "goal", "steps", "least", "searches"])]
    for _, own in trials.groupby(["workload", "sparsity"], sort=False):
        searches = own.groupby([*keys, *scaling.SEARCH])
        for goal in scaling.goals(own):
            steps = searches[f"steps@{goal:g}"]
            few = steps.agg(steps=lambda k: _median(k.to_numpy()), least="min")
            by = few.groupby(keys)
            points = by.median().assign(searches=by.size(), goal=goal).reset_index()
            known = np.isfinite(points.steps)
            if known.groupby(points.algorithm).mean().min() > 0.5:
                parts.append(points[known])
                break
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _median(steps: np.ndarray) -> float:
    """Of the best of TRIES of a search's trials; inf where the search ended before it is known."""
    return float(scaling.best_of_k(steps, min(TRIES, len(steps)))[1])


# --- time -----------------------------------------------------------------------------------------


TIMED = """
workload algorithm batch_size share dearer steps steps_low steps_high time time_low time_high
""".split()


def in_time(curves: dict, times: pd.DataFrame) -> pd.DataFrame:
    """Steps and time of every dense curve over those of the base method, a row per batch size that
    both have.

    times: workload, algorithm, batch_size, ratio (seconds of a step over the base method's), as
    `method_times.over_sgd` gives them; between and beyond the batch sizes timed, the ratio is
    interpolated on the logarithm of the size, or kept. Columns: workload, algorithm, batch_size,
    share (the batch size), steps, steps_low, steps_high (ratios, 90 %), dearer (a step's time over
    the base's), time, time_low, time_high.  Curves whose steps were not timed are left out.
    """
    parts = [
        _timed(about, ratios, ratios.batch_size, dearer)
        for about, dearer, ratios in _both(curves, times)
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TIMED)


def shared_out(curves: dict, times: pd.DataFrame) -> pd.DataFrame:
    """A network's largest batch size by all its methods that were timed, shared by devices: a row
    for each share that was timed.

    Networks without one are left out.  A device makes the whole update, beside the gradient of its
    share alone; what it sends is left out.  Columns: as those of `in_time`, and share (examples on
    each device), at which `dearer` is read.
    """
    pairs = list(_both(curves, times))
    common: dict[str, set[int]] = {}
    for (work, _), _, ratios in pairs:
        sizes = set(ratios.batch_size)
        common[work] = common.get(work, sizes) & sizes
    parts = [pd.DataFrame(columns=TIMED)]
    for (work, method), dearer, ratios in pairs:
        size = max(common[work], default=0)
        shares = dearer.index[dearer.index <= size]
        if len(shares):
            largest = ratios[ratios.batch_size == size]
            repeated = largest.iloc[[0] * len(shares)]
            parts.append(_timed((work, method), repeated, shares, dearer))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _both(curves: dict, times: pd.DataFrame) -> Iterator[tuple]:
    """Dense curves whose steps were timed: (workload, method), the ratios of its step's time by
    batch size, `scaling.steps_ratio` to the base.
    """
    timed = dict(list(times.groupby(["workload", "algorithm"])))
    for key, curve, other in _beside(curves, BASE):
        if key[3] == 0 and key[:2] in timed:
            dearer = timed[key[:2]].set_index("batch_size").ratio.sort_index()
            yield key[:2], dearer, scaling.steps_ratio(curve, other)


def _timed(
    about: tuple[str, str], ratios: pd.DataFrame, shares: pd.Index, dearer: pd.Series
) -> pd.DataFrame:
    """TIMED of rows of `scaling.steps_ratio`, a step's time read at shares [n] of their batches."""
    known = np.log(dearer.index)
    asked = np.log(shares)
    logs = np.interp(asked, known, np.log(dearer))
    times = np.exp(logs)
    found = pd.DataFrame({"share": np.asarray(shares), "dearer": times})
    found["batch_size"] = ratios.batch_size.to_numpy()
    for end in ("", "_low", "_high"):
        steps = ratios[f"ratio{end}"].to_numpy()
        found[f"steps{end}"] = steps
        found[f"time{end}"] = steps * times
    found["workload"], found["algorithm"] = about
    return found[TIMED]
