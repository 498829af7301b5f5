"""Races: what abandoning trials that fall behind would have changed in the searches on record, and
what it would have saved.

Two rules, neither with a check of its own.  "race" (`lib.engine.lockstep`): a trial leaves that has
not met a goal of the ladder within `a` times the steps in which the first trial met it.  "losses":
the same, and training losses l are rungs, too, with a (1 + l) in place of a; it is judged on
searches that say when losses fell.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib import own, require
from lib.engine.vocabulary import LOSSES, next_check
from lib.fields import Number, check
from lib.records import store
from lib.records.store import DATA, record
from lib.studies.cells import Cell
from lib.studies.plans import STUDIES
from lib.studies.races import BY_GOALS, BY_LOSSES, SLOW_TO_START, WATCHED
from lib.workloads import datasets
from lib.workloads.catalogue import workload

FACTORS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)  # of a rule, among which one is chosen
UNCHANGED = (
    0.98  # share of searches whose steps to result must be unchanged for a factor to be chosen
)
COLUMNS = [
    "rule",
    "data",
    "left_out",
    "a",
    "calibrated",
    "cells",
    "unchanged",
    "all_goals",
    "lost",
    "worst_factor",
    "cost",
]


@dataclass(frozen=True)
class Search:
    """A search that was stopped at its goal, as its record tells.

    first [trials, goals]: the check at which each trial met each goal, the loosest goal first; inf
    if it did not. last [trials]: the steps that each trial took, up to which `first` is known.
    fell [trials, losses]: the check at which its training loss was first so low, the highest loss
    first, as of `first`; None if that is not on record.
    """

    cell: Cell
    first: np.ndarray
    last: np.ndarray
    fell: np.ndarray | None = None

    @property
    def end(self) -> float:
        """The step at which the first trial met the hardest goal, or at which the last trial ended."""
        return min(self.first[:, -1].min(), self.last.max())


# The step after which each trial is abandoned [trials], inf for never
Rule = Callable[[Search, float], np.ndarray]


def searches(folder: Path = DATA, replicates: int = 3) -> list[Search]:
    """Searches of the book's studies of images on record that no rule has shortened and that were
    stopped at their goal.

    Some of them are on record twice, without and with the steps at which losses fell.

    replicates: only those below it, since hundreds of searches of one small network would decide by
    themselves; those planned to judge races are few.
    """
    goals = (
        c
        for s in STUDIES.values()
        for c in s.cells
        if c.stop == "goal" and c.race in (None, WATCHED)
    )
    planned = dict.fromkeys(c for c in goals if c.race is not None or c.replicate < replicates)
    files = {
        c: record(c, folder)
        for c in planned
        if not own.is_own(c.workload) and c.work.dataset in datasets.NAMES
    }
    return [search(c, store.read(file, c)[1]) for c, file in files.items() if store.exists(file)]


def search(cell: Cell, table: pd.DataFrame) -> Search:
    """The search of a cell, from its record's table."""
    first = table[[f"steps@{goal:g}" for goal in cell.work.goals[::-1]]].to_numpy(float)
    losses = [column for column in table if column.startswith("loss@")]
    fell = table[losses].fillna(np.inf).to_numpy(float) if losses else None
    return Search(
        cell, np.where(np.isnan(first), np.inf, first), table.last_step.to_numpy(float), fell
    )


@functools.lru_cache(maxsize=8)
def _checks(checks: str, most: int) -> np.ndarray:
    """All steps up to the first from `most` on at which errors are measured."""
    steps = [next_check(0, checks)]
    while steps[-1] < most:
        steps.append(next_check(steps[-1], checks))
    return np.array(steps)


def _check_from(search: Search, step: float) -> float:
    """The first check at or after a step."""
    most = search.cell.max_steps or search.cell.work.max_steps
    grid = _checks(search.cell.checks, most)
    return float(grid[np.searchsorted(grid, step)]) if step <= grid[-1] else np.inf


def race(search: Search, a: float) -> np.ndarray:
    """The check after which each trial is abandoned [trials]: it has not met a goal within a times
    the first trial's steps.
    """
    return _behind(search, search.first, np.full(search.first.shape[1], a))


def losses(search: Search, a: float) -> np.ndarray:
    """The same where training losses are rungs, too.  Raises ValueError for a search that does not
    say when these fell.
    """
    require(
        search.fell is not None,
        "search",
        search.cell,
        "one whose record says when training losses fell",
    )
    patience = a * (1 + np.array(LOSSES + (0.0,) * search.first.shape[1]))
    return _behind(search, np.concatenate([search.fell, search.first], axis=1), patience)


def _behind(search: Search, came: np.ndarray, patience: np.ndarray) -> np.ndarray:
    """The check after which each trial is abandoned [trials], which came [trials, rungs] to each
    rung at such a check.

    patience [rungs]: how many times the first trial's steps the others have.  Only a trial that is
    still there comes first to a rung; so the earlier deadlines are right before the later ones are,
    and the last round changes nothing.
    """
    gone = np.full(len(came), np.inf)
    while True:
        earliest = np.where(came <= gone[:, None], came, np.inf).min(0)
        late = patience * earliest
        deadlines = np.array(
            [_check_from(search, step) if math.isfinite(step) else np.inf for step in late]
        )
        after = np.where(came > deadlines, deadlines, np.inf).min(1)
        if np.array_equal(after, gone):
            return gone
        gone = after


RULES: dict[str, Rule] = {"race": race, "losses": losses}


def outcome(search: Search, gone: np.ndarray) -> dict:
    """What abandoning trials after these checks [trials] changes in a search.

    cost: trial-steps up to the steps to result over the lock step's.  unchanged: whether the steps
    to result are, at the hardest goal that the search met; all_goals: at every goal it met.
    factor: the largest of new over old steps to any goal; lost: whether a goal is met by no trial
    that is left, as far as the record goes, so that factor is a lower bound. Raises ValueError if
    the search met no goal.
    """
    before = search.first.min(0)
    met = np.isfinite(before)
    require(met.any(), "search", search.cell, "one in which a trial met a goal")
    after = np.where(search.first <= gone[:, None], search.first, np.inf).min(0)
    lost = met & ~np.isfinite(after)
    known = np.where(lost, search.last.max(), after)[met] / before[met]
    horizon = min(after[-1], search.last.max())
    spent = np.minimum(np.minimum(search.last, gone), horizon).sum()
    return {
        "cost": spent / np.minimum(search.last, search.end).sum(),
        "unchanged": bool(known[-1] == 1 and not lost.any()),
        "all_goals": bool((known == 1).all() and not lost.any()),
        "lost": bool(lost.any()),
        "factor": float(known.max()),
    }


def replays(
    found: Iterable[Search], rule: str = "race", factors: Iterable[float] = FACTORS
) -> pd.DataFrame:
    """A row per factor and search that met a goal: workload, algorithm, sparsity, batch_size,
    replicate, data, a, `outcome`.

    data: the data set's size decides how fine errors are, so digits and images are calibrated
    apart.  Searches that say when losses fell are for the rule of losses, all others for the other
    rules, so that none is judged twice. Raises ValueError for a rule that is unknown or a factor
    below 1.
    """
    require(rule in RULES, "rule", rule, RULES)
    rows = []
    for a in factors:
        check("a", a, Number("[1, inf]", "a number from 1"))
    asked = (s for s in found if (s.fell is not None) == (rule == "losses"))
    for one in (s for s in asked if np.isfinite(s.first).any()):
        about = {
            k: getattr(one.cell, k)
            for k in ("workload", "algorithm", "sparsity", "batch_size", "replicate")
        }
        about["data"] = "digits" if workload(one.cell.workload).dataset == "digits" else "images"
        rows += [{**about, "a": a, **outcome(one, RULES[rule](one, a))} for a in factors]
    return pd.DataFrame(rows)


def chosen(replayed: pd.DataFrame, least: float = UNCHANGED) -> tuple[float, bool]:
    """The factor of least median cost with which this share of the searches keep their steps to
    result, and whether any does.

    If none does, the one with which most do.  Of factors that are as good the largest, which
    changes least. replayed: of `replays`.
    """
    by = replayed.groupby("a").agg(unchanged=("unchanged", "mean"), cost=("cost", "median"))
    fine = by.unchanged >= least
    able = by[fine] if fine.any() else by[by.unchanged == by.unchanged.max()]
    return float(able.index[able.cost == able.cost.min()].max()), bool(fine.any())


def table(
    rules: Iterable[str] = tuple(RULES), least: float = UNCHANGED, found: list[Search] | None = None
) -> pd.DataFrame:
    """Each rule judged on workloads that had no part in choosing its factor, a row per rule and
    workload left out.

    Columns: rule; data ("digits" or "images": factors are chosen among the other workloads of the
    same kind); left_out (a workload; "each": all of these rows' searches together; "none": chosen
    and judged on all); a, calibrated (`chosen`; NaN where several are); cells, of which unchanged
    and all_goals are the shares with the same steps to the hardest goal and to all goals, lost the
    count without a trial that meets one; worst_factor (of new over old steps); cost (median share
    of the lock step's trial-steps).  found: of `searches`, as on record unless given.
    """
    found, rows = searches() if found is None else found, []
    for rule in rules:
        replayed = replays(found, rule)
        for data, kind in replayed.groupby("data", sort=False) if len(replayed) else ():
            judged = {
                name: _left_out(kind, kind.workload == name, least)
                for name in sorted(kind.workload.unique())
            }
            if len(judged) > 1:
                apart = pd.concat([own for _, _, own in judged.values()])
                judged["each"] = (
                    np.nan,
                    all(calibrated for _, calibrated, _ in judged.values()),
                    apart,
                )
            else:
                judged = {}
            judged["none"] = _left_out(kind, kind.workload.isna(), least)
            rows += [
                {
                    "rule": rule,
                    "data": data,
                    "left_out": name,
                    "a": a,
                    "calibrated": calibrated,
                    **_judged(own),
                }
                for name, (a, calibrated, own) in judged.items()
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def used(found: list[Search]) -> pd.DataFrame:
    """The rules that the book uses, with their factors, on all searches: a row per rule and data
    with the columns of `table`.

    data: "slow", too: the training methods that start too slowly for a race on losses.
    """
    rows = []
    for rule, fields in {"race": BY_GOALS, "losses": BY_LOSSES}.items():
        replayed = replays(found, rule, [fields["race"]])
        if not len(replayed):
            continue
        slow = replayed.algorithm.isin(SLOW_TO_START) & (rule == "losses")
        replayed["data"] = replayed.data.mask(slow, "slow")
        for data, kind in replayed.groupby("data", sort=False):
            rows.append({"rule": rule, "data": data, "a": fields["race"], **_judged(kind)})
    return pd.DataFrame(rows, columns=[c for c in COLUMNS if c not in ("left_out", "calibrated")])


def _left_out(
    replayed: pd.DataFrame, out: pd.Series, least: float
) -> tuple[float, bool, pd.DataFrame]:
    """`chosen` on all rows but those `out`, and with this factor the rows `out`; or all rows, if
    none is out.
    """
    a, calibrated = chosen(replayed[~out], least) if not out.all() else (np.nan, False)
    return a, calibrated, replayed[(out | ~out.any()) & (replayed.a == a)]


def _judged(rows: pd.DataFrame) -> dict:
    return {
        "cells": len(rows),
        "unchanged": rows.unchanged.mean(),
        "all_goals": rows.all_goals.mean(),
        "lost": int(rows.lost.sum()),
        "worst_factor": rows.factor.max(),
        "cost": rows.cost.median(),
    }
