"""Every curve on one row."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd

from lib import forms
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
    draws,
    estimate,
    over_smallest,
    slim,
    span_of,
    steps_ratio,
)
from lib.analysis.scaling.rules import Regimes, regime_ends, regimes_of
from lib.analysis.scaling.steps import (
    CURVE,
    PROTOCOL,
    at_every_goal,
    point_of,
    steps_to_result,
)

TESTED = 5  # batch sizes from which on a form is tested
ENDS = "perfect_end_low perfect_end_high useful_end_low useful_end_high".split()
ABOUT = [
    *("goal", "sizes", "replicates"),
    *(field.name for field in dataclasses.fields(Regimes)),
    *(*ENDS, "c1", "c2", "residual", "critical", "critical_low", "critical_high", "identified"),
]


def by_curve(rows: Iterable[tuple[tuple, dict]], columns: list[str]) -> pd.DataFrame:
    """A table of (key, row) pairs: CURVE and these columns, also where there is no row."""
    filled = [{**dict(zip(CURVE, key)), **row} for key, row in rows]
    return pd.DataFrame(filled, columns=[*CURVE, *columns])


def summaries(trials: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple, Curve]]:
    """Every curve that met its goal at three batch sizes or more on one row, and the curves by
    their CURVE keys.

    Columns: those of CURVE; goal; sizes and replicates (counts: batch sizes, independent searches);
    start, perfect_end, useful_end, reaches_plateau (as `Regimes`, of the geometric
    means); c1, c2 (of c1/B + c2), residual (the factor by which points lie off it, root mean
    square); critical, critical_low, critical_high (`critical`, examples; 0 or inf: a bound);
    identified (whether it lies inside the batch sizes measured). Raises ValueError if the trials of
    a curve are of several protocols.
    """
    return of_searches(steps_to_result(trials) if len(trials) else trials)


def of_searches(searches: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple, Curve]]:
    """`summaries` of rows of `steps_to_result`, at one goal each."""
    if searches.empty:
        return by_curve([], ABOUT), {}
    by = searches.groupby(CURVE)
    fields = [name for name in PROTOCOL if name in searches]
    varied = by[fields].nunique(dropna=False) > 1
    for key, own in varied[varied.any(axis=1)].iterrows():
        name = own.idxmax()
        values = by.get_group(key)[name].unique().tolist()
        raise ValueError(f"{name}: {values} are not allowed on one curve, {key}; choose one")
    found = curves_of(searches)
    goals = by.goal.first()
    rows = [(key, {"goal": goals[key], **about(curve)}) for key, curve in found.items()]
    return by_curve(rows, ABOUT), found


@functools.lru_cache(maxsize=4096)
def about(curve: Curve) -> dict:
    """What `summaries` says of a curve, but for its key and goal."""
    sizes = curve.sizes[curve.met]
    bend = critical(curve)
    line = forms.fit(curve.sizes, curve.means, weights=curve.weights)
    spans = map(span_of, regime_ends(curve.sizes, draws(curve).to_numpy())[1:])
    ends = [end for span in spans for end in span]
    off = np.sqrt(line.loss[0] / len(curve.sizes))
    return {
        "sizes": len(sizes),
        "replicates": curve.n,
        **vars(regimes_of(sizes, np.exp(curve.means[curve.met]))),
        **dict(zip(ENDS, ends)),
        "c1": line.c1[0],
        "c2": line.c2[0],
        "residual": float(np.exp(off)),
        **bend.row("critical"),
        "identified": bool(sizes.min() < np.exp(bend.value) < sizes.max()),
    }


def across_replicates(searches: pd.DataFrame) -> pd.DataFrame:
    """The searches of a point joined, a row per point that one of them met.

    searches: of `steps_to_result`; of these, those of every curve that are independent (`apart`).
    Columns: what the searches of a point share, and of `Curve.points`: steps (geometric mean), low,
    high (90 %), replicates, missed (counts), borrowed; hits_seen (trials that met the goal, of all
    searches).
    """
    keys = [*(c for c in point_of(searches) if c != "batch_size"), "goal"]
    by = searches.groupby(keys, dropna=False)
    hits = searches.groupby([*keys, "batch_size"], dropna=False).hits_seen.sum().reset_index()
    slimmed = slim(searches).groupby(by.ngroup().to_numpy())
    parts = [curve_of(own, share=0.0).points() for _, own in slimmed]
    told = by.size().index.to_frame(index=False)
    told = told.loc[np.repeat(told.index, list(map(len, parts)))].reset_index(drop=True)
    found = pd.concat(parts, ignore_index=True)
    # A key that no search has is of no kind
    found = pd.concat([found, told], axis=1).astype(hits.dtypes[keys])
    both = hits.merge(found, "inner", [*keys, "batch_size"])
    return both.sort_values([*keys, "batch_size"], ignore_index=True)


def all_goals(trials: pd.DataFrame, missed: bool = False) -> pd.DataFrame:
    """`across_replicates` at every goal of the ladder, one below the other; points that missed a
    goal are left out.

    missed: these instead, without steps and range: where a line that is drawn has a gap.  Raises
    ValueError if none of the trials met any.
    """
    found = at_every_goal(trials)
    if not found:
        ladder = ", ".join(c.removeprefix("steps@") for c in trials if c.startswith("steps@"))
        raise ValueError(
            f"goal: none of {len(trials)} trials met any of {ladder}; their lowest validation "
            f"error was {trials.best_error.min():.3g}, so that easier goals or more "
            "steps are needed"
        )
    met = [s[s.workload.isin(s.workload[s.steps.notna()])] for s in found.values()]
    searches = pd.concat(met, ignore_index=True)
    if not missed:
        return across_replicates(searches)
    keys = [*point_of(searches), "goal"]
    lost = searches[searches.groupby(keys, dropna=False).steps.transform("count") == 0]
    return lost.drop_duplicates(keys, ignore_index=True).assign(low=np.nan, high=np.nan)


def tests_of_form(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """How well c1/B + c2, and c1/B^p + c2, fit every curve of TESTED batch sizes or more that all
    of ENOUGH searches have.

    Columns: those of CURVE, sizes, searches; chi2, freedom, p_value (of c1/B + c2, against the
    scatter of searches); depart, depart_low, depart_high (the factor by which the curve departs
    from it, `FormTest`); off and off_free (root mean square error of ln K* at left-out batch sizes,
    of the two forms; the second NaN for short curves); exponent, exponent_low, exponent_high (p, 90
    %).
    """
    tested = ((key, _test_of_form(curve)) for key, curve in curves.items())
    rows = [(key, row) for key, row in tested if row]
    fields = dataclasses.fields(forms.FormTest)
    known = [field.name for field in fields]
    return by_curve(rows, ["sizes", "searches", *known, "off_free"])


@functools.lru_cache(maxsize=4096)
def _test_of_form(curve: Curve) -> dict | None:
    """What `tests_of_form` says of a curve, but for its key; None of a short one."""
    logs = curve.logs.where(~curve.missed).dropna()
    n, m = logs.shape
    if m < TESTED or n < ENOUGH:
        return None
    off = np.nan
    if m >= forms.LONG:
        off = forms.left_out(curve.sizes, logs.mean().to_numpy(), forms.EXPONENTS)
    tested = forms.test_form(curve.sizes, logs.to_numpy())
    return {"sizes": m, "searches": n, "off_free": off} | vars(tested)


def on_one_line(points: pd.DataFrame, summary: pd.DataFrame) -> pd.DataFrame:
    """Points of curves with `over`, ln of steps over what their curve's c1/B + c2 says: the
    residuals of the law.
    """
    both = points.merge(summary[[*CURVE, "c1", "c2", "critical"]], on=CURVE)
    return both.assign(over=np.log(both.steps / (both.c1 / both.batch_size + both.c2)))


# --- one curve over another -----------------------------------------------------------------------


def beside(curves: dict[tuple, Curve], partner: Callable[[tuple], tuple]) -> pd.DataFrame:
    """The critical batch size of every curve over that of its partner, where they share three batch
    sizes.

    partner: of a key, the key of another curve, or the same for a curve that has none. Columns:
    those of CURVE; sizes, n (batch sizes and searches compared); ratio, ratio_low, ratio_high;
    effect (`Effect`).
    """
    rows = []
    for key, curve, other in with_partner(curves, partner):
        found = critical_ratio(curve, other)
        if found is not None:
            shared = curve.logs.columns.intersection(other.logs.columns)
            about = {"sizes": len(shared), "n": found.n, "effect": found}
            rows.append((key, about | found.row("ratio")))
    return by_curve(rows, ["sizes", *RATIO[1:]])


def with_partner(
    curves: dict[tuple, Curve], partner: Callable[[tuple], tuple]
) -> Iterator[tuple[tuple, Curve, Curve]]:
    """The key of every curve of which another is the partner, the curve, and the other."""
    for key, curve in curves.items():
        other = curves.get(partner(key))
        if other is not None and other is not curve:
            yield key, curve, other


def dense_key(key: tuple) -> tuple:
    return (*key[:3], 0.0)


def against_dense(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """Every sparse curve `beside` its dense one."""
    return beside(curves, dense_key)


def against_sensitivity(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """Every curve pruned in another way `beside` that pruned by connection sensitivity."""
    return beside(curves, lambda key: (*key[:2], "connection-sensitivity", key[3]))


def steps_over_dense(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """Steps of every sparse curve over the dense network's, a row per batch size that both have:
    `steps_ratio` with CURVE.
    """
    rows = []
    for key, sparse, dense in with_partner(curves, dense_key):
        ratios = steps_ratio(sparse, dense)
        rows += [(key, row) for row in ratios.to_dict("records")]
    return by_curve(rows, RATIO)


CONSTANTS = ("c1", "c2", "critical")


def constants(curve: Curve) -> list[Effect]:
    """ln of CONSTANTS."""
    return [*estimate(_log_line, curve), critical(curve)]


def constants_over_dense(curves: dict[tuple, Curve]) -> pd.DataFrame:
    """c1 and c2 of every sparse curve over the dense one's, at the batch sizes of both: CURVE, c1,
    c2, each with _low and _high.
    """
    rows = []
    for key, *pair in with_partner(curves, dense_key):
        both = alike(*pair)
        if len(both[0].sizes) >= 3:
            c1, c2 = estimate(lambda a, b: _log_line(a) - _log_line(b), *both)
            rows.append((key, c1.row("c1") | c2.row("c2")))
    return by_curve(rows, ["c1", "c1_low", "c1_high", "c2", "c2_low", "c2_high"])


def _log_line(own: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """ln of c1 and c2 [k, 2] of batch sizes and ln K* [k, m]."""
    line = forms.fit(*own)
    return np.log(np.stack([line.c1, line.c2], 1).clip(1e-9))


SMALLEST, DENSEST = "its smallest batch", "the dense network"  # by what `relative` divides


def relative(points: pd.DataFrame, curves: dict[tuple, Curve]) -> pd.DataFrame:
    """Steps over those of the curve's smallest batch, and over the densest network's at the same
    batch size.

    points: of `across_replicates`.  curves: of `summaries`. The rows of points, twice: `over` says
    by what they are divided; relative, relative_low, relative_high with what result. Without a
    curve to divide by, the quotient of the points, and no range.
    """
    parts = []
    none = pd.DataFrame(columns=RATIO)
    for key, own in points.sort_values("batch_size").groupby(CURVE):
        same = (points[CURVE[:3]] == list(key[:3])).all(axis=1)
        network = points[same]
        least = network.sparsity.min()
        dense = network[network.sparsity == least]
        dense = dense.set_index("batch_size").steps
        dense = dense.reindex(own.batch_size).to_numpy()
        curve = curves.get(key)
        below = curves.get((*key[:3], least))
        to_smallest = over_smallest(curve) if curve else none
        to_dense = steps_ratio(curve, below) if curve and below else none
        parts.append(_divided(own, SMALLEST, own.steps.iloc[0], to_smallest))
        parts.append(_divided(own, DENSEST, dense, to_dense))
    return pd.concat(parts, ignore_index=True) if parts else points.assign(over=[], relative=[])


def _divided(
    points: pd.DataFrame, over: str, steps: float | np.ndarray, ratios: pd.DataFrame
) -> pd.DataFrame:
    """A curve's points as rows of `relative`: by these ratios (RATIO), or where there is none by
    steps, one number or one of each point [n].
    """
    ratios = ratios[RATIO[:4]].astype(float)
    ratios = ratios.rename(columns=lambda name: name.replace("ratio", "relative"))
    rows = points.assign(over=over).merge(ratios, "left", "batch_size")
    plain = pd.Series(points.steps.to_numpy() / steps)
    return rows.assign(relative=rows.relative.fillna(plain))
