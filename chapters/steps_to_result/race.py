"""Races: what abandoning trials that fall behind would have changed in the searches on record, and
what it would have saved.

Two rules, neither with a check of its own.  "race" (`lib.engine.lockstep`): a trial leaves that has
not met a goal of the ladder within `a` times the steps in which the first trial met it.  "losses":
the same, and training losses l are rungs, too, with a (1 + l) in place of a; it is judged on
searches that say when losses fell.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import require
from lib.engine.vocabulary import LOSSES, next_check
from lib.records import store
from lib.records.on_record import recorded_of
from lib.records.store import record
from lib.studies.cells import Cell
from lib.studies.plans import STUDIES
from lib.studies.races import BY_GOALS, BY_LOSSES, SLOW_TO_START, WATCHED
from lib.workloads import datasets

REPLICATES = 3  # of a cell that are judged
FACTORS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)  # of a rule, among which one is chosen
# Share of searches whose steps to result must be unchanged for a factor to be chosen
UNCHANGED = 0.98


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


def searches() -> list[Search]:
    """Searches of the book's studies of images on record that no rule has shortened and that were
    stopped at their goal.

    Some of them are on record twice, without and with the steps at which losses fell. Only the first
    REPLICATES, since hundreds of searches of one small network would decide by themselves; those
    planned to judge races are few.
    """
    cells = dict.fromkeys(c for s in STUDIES.values() for c in s.cells if c.stop == "goal")
    known = (c for c in cells if c.race is None and c.replicate < REPLICATES or c.race == WATCHED)
    images = (c for c in known if c.work.dataset in datasets.NAMES)
    return [search(c, store.read(record(c), c)[1]) for c in recorded_of(images)]


def search(cell: Cell, table: pd.DataFrame) -> Search:
    """The search of a cell, from its record's table."""
    goals = [f"steps@{goal:g}" for goal in cell.work.goals[::-1]]
    losses = [column for column in table if column.startswith("loss@")]
    first, fell = (table[names].fillna(np.inf).to_numpy(float) for names in (goals, losses))
    return Search(cell, first, table.last_step.to_numpy(float), fell if losses else None)


@functools.lru_cache(maxsize=8)
def _checks(checks: str, most: int) -> np.ndarray:
    """All steps up to the first from `most` on at which errors are measured, and inf."""
    steps = [next_check(0, checks)]
    while steps[-1] < most:
        steps.append(next_check(steps[-1], checks))
    return np.array([*steps, np.inf])


def abandoned(search: Search, a: float, rule: str) -> np.ndarray:
    """The check after which each trial is abandoned [trials], inf for never: it has not met a goal
    within a times the first trial's steps, nor, by the rule of "losses", a training loss.

    Only a trial that is still there comes first to a rung; so the earlier deadlines are right
    before the later ones are, and the last round changes nothing.
    """
    came = search.first
    patience = np.full(came.shape[1], a)
    if rule == "losses":
        came = np.concatenate([search.fell, came], axis=1)
        patience = np.append(a * (1 + np.array(LOSSES)), patience)
    checks = _checks(search.cell.checks, search.cell.max_steps or search.cell.work.max_steps)
    gone = np.full(len(came), np.inf)
    while True:
        earliest = np.where(came <= gone[:, None], came, np.inf).min(0)
        deadlines = checks[np.searchsorted(checks, patience * earliest)]
        after = np.where(came > deadlines, deadlines, np.inf).min(1)
        if np.array_equal(after, gone):
            return gone
        gone = after


RULES = "race", "losses"


def outcome(search: Search, gone: np.ndarray) -> dict:
    """What abandoning trials after these checks [trials] changes in a search.

    cost: trial-steps up to the steps to result over the lock step's.  unchanged: whether the steps
    to result are, at the hardest goal that the search met.
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
        "lost": bool(lost.any()),
        "factor": float(known.max()),
    }


def replays(
    found: Iterable[Search], rule: str = "race", factors: Iterable[float] = FACTORS
) -> pd.DataFrame:
    """A row per factor and search that met a goal: workload, algorithm, data, a, `outcome`.

    data: the data set's size decides how fine errors are, so digits and images are calibrated
    apart.  Searches that say when losses fell are for the rule of losses, all others for the other
    rule, so that none is judged twice.
    """
    rows = []
    asked = (s for s in found if (s.fell is not None) == (rule == "losses"))
    for one in (s for s in asked if np.isfinite(s.first).any()):
        about = {
            "workload": one.cell.workload,
            "algorithm": one.cell.algorithm,
            "data": "digits" if one.cell.work.dataset == "digits" else "images",
        }
        rows += [{**about, "a": a, **outcome(one, abandoned(one, a, rule))} for a in factors]
    return pd.DataFrame(rows)


def chosen(replayed: pd.DataFrame) -> float:
    """The factor of least median cost with which UNCHANGED of the searches keep their steps to
    result; if there is none, the one with which most do.

    Of factors that are as good the largest, which changes least. replayed: of `replays`.
    """
    by = replayed.groupby("a").agg(unchanged=("unchanged", "mean"), cost=("cost", "median"))
    able = by[by.unchanged >= min(UNCHANGED, by.unchanged.max())]
    return float(able.index[able.cost == able.cost.min()].max())


def table(found: list[Search]) -> pd.DataFrame:
    """Each rule judged on workloads that had no part in choosing its factor, a row per rule and
    workload left out.

    Columns: rule; left_out (a workload); a (`chosen` among the other workloads of its kind, digits
    or images); and those of `_judged`.
    """
    rows = []
    for rule in RULES:
        replayed = replays(found, rule)
        for _, kind in replayed.groupby("data", sort=False) if len(replayed) else ():
            for name in sorted(kind.workload.unique()) if kind.workload.nunique() > 1 else ():
                out = kind.workload == name
                a = chosen(kind[~out])
                own = kind[out & (kind.a == a)]
                rows.append({"rule": rule, "left_out": name, "a": a, **_judged(own)})
    return pd.DataFrame(rows, columns=["rule", "left_out", "a", *JUDGED])


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
    return pd.DataFrame(rows, columns=["rule", "data", "a", *JUDGED])


JUDGED = ("cells", "unchanged", "lost", "worst_factor", "cost")


def _judged(rows: pd.DataFrame) -> dict:
    """Of rows of `replays`: how many; the share with the same steps to the hardest goal; the count
    without a trial that meets one; the worst factor of new over old steps; the median share of the
    lock step's trial-steps.
    """
    return {
        "cells": len(rows),
        "unchanged": rows.unchanged.mean(),
        "lost": int(rows.lost.sum()),
        "worst_factor": rows.factor.max(),
        "cost": rows.cost.median(),
    }
