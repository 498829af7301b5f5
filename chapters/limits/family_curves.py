"""Families of workloads: how their curves compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from chapters.limits.families import FAMILIES, GOALS, Family
from lib.analysis import goals, scaling
from lib.records import results as on_record
from lib.records import store
from lib.studies import plans
from lib.studies.study import Study
from lib.workloads.catalogue import EASIER, WORKLOADS

# Fields of `plans.USUAL` in which searches to the same goal may differ
FREE = ("stop", "max_steps")
EFFECTS = "family first last goal ratio ratio_low ratio_high n inside effect".split()


def studies(families: dict[str, Family]) -> dict[tuple[str, str], Study]:
    """What the book's studies plan for the dense networks of these families: (family, member) ->
    its cells.
    """
    every = dict.fromkeys(c for s in plans.STUDIES.values() if not s.apart for c in s.cells)
    usual = {k: v for k, v in plans.USUAL.items() if k not in FREE} | {
        "sparsity": 0.0,
        "stop": "goal",
    }
    every = [c for c in every if all(getattr(c, k) == v for k, v in usual.items())]
    found = {}
    for name, family in families.items():
        for member, (work, algorithm) in family.members.items():
            goal = goal_of(name, work)  # searches that wait for an easier one end before
            names = [
                w for w in (work, work + EASIER) if w in WORKLOADS and goal in WORKLOADS[w].goals
            ]
            if cells := tuple(c for c in every if c.workload in names and c.algorithm == algorithm):
                found[name, member] = Study(name, name, cells)
    return found


def goal_of(family: str, work: str) -> float:
    """The goal error at which a member of a family is read."""
    return GOALS[family] if family in GOALS else goals.goal(work)


def results(
    families: dict[str, Family], tables: dict[tuple[str, str], pd.DataFrame] | None = None
) -> pd.DataFrame:
    """All trials of the dense networks of these families, with columns family and member.

    All members of a family are read at one goal (`families.GOALS`), or each at its workload's;
    momentum is that of the published range, the only one that all of them have. tables: the trials
    of each of `studies`, as `lib.records.results.read` gives them; None: those on record.  A family
    is left out until two of its members have curves of three batch sizes.
    """
    planned = studies(families)
    if tables is None:
        tables = {
            key: on_record.read(own, without=scaling.WITHIN_BUDGETS) for key, own in planned.items()
        }
    parts, heads, missing = [], {}, {}  # members of several families count once
    for (name, member), frame in tables.items():
        missing |= dict.fromkeys(frame.attrs["missing"])
        heads |= {head["sha256"]: head for head in frame.attrs["provenance"]}
        if len(frame) and frame.batch_size.nunique() >= 3:
            work = families[name].members[member][0]
            read = scaling.at_goal(frame.assign(workload=work), goal_of(name, work))
            parts.append(read.assign(family=name, member=member))
    comparable = pd.Series([t.family.iloc[0] for t in parts], dtype=str).value_counts()
    parts = [t for t in parts if comparable[t.family.iloc[0]] > 1]
    joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    cells = {cell for study in planned.values() for cell in study.cells}
    joined.attrs.update(
        provenance=store.Shared(heads.values()),
        cells_planned=len(cells),
        missing=store.Shared(missing),
    )
    return joined


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """Points of every curve as `scaling.across_replicates` gives them, with family and member, and
    relative, relative_low, relative_high and relative_perfect: over the steps at the smallest batch
    size that all members of the family have.
    """
    parts = []
    for (name, member), member_trials in _by_member(trials):
        points = scaling.across_replicates(scaling.steps_to_result(member_trials))
        parts.append(points.assign(family=name, member=member))
    if not parts or not sum(map(len, parts)):
        return pd.DataFrame()
    joined = pd.concat(parts, ignore_index=True)
    joined = pd.concat([_with_first(own) for _, own in joined.groupby("family", sort=False)])
    over = {"relative": "steps", "relative_low": "low", "relative_high": "high"}
    parts = {new: joined[old] / joined["first"] for new, old in over.items()}
    return joined.assign(**parts, relative_perfect=joined.base / joined.batch_size)


def _with_first(points: pd.DataFrame) -> pd.DataFrame:
    """A family's points with base, the smallest batch size that all members have (else the
    smallest), and first, a member's steps there.
    """
    members = points.groupby("batch_size").member.nunique()
    shared = members.index[members == points.member.nunique()]
    base = min(shared, default=points.batch_size.min())
    steps = points[points.batch_size == base].set_index("member").steps
    return points.assign(base=base, first=points.member.map(steps))


def _by_member(trials: pd.DataFrame):
    """In the order in which families list their members."""
    return trials.groupby(["family", "member"], sort=False) if len(trials) else ()


def bends(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of every member with at least three batch sizes, with family, member and
    curve (`scaling.Curve`).
    """
    rows = []
    for (name, member), member_trials in _by_member(trials):
        summary, found = scaling.summaries(member_trials)
        if len(summary):
            rows.append(summary.assign(family=name, member=member, curve=list(found.values())))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def effects(summary: pd.DataFrame) -> pd.DataFrame:
    """Per family, the critical batch size of its last member (or end) over that of its first, at
    the batch sizes both have.

    summary: of `bends`.  Columns: family, first, last, goal, ratio, ratio_low, ratio_high (0 or
    inf: no bound), n (searches), inside (whether both lie within these batch sizes; else the ratio
    is a bound), effect (`scaling.Effect`), near (how far at least the ratio is from one, in
    logarithms), clear (whether its interval leaves out one).
    """
    rows = []
    for name, members in summary.groupby("family", sort=False) if len(summary) else ():
        given = FAMILIES[name].ends or FAMILIES[name].members
        order = [member for member in given if member in set(members.member)]
        first, last = (members.set_index("member").loc[order[i]] for i in (0, -1))
        found = scaling.critical_ratio(last.curve, first.curve) if len(order) > 1 else None
        if found is not None:
            inside = all(map(_bends_inside, scaling.alike(last.curve, first.curve)))
            ratio = found.row("ratio").values()
            ends = (order[0], order[-1])
            rows.append((name, *ends, last.goal, *ratio, found.n, inside, found))
    compared = pd.DataFrame(rows, columns=EFFECTS)
    near = _distance_from_one(compared)
    return compared.assign(near=near, clear=near > 0)


def _bends_inside(curve: scaling.Curve) -> bool:
    """Whether a curve's critical batch size lies within its batch sizes."""
    return curve.sizes.min() < np.exp(scaling.critical(curve).value) < curve.sizes.max()


def _distance_from_one(compared: pd.DataFrame) -> pd.Series:
    """How far at least, in logarithms, each ratio is from one; 0 where its interval has one."""
    low = np.log(compared.ratio_low.astype(float).clip(lower=1e-9))
    high = np.log(compared.ratio_high.astype(float))
    return np.maximum(np.maximum(low, -high), 0)


def order(compared: pd.DataFrame) -> list[str]:
    """Families, the clear ones first: those whose difference shows within their batch sizes."""
    first = compared[compared.clear].sort_values(["inside", "near"], ascending=False)
    return list(dict.fromkeys([*first.family, *compared.family]))


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
    reach = [stdtrit(e.freedom, sure) * e.error for e in found]
    low = np.array([-np.inf if e.below else e.value - r for e, r in zip(found, reach)])
    high = np.array([np.inf if e.above else e.value + r for e, r in zip(found, reach)])
    values = [e.value for e in found]
    ends = max(values) - min(values), max(low.max() - high.min(), 0.0), high.max() - low.min()
    return tuple(float(np.exp(v)) for v in ends)
