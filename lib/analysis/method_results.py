"""Training methods side by side: how the curve of one compares with another's, in steps and in
time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.records import results, selection, store
from lib.studies import plans
from lib.studies.study import Study

BASE = "sgd"  # the denominator of ratios of methods
ENDS = 2  # how many batch sizes at either end of a curve count as the smallest, or the largest


def compared(*more: Study) -> pd.DataFrame:
    """All searches on record of the networks that were searched with many methods, and of `more`,
    each at its goal.

    A table like that of `results.of_searches`.  Momentum has its published range;
    `ranges.whole` adds the lower half.
    """
    studies = [*map(plans.study, plans.WHICH), *more]
    names = {search.workload for study in studies for search in study.searches}
    searches = (s for s in selection.curves(*studies).searches if s.workload in names)
    study = Study("compared", "Training methods", searches)
    rows = scaling.at_goals(results.of_searches(study))
    planned = map(plans.study, plans.WHICH)
    missing = dict.fromkeys(search for which in planned for search in results.missing(which))
    count = len(study.searches) + len(missing)
    rows.attrs.update(missing=store.Shared(missing), cells_planned=count)
    return rows


def _with_method(base: str) -> Callable[[tuple], tuple]:
    """A function from a curve's key to that of the method `base` on the same network."""
    return lambda key: (key[0], base, *key[2:])


def at_end(end: int) -> Callable[[Curve, Curve], Effect | None]:
    """ln of one curve's steps over another's, averaged over the ENDS smallest (-1), all (0) or ENDS
    largest (1) batch sizes.

    Only batch sizes that both have; None if these are fewer than three.
    """

    def steps(above: Curve, below: Curve) -> Effect | None:
        shared = above.logs.columns.intersection(below.logs.columns)
        sizes = {-1: shared[:ENDS], 0: shared, 1: shared[-ENDS:]}[end]
        return scaling.mean_steps_ratio(above, below, sizes) if len(shared) >= 3 else None

    return steps


QUANTITIES = {"critical": scaling.critical_ratio, "small": at_end(-1), "large": at_end(1)}


def over(curves: dict) -> pd.DataFrame:
    """QUANTITIES of every curve over those of BASE on the same network: `scaling.beside`."""
    return scaling.beside(curves, _with_method(BASE), QUANTITIES)


def between(
    curves: dict, above: str, below: str, of: Callable[[Curve, Curve], Effect | None]
) -> dict[str, Effect]:
    """`of` applied to two methods' curves, on dense networks that have both: workload -> effect."""
    effects = {
        key[0]: of(*pair)
        for key, *pair in scaling.with_partner(curves, _with_method(below))
        if key[1] == above and not key[3]
    }
    return {name: effect for name, effect in effects.items() if effect is not None}


# --- time -----------------------------------------------------------------------------------------


TIMED = "workload algorithm batch_size dearer time time_low time_high".split()


def in_time(curves: dict, times: pd.DataFrame) -> pd.DataFrame:
    """Time of every dense curve over that of the base method, a row per batch size that both have.

    times: workload, algorithm, batch_size, ratio (seconds of a step over the base method's), from
    `timings.over_sgd`; between the batch sizes timed, the ratio is interpolated on the logarithm of
    the size, beyond them it is constant.  Columns: workload, algorithm, batch_size, dearer (a
    step's time over the base's), time, time_low, time_high (ratios, 90 %).  Curves whose steps were
    not timed are left out.
    """
    times = times.sort_values("batch_size")
    parts = [pd.DataFrame(columns=TIMED)]
    for key, *pair in scaling.with_partner(curves, _with_method(BASE)):
        workload, algorithm, _, sparsity = key
        timed = times[(times.workload == workload) & (times.algorithm == algorithm)]
        if sparsity == 0 and len(timed):
            rows = scaling.steps_ratio(*pair)
            sizes = np.log(rows.batch_size.astype(float))
            inside = np.interp(sizes, np.log(timed.batch_size), np.log(timed.ratio))
            dearer = np.exp(inside)
            rows = rows.assign(workload=workload, algorithm=algorithm, dearer=dearer)
            rows[TIMED[4:]] = rows.filter(like="ratio").mul(dearer, axis=0)
            parts.append(rows[TIMED])
    return pd.concat(parts[1:] or parts, ignore_index=True)
