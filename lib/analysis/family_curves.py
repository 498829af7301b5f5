"""Families of workloads: how their curves compare."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.methods import WITH_MOMENTUM
from lib.records import results as on_record
from lib.records import store
from lib.studies import plans
from lib.studies.families import FAMILIES, Family
from lib.studies.study import Study
from lib.workloads.catalogue import EASIER, workload


def studies(families: dict[str, Family]) -> dict[tuple[str, str], Study]:
    """What the book's studies plan for the dense networks of these families: (family, member) -> its cells."""
    every = dict.fromkeys(c for name, s in plans.STUDIES.items() if name not in plans.APART for c in s.cells)
    usual = {k: v for k, v in plans.USUAL.items() if k not in ("stop", "max_steps")} | {"sparsity": 0.0}
    every = [c for c in every if all(getattr(c, k) == v for k, v in usual.items())]
    found = {}
    for name, family in families.items():
        for member, (work, algorithm) in family.members.items():
            names = (work, work + EASIER) if family.goal else (work,)  # they differ in what searches wait for
            same = {(name, algorithm, family.stop) for name in names}
            if cells := tuple(c for c in every if (c.workload, c.algorithm, c.stop) in same):
                found[name, member] = Study(name, name, cells)
    return found


def results(families: dict[str, Family], tables: dict[tuple[str, str], pd.DataFrame] | None = None) -> pd.DataFrame:
    """All trials of the dense networks of these families, with columns family and member.

    All members of a family are read at one goal: the family's, or the hardest easier one that every search of its members met
    that has others beside it (`scaling.shared_goals`); where the family has none, each at its workload's.
    tables: the trials of each of `studies`, as `lib.records.results.read` gives them; None: those on record.  A family is left
    out until two of its members have curves of three batch sizes.
    """
    planned = studies(families)
    tables = on_record.read_each(planned) if tables is None else tables
    parts, heads, missing = [], {}, {}  # members of several families count once
    for (name, member), frame in tables.items():
        missing |= dict.fromkeys(frame.attrs["missing"])
        heads |= {head["sha256"]: head for head in frame.attrs["provenance"]}
        if len(frame):
            work = families[name].members[member][0]
            goal = families[name].goal or workload(work).goal
            parts.append(scaling.at_goal(frame.assign(workload=work), goal).assign(family=name, member=member))
    comparable = pd.Series([t.family.iloc[0] for t in parts if t.batch_size.nunique() >= 3], dtype=str).value_counts()
    parts = [t for t in parts if comparable.get(t.family.iloc[0], 0) > 1]
    easiest = {}
    for part in parts:
        own = scaling.shared_goals(part)[part.workload.iloc[0]]
        easiest[part.family.iloc[0]] = max(own, easiest.get(part.family.iloc[0], 0.0))
    parts = [scaling.at_goal(t, easiest[name]) if families[name := t.family.iloc[0]].goal else scaling.at_shared_goals(t)
             for t in parts]  # fmt: skip
    joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    cells = {cell for study in planned.values() for cell in study.cells}
    joined.attrs.update(provenance=store.Shared(heads.values()), cells_planned=len(cells), missing=store.Shared(missing))
    return joined


def curves(trials: pd.DataFrame) -> pd.DataFrame:
    """Points of every curve as `scaling.across_replicates` gives them, with family and member, and twice three columns.

    steps_low, steps_high, steps_perfect; relative, relative_low, relative_high, relative_perfect: over the steps at the
    smallest batch size that all members of the family have.
    """
    parts = []
    for (name, member), member_trials in _by_member(trials):
        points = scaling.across_replicates(scaling.steps_to_result(member_trials))
        parts.append(points.assign(family=name, member=member))
    if not parts or not sum(map(len, parts)):
        return pd.DataFrame()
    joined = pd.concat(parts, ignore_index=True)
    for _, points in joined.groupby("family"):
        shared = set.intersection(*(set(m.batch_size) for _, m in points.groupby("member")))
        base = min(shared or set(points.batch_size))
        first = points[points.batch_size == base].set_index("member").steps.reindex(points.member).to_numpy()
        joined.loc[points.index, ["first", "base"]] = np.stack([first, np.full(len(points), base)], 1)
    perfect = joined["first"] * joined.base / joined.batch_size
    joined = joined.assign(steps_low=joined.low, steps_high=joined.high, steps_perfect=perfect)
    whole = {"relative": "steps", **{f"relative_{n}": f"steps_{n}" for n in ("low", "high", "perfect")}}
    return joined.assign(**{new: joined[old] / joined["first"] for new, old in whole.items()})


def _by_member(trials: pd.DataFrame):
    """In the order in which families list their members."""
    return trials.groupby(["family", "member"], sort=False) if len(trials) else ()


def bends(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.summaries` of every member with at least three batch sizes, with family, member, goal, trials and curves.

    curves: of the member, a `scaling.Curve`.
    """
    rows = []
    for (name, member), member_trials in _by_member(trials):
        summary, drawn = scaling.summaries(member_trials)
        if len(summary):
            more = {
                "family": name,
                "member": member,
                "goal": member_trials.goal.iloc[0],
                "trials": member_trials.groupby("batch_size").size().min(),
            }
            rows.append(summary.assign(**more, curves=list(drawn.values())))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def effects(summary: pd.DataFrame) -> pd.DataFrame:
    """Per family, the bend of its last member (or end) over that of its first, at the batch sizes both have.

    summary: of `bends`.  Columns: family, first, last, ratio (median), ratio_low, ratio_high (5, 95 %), inside (whether both
    bend within these batch sizes; else the ratio is a bound).
    """
    rows = []
    for name, members in summary.groupby("family", sort=False) if len(summary) else ():
        order = [m for m in FAMILIES[name].ends or FAMILIES[name].members if m in set(members.member)]
        if len(order) > 1:
            rows += _compared(members, order[0], order[-1])
    return pd.DataFrame(rows, columns=["family", "first", "last", "ratio", "ratio_low", "ratio_high", "inside"])


def _compared(members: pd.DataFrame, first: str, last: str) -> list[dict]:
    """A row of `effects` for two members of one family, none if they share fewer than three batch sizes."""
    below, above = (members.set_index("member").curves[m] for m in (first, last))
    values, drawn = scaling.ratios(above, below, "critical"), scaling.pair(above, below)
    if not len(values):
        return []
    inside = all(d.columns.min() < scaling.redrawn(d).critical.median() < d.columns.max() for d in drawn)
    return [{"family": members.family.iloc[0], "first": first, "last": last, **scaling.ranged("ratio", values), "inside": inside}]


def over_sgd(drawn: dict) -> pd.DataFrame:
    """Every dense curve with momentum beside the same workload's with SGD, at the batch sizes both have.

    drawn: as `scaling.summaries` returns it.  Columns: workload, algorithm, sizes (shared), smallest; bend (momentum's over
    SGD's: median), bend_low, bend_high (5, 95 %), draws (of it); c1, c2 (the same of these constants), with their ends;
    steps (SGD's over momentum's at the smallest batch), steps_low, steps_high, steps_draws.
    """
    rows = []
    for (work, algorithm, pruned, sparsity), curve in drawn.items():
        plain = drawn.get((work, "sgd", pruned, sparsity))
        if algorithm not in WITH_MOMENTUM or sparsity or plain is None or not len(bend := scaling.ratios(curve, plain, "critical")):
            continue
        over = scaling.steps_ratio(plain, curve)
        shared, steps = over.columns, over.iloc[:, 0].to_numpy()
        constants = {name: scaling.ratios(curve, plain, name) for name in ("c1", "c2")}
        rows.append({"workload": work, "algorithm": algorithm, "sizes": len(shared), "smallest": shared.min(),
                     **scaling.ranged("bend", bend), **scaling.ranged("steps", steps), "draws": bend, "steps_draws": steps,
                     **{k: v for name, draws in constants.items() for k, v in scaling.ranged(name, draws).items()}})  # fmt: skip
    return pd.DataFrame(rows)


def easy_over_hard(trials: pd.DataFrame) -> pd.DataFrame:
    """The bend of every dense curve at the easiest goal of its workload over that at the table's (`scaling.at_shared_goals`).

    Columns: workload, algorithm, easy, hard (goal errors), bend (median), bend_low, bend_high (5, 95 %), draws (of it).
    """
    rows = []
    dense = trials[trials.sparsity == 0] if len(trials) else trials
    for (work, algorithm), searched in dense.groupby(["workload", "algorithm"]) if len(dense) else ():
        hardest = searched.goal.iloc[0]
        if max(goals := scaling.goals(searched), default=0) <= hardest:
            continue
        easy, hard = (scaling.curve_of(searched, goal) for goal in (max(goals), hardest))
        bend = scaling.ratios(easy, hard, "critical")
        if len(bend):
            rows.append({"workload": work, "algorithm": algorithm, "easy": max(goals), "hard": hardest,
                         **scaling.ranged("bend", bend), "draws": bend})  # fmt: skip
    return pd.DataFrame(rows)


def clear(compared: pd.DataFrame) -> pd.DataFrame:
    """The rows of `effects` whose interval lies on one side of one, the one that is surely farthest from it first."""
    low, high = np.log(compared.ratio_low.clip(lower=1e-9)), np.log(compared.ratio_high)
    near = np.maximum(np.maximum(low, -high), 0)
    return compared.assign(near=near)[near > 0].sort_values("near", ascending=False, ignore_index=True)


def at_easiest(trials: pd.DataFrame, name: str) -> pd.DataFrame:
    """`effects` of one family at the easiest goal of its ladder, of the members that met it.

    Column goal: that error.  Empty if the family has no trials.
    """
    own = trials[trials.family == name] if len(trials) else trials
    if not len(own):
        return effects(pd.DataFrame()).assign(goal=np.nan)
    goal = max(scaling.goals(own))
    met = own[own.groupby("member")[f"steps@{goal:g}"].transform("count") > 0]
    return effects(bends(scaling.at_goal(met, goal))).assign(goal=goal)
