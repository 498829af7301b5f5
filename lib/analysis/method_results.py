"""Training methods side by side: how each one's curve lies to another's, by the steps and by the
time that they take.
"""

from __future__ import annotations

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

    A table as `results.read`.  Momentum as published: `whole_range` joins the lower half of its
    range.
    """
    studies = [plans.study(name) for name in plans.WHICH]
    names = {cell.workload for study in (*studies, *more) for cell in study.cells}
    every = on_record.gathered(*studies, *more, **plans.USUAL)
    lacking = {cell: None for study in studies for cell in results.missing(study)}
    read = results.read(
        Study("compared", "Training methods", tuple(c for c in every.cells if c.workload in names))
    )
    found = goals.at_goals(read)
    found.attrs.update(missing=store.Shared(lacking), cells_planned=len(every.cells) + len(lacking))
    return found


def whole_range(trials: pd.DataFrame) -> pd.DataFrame:
    """The table of `compared` with momentum over its whole range, where that is measured
    (`ranges.whole`).
    """
    joined = goals.at_goals(ranges.whole(trials, results.read(ranges.low_momentum())))
    joined.attrs.update(
        {key: trials.attrs[key] for key in ("missing", "cells_planned") if key in trials.attrs}
    )
    return joined


def grid(
    name: str, batch_sizes: Iterable[int], methods: Iterable[str], searches: int, trials: int
) -> Study:
    """So many searches by every method at every batch size of the dense network called `name`, each
    on a split of its own.

    SGD, by which ratios divide, is always one of the methods.  Searches that the book plans come
    first and are taken as they are planned; an own workload has one split. Raises ValueError as
    `lib.studies.cells.Cell`.
    """
    planned = [
        c
        for study in plans.WHICH
        for c in plans.study(study).cells
        if c.workload == name and not c.sparsity
    ]
    known = {(c.algorithm, c.batch_size, c.replicate): c for c in planned if c.trials == trials}
    first = min((c.replicate for c in planned), default=1)
    split = not workload(name).source and any(c.split for c in planned)
    cells = [
        known.get((method, size, n))
        or Cell(name, size, method, trials=trials, replicate=n, split=n * split, hits=1)
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


def over(curves: dict, base: str = BASE) -> pd.DataFrame:
    """Every curve beside that of the base method on the same network: a row per curve and quantity.

    curves: of `scaling.curves`.  Columns: those of CURVE, what (of QUANTITIES), ratio, ratio_low,
    ratio_high (90 %), n (searches compared), searches (of the curve), effect (`scaling.Effect`).
    """
    rows = []
    for key, curve in curves.items():
        other = curves.get((key[0], base, *key[2:]))
        if key[1] == base or other is None:
            continue
        for what, of in QUANTITIES.items():
            if (found := of(curve, other)) is not None:
                about = {
                    "what": what,
                    **found.row("ratio"),
                    "n": found.n,
                    "searches": curve.n,
                    "effect": found,
                }
                rows.append({**dict(zip(scaling.CURVE, key)), **about})
    columns = [
        *scaling.CURVE,
        "what",
        "ratio",
        "ratio_low",
        "ratio_high",
        "n",
        "searches",
        "effect",
    ]
    return pd.DataFrame(rows, columns=columns)


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
    found = {}
    for (work, method, *rest), curve in curves.items():
        other = curves.get((work, below, *rest))
        if (
            method == above
            and other is not None
            and not rest[-1]
            and (effect := of(curve, other)) is not None
        ):
            found[work] = effect
    return found


def everywhere(compared: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods with SEVERAL searches on every network of which any method has them; of one
    search, where none has.

    compared: as of `over`.
    """
    several = compared[compared.searches >= SEVERAL]
    rows = several if len(several) else compared
    return rows[rows.groupby("algorithm").workload.transform("nunique") == rows.workload.nunique()]


# --- fewer trials ---------------------------------------------------------------------------------


def with_few_trials(trials: pd.DataFrame, tries: int = TRIES) -> pd.DataFrame:
    """What a search of so few trials would have found, by network, method and batch size.

    A search that ended early knows its fastest trials alone, so every network and sparsity is read
    at the hardest goal at which, for all its methods, most searches of most batch sizes know.
    Columns: workload, algorithm, sparsity, batch_size, goal, steps (median over searches of the
    median of a search of so few), least (of whole searches), searches.  Networks without such a
    goal are left out.
    """
    parts = [
        part
        for _, own in trials.groupby(["workload", "sparsity"], sort=False)
        if (part := _with_few(own, tries)) is not None
    ]
    columns = [
        "workload",
        "algorithm",
        "sparsity",
        "batch_size",
        "goal",
        "steps",
        "least",
        "searches",
    ]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _with_few(own: pd.DataFrame, tries: int) -> pd.DataFrame | None:
    keys = ["workload", "algorithm", "sparsity", "batch_size"]
    for goal in scaling.goals(own):
        searches = own.groupby([*keys, *scaling.SEARCH])[f"steps@{goal:g}"]
        few = searches.agg(
            steps=lambda steps: _median(steps.to_numpy(), tries), least="min"
        ).reset_index()
        points = (
            few.groupby(keys)[["steps", "least"]]
            .median()
            .assign(searches=few.groupby(keys).size())
            .reset_index()
        )
        known = np.isfinite(points.steps).groupby(points.algorithm).mean()
        if len(known) and known.min() > 0.5:
            return points[np.isfinite(points.steps)].assign(goal=goal)
    return None


def _median(steps: np.ndarray, tries: int) -> float:
    """Of the best of so many of a search's trials; inf where the search ended before it is known."""
    return float(scaling.best_of_k(steps, min(tries, len(steps)))[1])


# --- time -----------------------------------------------------------------------------------------


TIMED = [
    "workload",
    "algorithm",
    "batch_size",
    "dearer",
    "steps",
    "steps_low",
    "steps_high",
    "time",
    "time_low",
    "time_high",
]


def in_time(curves: dict, times: pd.DataFrame, base: str = BASE) -> pd.DataFrame:
    """Steps and time of every dense curve over those of the base method, a row per batch size that
    both have.

    times: workload, algorithm, batch_size, ratio (seconds of a step over the base method's), as
    `method_times.over_sgd` gives them; between and beyond the batch sizes timed, the ratio is
    interpolated on the logarithm of the size, or kept. Columns: workload, algorithm, batch_size,
    steps, steps_low, steps_high (ratios, 90 %), dearer (a step's time over the base's), time,
    time_low, time_high.  Curves whose steps were not timed are left out.
    """
    rows = [
        _timed(work, method, row, row.batch_size, dearer)
        for work, method, dearer, ratios in _both(curves, times, base)
        for row in ratios.itertuples()
    ]
    return pd.DataFrame(rows, columns=TIMED)


def shared_out(curves: dict, times: pd.DataFrame, base: str = BASE) -> pd.DataFrame:
    """A network's largest batch size by all its methods that were timed, shared by devices: a row
    for each share that was timed.

    Networks without one are left out.  A device makes the whole update, beside the gradient of its
    share alone; what it sends is left out.  Columns: as those of `in_time`, and share (examples on
    each device), at which `dearer` is read.
    """
    pairs, common = list(_both(curves, times, base)), {}
    for work, _, _, ratios in pairs:
        common[work] = common.get(work, {*ratios.batch_size}) & {*ratios.batch_size}
    rows = [
        _timed(work, method, row, share, dearer)
        for work, method, dearer, ratios in pairs
        if common[work]
        for row in ratios[ratios.batch_size == max(common[work])].itertuples()
        for share in dearer.index[dearer.index <= row.batch_size]
    ]
    return pd.DataFrame(rows, columns=[*TIMED[:3], "share", *TIMED[3:]])


def _both(curves: dict, times: pd.DataFrame, base: str) -> Iterator[tuple]:
    """Dense curves whose steps were timed: workload, method, its ratios by batch size timed,
    `scaling.steps_ratio` to the base.
    """
    for (work, method, *rest), curve in curves.items():
        other, own = (
            curves.get((work, base, *rest)),
            times[(times.workload == work) & (times.algorithm == method)],
        )
        if method != base and other is not None and not rest[-1] and len(own):
            yield (
                work,
                method,
                own.set_index("batch_size").ratio.sort_index(),
                scaling.steps_ratio(curve, other),
            )


def _timed(work: str, method: str, row: tuple, share: int, ratios: pd.Series) -> dict:
    dearer = float(np.exp(np.interp(np.log(share), np.log(ratios.index), np.log(ratios))))
    ends = {"": row.ratio, "_low": row.ratio_low, "_high": row.ratio_high}
    steps, time = (
        {f"{what}{end}": times * v for end, v in ends.items()}
        for what, times in (("steps", 1.0), ("time", dearer))
    )
    return {
        "workload": work,
        "algorithm": method,
        "batch_size": row.batch_size,
        "share": share,
        "dearer": dearer,
        **steps,
        **time,
    }
