"""Training methods side by side: how each one's curve lies to another's, by the steps and by the
time that they take.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from lib.analysis import goals, scaling
from lib.analysis.scaling import Curve, Effect
from lib.methods import method as known_method
from lib.records import on_record, results, store
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study

BASE = "sgd"  # by which ratios of methods divide
ENDS = 2  # batch sizes at either end of a curve that count as the smallest, or the largest


def compared(*more: Study) -> pd.DataFrame:
    """All trials on record of the networks that were searched with many methods, and of `more`,
    each at its goal.

    A table as `results.read`, without `scaling.WITHIN_BUDGETS`.  Momentum as published:
    `ranges.whole` joins the lower half of its range.
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


def title(name: str) -> str:
    """A method as pages spell it; a reader's own by the title that its file gives."""
    return known_method(name).title


def _beside(curves: dict, base: str) -> Iterator[tuple[tuple, Curve, Curve]]:
    """Every curve of another method, by its key, and the base method's on the same network."""
    return scaling.with_partner(curves, lambda key: (key[0], base, *key[2:]))


def at_end(end: int) -> Callable[[Curve, Curve], Effect | None]:
    """ln of steps of one curve over another's, the mean over the ENDS smallest (-1), all (0) or
    ENDS largest (1) batch sizes.

    Of those that both have; None where these are fewer than three.
    """

    def steps(above: Curve, below: Curve) -> Effect | None:
        shared = above.logs.columns.intersection(below.logs.columns)
        sizes = {-1: shared[:ENDS], 0: shared, 1: shared[-ENDS:]}[end]
        return scaling.mean_steps_ratio(above, below, sizes) if len(shared) >= 3 else None

    return steps


QUANTITIES = {"critical": scaling.critical_ratio, "small": at_end(-1), "large": at_end(1)}


def over(curves: dict, base: str = BASE) -> pd.DataFrame:
    """QUANTITIES of every curve over those of the base method's on the same network:
    `scaling.beside`.
    """
    return scaling.beside(curves, lambda key: (key[0], base, *key[2:]), QUANTITIES)


def between(
    curves: dict, above: str, below: str, of: Callable[[Curve, Curve], Effect | None]
) -> dict[str, Effect]:
    """`of` the curves of two methods, on every dense network that has both: workload -> effect."""
    pairs = _beside(curves, below)
    found = {k[0]: of(*pair) for k, *pair in pairs if k[1] == above and not k[3]}
    return {name: effect for name, effect in found.items() if effect is not None}


# --- time -----------------------------------------------------------------------------------------


TIMED = """
workload algorithm batch_size share dearer steps time time_low time_high
""".split()


def timed_pairs(curves: dict, times: pd.DataFrame) -> Iterator[tuple]:
    """Dense curves whose steps were timed: (workload, method); the ratios of a step's time to the
    base method's by batch size; `scaling.steps_ratio` to the base.

    times: workload, algorithm, batch_size, ratio, as `method_times.over_sgd` gives them.
    """
    timed = dict(list(times.groupby(["workload", "algorithm"])))
    for key, curve, other in _beside(curves, BASE):
        if key[3] == 0 and key[:2] in timed:
            dearer = timed[key[:2]].set_index("batch_size").ratio.sort_index()
            yield key[:2], dearer, scaling.steps_ratio(curve, other)


def in_time(
    about: tuple[str, str], ratios: pd.DataFrame, shares: pd.Index, dearer: pd.Series
) -> pd.DataFrame:
    """Steps and time over the base method's, a row per row of `scaling.steps_ratio`: TIMED.

    about, dearer, ratios: of `timed_pairs`.  shares: examples on each device [n], at which the
    ratio of a step's time is read; between and beyond the sizes timed it is interpolated on their
    logarithm, or kept.
    """
    times = np.exp(np.interp(np.log(shares), np.log(dearer.index), np.log(dearer)))
    found = pd.DataFrame({"share": np.asarray(shares), "dearer": times})
    found["workload"], found["algorithm"] = about
    found["batch_size"] = ratios.batch_size.to_numpy()
    found["steps"] = ratios.ratio.to_numpy()
    for end in ("", "_low", "_high"):
        found[f"time{end}"] = ratios[f"ratio{end}"].to_numpy() * times
    return found[TIMED]
