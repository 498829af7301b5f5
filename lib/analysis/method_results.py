"""Training methods side by side: how each one's curve lies to another's, by the steps and by the
time that they take.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.methods import method as known_method
from lib.records import results, selection, store
from lib.studies import plans
from lib.studies.study import Study

BASE = "sgd"  # by which ratios of methods divide
ENDS = 2  # batch sizes at either end of a curve that count as the smallest, or the largest


def studied(*more: Study) -> Study:
    """The cells on record of the networks that were searched with many methods, and of `more`."""
    asked = [*map(plans.study, plans.WHICH), *more]
    names = {cell.workload for study in asked for cell in study.searches}
    cells = selection.curves(*asked).searches
    return Study("compared", "Training methods", (c for c in cells if c.workload in names))


def compared(*more: Study) -> pd.DataFrame:
    """All searches on record of the networks that were searched with many methods, and of `more`,
    each at its goal.

    A table as of `results.of_searches`.  Momentum as published:
    `ranges.whole` joins the lower half of its range.
    """
    known = studied(*more)
    found = scaling.at_goals(results.of_searches(known))
    lacking = dict.fromkeys(
        c for name in plans.WHICH for c in results.missing(plans.study(name))
    )
    planned = len(known.searches) + len(lacking)
    found.attrs.update(missing=store.Shared(lacking), cells_planned=planned)
    return found


def title(name: str) -> str:
    """A method as pages spell it; a reader's own by the title that its file gives."""
    return known_method(name).title


def _of(base: str) -> Callable[[tuple], tuple]:
    """The key of a method's curve on the network of another key."""
    return lambda key: (key[0], base, *key[2:])


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


def over(curves: dict) -> pd.DataFrame:
    """QUANTITIES of every curve over those of BASE on the same network: `scaling.beside`."""
    return scaling.beside(curves, _of(BASE), QUANTITIES)


def between(
    curves: dict, above: str, below: str, of: Callable[[Curve, Curve], Effect | None]
) -> dict[str, Effect]:
    """`of` the curves of two methods, on every dense network that has both: workload -> effect."""
    found = {}
    for (name, method, _, sparsity), *pair in scaling.with_partner(curves, _of(below)):
        if method == above and not sparsity:
            found[name] = of(*pair)
    return {name: effect for name, effect in found.items() if effect is not None}


# --- time -----------------------------------------------------------------------------------------


TIMED = """
workload algorithm batch_size steps steps_low steps_high dearer time time_low time_high
""".split()


def in_time(curves: dict, times: pd.DataFrame) -> pd.DataFrame:
    """Steps and time of every dense curve over those of the base method, a row per batch size that
    both have.

    times: workload, algorithm, batch_size, ratio (seconds of a step over the base method's), as
    `timings.over_sgd` gives them; between and beyond the batch sizes timed, the ratio is
    interpolated on the logarithm of the size, or kept. Columns: workload, algorithm, batch_size,
    steps, steps_low, steps_high (ratios, 90 %), dearer (a step's time over the base's), time,
    time_low, time_high.  Curves whose steps were not timed are left out.
    """
    ordered = times.sort_values("batch_size")
    timed = dict(list(ordered.groupby(["workload", "algorithm"])))
    parts = [pd.DataFrame(columns=TIMED)]
    for (workload, algorithm, _, sparsity), *pair in scaling.with_partner(curves, _of(BASE)):
        own = timed.get((workload, algorithm))
        if sparsity == 0 and own is not None:
            known = np.log(own[["batch_size", "ratio"]].to_numpy(float).T)
            found = scaling.steps_ratio(*pair)
            dearer = np.exp(np.interp(np.log(found.batch_size), *known))
            found = found.assign(workload=workload, algorithm=algorithm, dearer=dearer)
            ratios = found.filter(like="ratio")
            found[TIMED[3:6]], found[TIMED[7:]] = ratios, ratios.mul(dearer, axis=0)
            parts.append(found[TIMED])
    return pd.concat(parts[1:] or parts, ignore_index=True)
