"""The searches in which the learning rate alone is tuned, and what those of a curve say of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.analysis import rates, scaling
from lib.analysis.scaling import CURVE
from lib.studies import plans
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import workload

PLANNED = ("rates-digits", "rates-fc")
FIRST = 101  # of the splits on which nothing else is searched
NEAREST = 3  # trials whose steps tell those at a rate
HARDEST, READ, EASIEST = 0, 1, -1  # places in the ladder of goals; curves are read at READ
Key = tuple[str, str, str, float]  # as of CURVE


def planned() -> list[Search]:
    """All searches of the page, the most wanted first."""
    return [cell for name in PLANNED for cell in plans.study(name).searches]


def whole() -> Study:
    """The same as one study."""
    return Study("learning-rates", "The learning rate alone", planned())


def asked(chosen) -> Study:
    """The searches that a reader asks for: those planned of a network and method, or their like."""
    splits = range(FIRST, FIRST + chosen.searches)
    alike = [cell for cell in planned() if cell.algorithm == chosen.algorithm]
    cells = [c for c in alike if c.workload == chosen.workload and c.split in splits]
    if not cells:
        space = alike[0].space if alike else None
        for n in splits:
            own = {"replicate": n, "split": n, "space": space}
            for size in chosen.batch_sizes:
                cells.append(Search(chosen.workload, size, chosen.algorithm, **own))
    cells = [cell for cell in cells if cell.batch_size in chosen.batch_sizes]
    return Study("learning-rates", "The learning rate alone", cells)


def at_goals(trials: pd.DataFrame, place: int = READ) -> pd.DataFrame:
    """The trials with the steps to the goal at this place of their workload's ladder."""
    ladders = {name: sorted(workload(name).goals) for name in trials.workload.unique()}
    goals = {name: own[min(place, len(own) - 1)] for name, own in ladders.items()}
    return scaling.at_goals(trials, goals)


# --- one curve ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Law:
    """What the searches of a network, method and sparsity say that have all batch sizes on record.

    rates, steps: ln of the best rate and of K* [searches, batch sizes]; NaN where a rate does not
    count.  why: why it does not (`rates.best_rates`).  trials: of every (search, batch size) ln of
    the rates, ln of the steps (NaN: goal not met) and ln of the last step.
    """

    rates: pd.DataFrame
    steps: pd.DataFrame
    why: pd.DataFrame
    trials: Mapping[tuple, tuple[np.ndarray, np.ndarray, float]]

    @property
    def n(self) -> int:
        return len(self.steps)

    @functools.cached_property
    def best(self) -> pd.Series:
        """ln of the network's best rate, by the batch sizes that have one."""
        return self.rates.mean().dropna()

    @functools.cached_property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """The batch sizes [m] of `best`, and its values [m]."""
        return self.best.index.to_numpy(float), self.best.to_numpy()

    @functools.cached_property
    def critical(self) -> float:
        """ln C."""
        return rates.bend(self.steps.mean())

    @functools.cached_property
    def rho(self) -> scaling.Effect:
        return rates.jackknife(rates.log_rho, self.rates, self.steps)

    def cost(self, log_rates: pd.Series, over_best: bool = False) -> pd.DataFrame:
        """What training at these rates costs.

        Args:
            log_rates: ln of the rates, by batch size.
            over_best: whether they are ln of the rates over each search's best.

        Returns:
            batch_size; cost (ln of the steps over those at the search's best rate, the mean over
            searches); bound (whether it is one from below: a trial had not met the goal).
        """
        rows = []
        for (search, size), own in self.trials.items():
            best = self.rates.at[search, size]
            if size in log_rates.index and np.isfinite(best):
                there, met = steps_at(own, log_rates[size] + over_best * best)
                here, _ = steps_at(own, best)
                rows.append((size, there - here, not met))
        table = pd.DataFrame(rows, columns=["batch_size", "cost", "bound"])
        return table.groupby("batch_size", as_index=False).agg({"cost": "mean", "bound": "any"})


def steps_at(own: tuple[np.ndarray, np.ndarray, float], log_rate: float) -> tuple[float, bool]:
    """ln of the steps that a search takes at a rate, of the NEAREST trials, and whether all of them
    met the goal; for one that had not, the search's last step stands.
    """
    drawn, steps, last = own
    near = steps[np.argsort(np.abs(drawn - log_rate), kind="stable")[:NEAREST]]
    return float(np.where(np.isnan(near), last, near).mean()), bool(np.isfinite(near).all())


def laws(trials: pd.DataFrame, wanted: list[Search], soon: bool = False) -> dict[Key, Law]:
    """Every curve of which some search has all its batch sizes on record, by its key.

    Args:
        trials: `at_goals`.
        wanted: the searches that are planned.
        soon: whether searches count that ended too soon, too.
    """
    sizes = {}
    for cell in wanted:
        key = tuple(getattr(cell, name) for name in CURVE)
        sizes.setdefault(key, set()).add(cell.batch_size)
    drawn = dict(list(trials.groupby(CURVE)))
    found = {
        key: _law(drawn[key], len(own), soon) for key, own in sizes.items() if key in drawn
    }
    return {key: law for key, law in found.items() if law.n}


def _law(trials: pd.DataFrame, sizes: int, soon: bool) -> Law:
    best = rates.best_rates(trials)
    tables = best.pivot(index="split", columns="batch_size", values=["steps", "rate", "why"])
    whole = tables[tables.steps.notna().sum(axis=1) == sizes] if len(best) else tables
    logs = np.log(whole[["steps", "rate"]].astype(float))
    counts = whole.why != rates.EDGE if soon else whole.why == ""
    of_each = {}
    for place, own in trials.groupby(["split", "batch_size"]):
        if place[0] in whole.index:
            drawn, steps = np.log(own[["learning_rate", "steps"]].astype(float)).to_numpy().T
            of_each[place] = drawn, steps, float(np.log(own.last_step.max()))
    return Law(logs.rate.where(counts), logs.steps, whole.why, of_each)
