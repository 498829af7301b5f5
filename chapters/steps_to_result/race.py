"""Races: what abandoning trials that fall behind would have changed in the searches on record, and
what it would have saved.

Two rules, without extra checks.  "goals" (`lib.engine.lockstep`): a trial is abandoned if it has
not met a goal of the ladder within `a` times the steps that the first trial took.  "losses": the
same, and training losses l are rungs, too, with a (1 + l) in place of a; it is judged on searches
that record when losses fell.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.claims.judging import kept
from lib.engine.vocabulary import LOSSES, next_check
from lib.records import store
from lib.records.searches import recorded
from lib.records.store import record
from lib.studies.plans import STUDIES
from lib.studies.search import Search as Spec
from lib.studies.study import BY_GOALS, BY_LOSSES, SLOW_TO_START, WATCHED
from lib.wording import percent
from lib.workloads import datasets

REPLICATES = 3  # judged per cell
FACTORS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)  # of a rule, to choose from
# Share of searches whose steps to result must be unchanged for a factor to be chosen
UNCHANGED = 0.98


@dataclass(frozen=True)
class Search:
    """A search that was stopped at its goal, from its record.

    Attributes:
        cell: what was searched.
        first: the check at which each trial met each goal [trials, goals], the loosest goal first;
            inf if it did not.
        last: the steps that each trial took [trials]; `first` is known up to these.
        fell: the check at which each trial's training loss first fell to each level [trials,
            losses], the highest first; inf if it did not; None if that is not on record.
    """

    cell: Spec
    first: np.ndarray
    last: np.ndarray
    fell: np.ndarray | None = None

    @property
    def end(self) -> float:
        """The step at which the first trial met the hardest goal, or at which the last trial ended."""
        return min(self.first[:, -1].min(), self.last.max())


def searches() -> list[Search]:
    """The recorded searches from the book's studies of images (except digits) that were stopped at
    their goal and not shortened by a rule.

    Some are on record twice, without and with the steps at which losses fell. Of the former only
    the first REPLICATES count, since hundreds of searches of one small network would dominate; the
    latter, planned to judge races, are few.
    """
    cells = dict.fromkeys(c for s in STUDIES.values() for c in s.searches if c.stop == "goal")
    names = {*datasets.NAMES} - {"digits"}
    exact = [
        c
        for c in cells
        if c.work.dataset in names
        and (c.race == WATCHED or c.race is None and c.replicate < REPLICATES)
    ]
    return [search(c, store.read(record(c), c)[1]) for c in recorded(exact).values()]


def search(cell: Spec, table: pd.DataFrame) -> Search:
    """The `Search` of a cell, from its record's table."""
    goals = [f"steps@{goal:g}" for goal in cell.work.goals[::-1]]
    losses = [column for column in table if column.startswith("loss@")]
    first, fell = (table[names].fillna(np.inf).to_numpy(float) for names in (goals, losses))
    return Search(cell, first, table.last_step.to_numpy(float), fell if losses else None)


@functools.lru_cache(maxsize=8)
def _checks(checks: str, most: int) -> np.ndarray:
    """All steps at which errors are measured, up to the first one not below `most`, and inf."""
    steps = [next_check(0, checks)]
    while steps[-1] < most:
        steps.append(next_check(steps[-1], checks))
    return np.array([*steps, np.inf])


def abandoned(search: Search, a: float, rule: str) -> np.ndarray:
    """The check after which each trial is abandoned [trials], inf for never: it has missed a rung
    (a goal or, with rule "losses", a training loss) within `a` times the first trial's steps.

    Only trials still running can be first to a rung, so deadlines become right one after another,
    from the earliest on, and the loop ends when a round changes nothing.
    """
    rungs = search.first
    patience = np.full(rungs.shape[1], a)
    if rule == "losses":
        rungs = np.concatenate([search.fell, rungs], axis=1)
        patience = np.append(a * (1 + np.array(LOSSES)), patience)
    checks = _checks(search.cell.checks, search.cell.max_steps or search.cell.work.max_steps)
    gone = np.full(len(rungs), np.inf)
    while True:
        earliest = np.where(rungs <= gone[:, None], rungs, np.inf).min(0)
        deadlines = checks[np.searchsorted(checks, patience * earliest)]
        after = np.where(rungs > deadlines, deadlines, np.inf).min(1)
        if np.array_equal(after, gone):
            return gone
        gone = after


def outcome(search: Search, gone: np.ndarray) -> dict:
    """What abandoning trials after these checks [trials] changes in a search that met a goal.

    cost: trial-steps up to the steps to result, over those in lock step.  unchanged: whether the
    steps to result stay the same, at the hardest goal that the search met.
    factor: the largest ratio of new to old steps, over all goals; it is a lower bound if no
    remaining trial meets a goal within the record.
    """
    before = search.first.min(0)
    met = np.isfinite(before)
    after = np.where(search.first <= gone[:, None], search.first, np.inf).min(0)
    lost = met & ~np.isfinite(after)
    factors = np.where(lost, search.last.max(), after)[met] / before[met]
    horizon = min(after[-1], search.last.max())
    spent = np.minimum(np.minimum(search.last, gone), horizon).sum()
    return {
        "cost": spent / np.minimum(search.last, search.end).sum(),
        "unchanged": bool(factors[-1] == 1 and not lost.any()),
        "factor": float(factors.max()),
    }


def replays(searches: Iterable[Search], rule: str, factors: Iterable[float]) -> pd.DataFrame:
    """A row per factor and search that met a goal: workload, algorithm, a, and `outcome`.

    Searches that record when losses fell judge rule "losses", all others rule "goals", so that none
    counts twice.
    """
    rows = []
    for search in searches:
        judges_losses = search.fell is not None
        if judges_losses == (rule == "losses") and np.isfinite(search.first).any():
            cell = search.cell
            about = {"workload": cell.workload, "algorithm": cell.algorithm}
            for a in factors:
                changes = outcome(search, abandoned(search, a, rule))
                rows.append({**about, "a": a, **changes})
    return pd.DataFrame(rows, columns="workload algorithm a cost unchanged factor".split())


def chosen(replayed: pd.DataFrame) -> float:
    """The factor with the least median cost that keeps the steps to result in a share UNCHANGED of
    the searches, or in as many as any factor does.

    Ties go to the largest factor, which changes least. replayed: from `replays`.
    """
    by = replayed.groupby("a").agg(unchanged=("unchanged", "mean"), cost=("cost", "median"))
    able = by[by.unchanged >= min(UNCHANGED, by.unchanged.max())]
    return float(able.index[able.cost == able.cost.min()].max())


def judged() -> dict[str, list]:
    """What races by either rule do to searches, a row each: rungs, a, searches, same (the share that
    keep their steps), cost (median share of the lock step's trial-steps) and worst (the largest
    factor on steps).  The last row: the worst workload, with `a` chosen on all others.
    """
    exact = searches()
    goals = replays(exact, "goals", [BY_GOALS["race"]])
    losses = replays(exact, "losses", FACTORS)
    rules = {}
    if losses.workload.nunique() > 1:  # others to choose by
        quick = ~losses.algorithm.isin(SLOW_TO_START)
        names = losses.workload.unique()
        factor = {name: chosen(losses[losses.workload != name]) for name in names}
        held_out = losses[losses.a == losses.workload.map(factor)]
        worst = held_out.groupby("workload").unchanged.mean().idxmin()
        rules = {
            "goals": goals,
            "goals and losses": losses[(losses.a == BY_LOSSES["race"]) & quick],
            "the same, a from other workloads": held_out[held_out.workload == worst],
        }
    columns = ["rungs", "a", "searches", "same", "cost", "worst"]
    rows = [
        (name, r.a.iloc[0], len(r), r.unchanged.mean(), r.cost.median(), r.factor.max())
        for name, r in rules.items()
    ]
    return pd.DataFrame(rows, columns=columns).to_dict("list")


def table() -> pd.DataFrame:
    """The table of `judged` on the page."""
    rows = pd.DataFrame(kept("race", judged))
    rows[["same", "cost"]] = rows[["same", "cost"]].map(percent)
    names = {"same": "keep their steps", "cost": "trial-steps", "worst": "largest change"}
    return rows.rename(columns=names)
