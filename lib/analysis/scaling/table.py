"""Tables with a row per curve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from lib import forms, require
from lib.analysis.scaling.curve import (
    ENOUGH,
    RATIO,
    Curve,
    Effect,
    alike,
    critical,
    critical_ratio,
    curve_of,
    curves_of,
    steps_ratio,
)
from lib.analysis.scaling.steps import (
    CURVE,
    at_every_goal,
    of_curve,
    steps_to_result,
)

TOLERANCE = 0.2  # for perfect scaling, and for steps that no longer fall
TESTED = 5  # the fewest batch sizes with which a form is tested


def with_perfect(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves (batch_size, steps) with `perfect`: the steps if scaling had stayed perfect from the
    smallest size.
    """
    by = of_curve(curves)
    curves = curves.sort_values([*by, "batch_size"], ignore_index=True)
    first = curves.groupby(by, dropna=False)
    examples = first.batch_size.transform("first") * first.steps.transform("first")
    return curves.assign(perfect=examples / curves.batch_size)


# --- curves in a row each -------------------------------------------------------------------------

ABOUT = "goal sizes replicates c1 c2 critical critical_low critical_high identified".split()


def by_curve(rows: Iterable[tuple[tuple, dict]], columns: list[str]) -> pd.DataFrame:
    """A table of (key, row) pairs: CURVE and these columns, also where there is no row."""
    records = [{**dict(zip(CURVE, key)), **row} for key, row in rows]
    return pd.DataFrame(records, columns=[*CURVE, *columns])


def summaries(trials: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple, Curve]]:
    """A row for every curve that met its goal at three batch sizes or more, and the curves by their
    CURVE keys.

    Columns: those of CURVE; goal; sizes and replicates (counts: batch sizes, independent searches);
    c1, c2 (of c1/B + c2); critical, critical_low, critical_high (`critical`, examples; 0 or inf: a
    bound); identified (whether it lies inside the batch sizes measured).  Raises ValueError if the
    trials of a curve were measured under several protocols.
    """
    return of_searches(steps_to_result(trials) if len(trials) else trials)


def of_searches(searches: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple, Curve]]:
    """`summaries` from rows of `steps_to_result`, at one goal each."""
    if searches.empty:
        return by_curve([], ABOUT), {}
    curves, goals, rows = curves_of(searches), searches.groupby(CURVE).goal.first(), []
    for key, curve in curves.items():
        sizes = curve.sizes[curve.met]
        bend = critical(curve)
        line = forms.fit(curve.sizes, curve.means, weights=curve.weights)
        row = {
            "goal": goals[key],
            "sizes": len(sizes),
            "replicates": curve.n,
            "c1": line.c1[0],
            "c2": line.c2[0],
            **bend.row("critical"),
            "identified": bool(sizes.min() < np.exp(bend.value) < sizes.max()),
        }
        rows.append((key, row))
    return by_curve(rows, ABOUT), curves


def across_replicates(searches: pd.DataFrame, share: float = 0.0) -> pd.DataFrame:
    """The searches of each point joined, a row per point at which one of them met the goal.

    searches: from `steps_to_result`; only independent ones of every curve are used (`apart`).
    share: as for `curve_of`.
    Columns: what the searches of a point share, and those of `Curve.points`: steps (geometric
    mean), low, high (90 %), replicates, missed (counts), borrowed.
    """
    keys = of_curve(searches)
    parts = []
    for _, rows in searches.groupby(keys, dropna=False):
        points = curve_of(rows, share).points()
        parts.append(rows[keys].head(1).merge(points, how="cross"))
    return pd.concat(parts, ignore_index=True)


def all_goals(trials: pd.DataFrame) -> pd.DataFrame:
    """`across_replicates` at every goal of the ladder, concatenated; points that missed a goal are
    left out.

    Raises ValueError if no trial met any goal.
    """
    searches = at_every_goal(trials)
    least = trials.best_error.min()
    allowed = f"{least:.3g}, the lowest error of {len(trials)} trials, or easier"
    ladder = [c.removeprefix("steps@") for c in trials.filter(regex="^steps@")]
    require(searches, "goals", ladder, allowed)
    met = [s[s.workload.isin(s.workload[s.steps.notna()])] for s in searches.values()]
    return across_replicates(pd.concat(met, ignore_index=True))


def tests_of_form(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """How well c1/B + c2 fits every curve of which ENOUGH searches all have TESTED batch sizes or
    more.

    Columns: those of CURVE, sizes, searches; chi2, freedom, p_value (of c1/B + c2, against the
    scatter of searches); depart, depart_low, depart_high (the factor by which the curve departs
    from it, `FormTest`).
    """
    rows = []
    for key, curve in curves.items():
        logs = curve.logs.where(~curve.missed).dropna()
        n, m = logs.shape
        if m >= TESTED and n >= ENOUGH:
            test = forms.test_form(curve.sizes, logs.to_numpy())
            rows.append((key, {"sizes": m, "searches": n} | vars(test)))
    return by_curve(rows, ["sizes", "searches", *forms.FormTest.__annotations__])


# --- one curve over another -----------------------------------------------------------------------


CRITICAL = {"critical": critical_ratio}


def beside(
    curves: dict[tuple, Curve],
    partner: Callable[[tuple], tuple],
    quantities: dict[str, Callable[[Curve, Curve], Effect | None]] = CRITICAL,
) -> pd.DataFrame:
    """Every curve over its partner, a row per curve and quantity; a quantity of None has no row.

    partner: maps a key to that of another curve, or to itself if there is none.  Columns: those of
    CURVE; what (the name in quantities); ratio, ratio_low, ratio_high (90 %); n (searches
    compared), sizes (batch sizes that both have).
    """
    rows = []
    for key, *pair in with_partner(curves, partner):
        sizes = len(alike(*pair)[0].sizes)
        for what, compare in quantities.items():
            if (effect := compare(*pair)) is not None:
                row = {"what": what, "n": effect.n, "sizes": sizes, **effect.row("ratio")}
                rows.append((key, row))
    return by_curve(rows, "what ratio ratio_low ratio_high n sizes".split())


def with_partner(
    curves: dict[tuple, Curve], partner: Callable[[tuple], tuple]
) -> Iterator[tuple[tuple, Curve, Curve]]:
    """For every curve that has another as partner: its key, the curve, and its partner."""
    for key, curve in curves.items():
        below = curves.get(partner(key), curve)
        if below is not curve:
            yield key, curve, below


def dense_key(key: tuple) -> tuple:
    return (*key[:3], 0.0)


def sparsest(curves: Mapping[tuple, Any]) -> dict[tuple, tuple[Any, Any]]:
    """The values for every network and method at its highest sparsity, pruned by connection
    sensitivity, and for the dense network, by key.
    """
    highest = {}
    for key in curves:
        pruned = key[3] > 0 and key[2] == "connection-sensitivity"
        if pruned and dense_key(key) in curves:
            highest[key[:2]] = max(highest.get(key[:2], key), key, key=lambda k: k[3])
    return {key: (curves[key], curves[dense_key(key)]) for key in highest.values()}


def steps_over_dense(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """Steps of every sparse curve over the dense network's, a row per batch size that both have:
    `steps_ratio` with CURVE.
    """
    rows = []
    for key, *pair in with_partner(curves, dense_key):
        rows += [(key, row) for row in steps_ratio(*pair).to_dict("records")]
    return by_curve(rows, RATIO)
