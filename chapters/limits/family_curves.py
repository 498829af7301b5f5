"""Families of workloads: how their curves compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from chapters.limits.families import Family
from lib.analysis import goals, scaling
from lib.workloads.catalogue import EASIER, WORKLOADS

EFFECTS = "family first last goal ratio ratio_low ratio_high n inside effect".split()


def results(published: pd.DataFrame, families: dict[str, Family]) -> pd.DataFrame:
    """The trials of the dense networks of these families, with columns family and member.

    A member is left out until its curve has three batch sizes.

    Args:
        published: of `lib.claims.judging.published`: momentum over the published range, the only
            one that all members have.
    """
    parts = []
    for name, family in families.items() if len(published) else ():
        dense = published[published.sparsity == 0]
        own = dense[dense.algorithm == family.algorithm]
        for member, work in family.members.items():
            goal = goals.goal(work) if family.goal is None else family.goal
            names = {work, work + EASIER} & WORKLOADS.keys()
            # Searches that wait for an easier goal end before
            names = [known for known in names if goal in WORKLOADS[known].goals]
            trials = own[own.workload.isin(names)]
            if trials.batch_size.nunique() >= 3:
                trials = trials.assign(workload=work, family=name, member=member)
                parts.append(scaling.at_goal(trials, goal))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """Points of every curve as `scaling.across_replicates` gives them, with family and member, and
    relative, relative_low, relative_high and relative_perfect: over the steps at the smallest batch
    size that all members of the family have.

    trials: of `results`.
    """
    parts = []
    for (name, member), own in trials.groupby(["family", "member"], sort=False):
        points = scaling.across_replicates(scaling.steps_to_result(own))
        parts.append(points.assign(family=name, member=member))
    points = pd.concat(parts, ignore_index=True)
    have = points.groupby(["family", "batch_size"]).member.transform("nunique")
    shared = points[have == points.groupby("family").member.transform("nunique")]
    base = points.family.map(shared.groupby("family").batch_size.min())
    first = points[points.batch_size == base].set_index(["family", "member"]).steps
    first = first[pd.MultiIndex.from_frame(points[["family", "member"]])].to_numpy()
    for old, end in (("steps", ""), ("low", "_low"), ("high", "_high")):
        points[f"relative{end}"] = points[old] / first
    return points.assign(relative_perfect=base / points.batch_size)


def effects(trials: pd.DataFrame) -> pd.DataFrame:
    """Per family, the critical batch size of its last member over that of its first, at the batch
    sizes both have.

    trials: of `results`.  Columns: family, first, last, goal, ratio, ratio_low, ratio_high (0 or
    inf: no bound), n (searches), inside (whether both lie within these batch sizes; else the ratio
    is a bound), effect (`scaling.Effect`), near (how far at least the ratio is from one, in
    logarithms), clear (whether its interval leaves out one).
    """
    rows = []
    for name, own in trials.groupby("family", sort=False) if len(trials) else ():
        members = own.member.unique()
        ends = (members[0], members[-1])
        first, last = (_curve(own[own.member == member]) for member in ends)
        found = scaling.critical_ratio(last, first) if len(members) > 1 else None
        if found is not None:
            inside = all(map(_bends_inside, scaling.alike(last, first)))
            ratio = found.row("ratio").values()
            rows.append((name, *ends, own.goal.iloc[-1], *ratio, found.n, inside, found))
    compared = pd.DataFrame(rows, columns=EFFECTS)
    low = np.log(compared.ratio_low.astype(float).clip(lower=1e-9))
    near = np.maximum(low, -np.log(compared.ratio_high.astype(float)))
    return compared.assign(near=near, clear=near > 0)


def _curve(trials: pd.DataFrame) -> scaling.Curve:
    return scaling.curve_of(scaling.steps_to_result(trials))


def _bends_inside(curve: scaling.Curve) -> bool:
    """Whether a curve's critical batch size lies within its batch sizes."""
    return curve.sizes.min() < np.exp(scaling.critical(curve).value) < curve.sizes.max()


def once(curves: dict[tuple, scaling.Curve]) -> dict[tuple, scaling.Curve]:
    """Of the dense curves of a network and method, at several goals or under several names, that of
    the most searches.
    """
    found = {}
    for key, curve in curves.items():
        work = WORKLOADS[key[0]]
        same = (work.dataset, work.model, work.train_size, *key[1:3])
        if key[3] == 0 and (same not in found or curve.n > found[same][1].n):
            found[same] = key, curve
    return dict(found.values())


def spread(curves: Sequence[scaling.Curve]) -> tuple[float, float, float]:
    """The largest critical batch size over the smallest, low, high (0 or inf: no bound).

    Each curve's interval is so wide that all hold at once in 90 % of cases (Bonferroni's
    correction): which two are the extremes is chosen by the data.
    """
    found = [scaling.critical(curve) for curve in curves]
    sure = 1 - (1 - scaling.LEVEL) / 2 / len(found)
    told = pd.DataFrame(map(vars, found))
    reach = stdtrit(told.freedom, sure) * told.error
    low = told.value - reach
    low[told.below] = -np.inf
    high = told.value + reach
    high[told.above] = np.inf
    apart = told.value.max() - told.value.min()
    least = max(low.max() - high.min(), 0.0)
    most = high.max() - low.min()
    return tuple(float(np.exp(v)) for v in (apart, least, most))
