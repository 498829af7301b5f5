"""The searches that tune only the learning rate, and what those of one curve say about it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.analysis import rates, scaling
from lib.analysis.scaling import CURVE
from lib.records import results
from lib.studies import plans
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import workload

PLANNED = ("rates-digits", "rates-fc")
LANGUAGE = "rates-shakespeare"  # one search, which one prediction is about
FIRST = 101  # of the splits that only these searches use
NEAREST = 3  # trials whose mean estimates the steps at a rate
READ, EASIEST = 1, -1  # places in the ladder of goals; curves are read at READ
Key = tuple[str, str, str, float]  # as of CURVE


def planned() -> list[Search]:
    """All searches of the page, the most wanted first."""
    return [cell for name in PLANNED for cell in plans.study(name).searches]


def study(cells: Iterable[Search]) -> Study:
    return Study("learning-rates", "The learning rate alone", cells)


def requested(chosen) -> Study:
    """The searches that a reader's parameters name: the planned ones of this network, method and
    batch sizes, or if none is planned, new ones like them.
    """
    splits = range(FIRST, FIRST + chosen.searches)
    of_method = [cell for cell in planned() if cell.algorithm == chosen.algorithm]
    cells = [c for c in of_method if c.workload == chosen.workload and c.split in splits]
    cells = [cell for cell in cells if cell.batch_size in chosen.batch_sizes]
    if not cells:
        space = of_method[0].space if of_method else None
        cells = [
            Search(chosen.workload, size, chosen.algorithm, replicate=n, split=n, space=space)
            for n in splits
            for size in chosen.batch_sizes
        ]
    return study(cells)


def recorded(cells: Iterable[Search], place: int = READ) -> pd.DataFrame:
    """`at_goals` of the trials of these searches that are on record."""
    return at_goals(results.read(study(cells), without=scaling.WITHIN_BUDGETS), place)


def at_goals(trials: pd.DataFrame, place: int = READ) -> pd.DataFrame:
    """The trials with the steps to the goal at this place of their workload's ladder."""
    if trials.empty:
        return trials
    ladders = {name: sorted(workload(name).goals) for name in trials.workload.unique()}
    goals = {name: goals[min(place, len(goals) - 1)] for name, goals in ladders.items()}
    return scaling.at_goals(trials, goals)


# --- one curve ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Law:
    """Results for a network, method and sparsity, from searches with all batch sizes on record.

    rates, steps: ln of the best rate and of K* [searches, batch sizes]; a rate that does not count
    is NaN.  why: the reason (`rates.best_rates`).  trials: split, batch_size, and ln of rate, of
    steps (NaN: goal not met), of the search's last step (last), of the rate over the search's best
    (over) and of steps times rate over the same at the search's best (distance).
    """

    rates: pd.DataFrame
    steps: pd.DataFrame
    why: pd.DataFrame
    trials: pd.DataFrame

    @property
    def n(self) -> int:
        return len(self.steps)

    @functools.cached_property
    def best(self) -> pd.Series:
        """ln of the network's best rate, at the batch sizes that have one."""
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

    @functools.cached_property
    def searches(self) -> dict[tuple, np.ndarray]:
        """ln of rate, of steps and of the last step [3, trials], by split and batch size."""
        groups = self.trials.groupby(["split", "batch_size"])[["rate", "steps", "last"]]
        return {key: trials.to_numpy().T for key, trials in groups}

    def cost(self, log_rates: pd.DataFrame) -> pd.DataFrame:
        """What training at these rates (ln, [searches, batch sizes]) costs; NaN ones are skipped.

        Returns:
            batch_size; cost (ln of the steps over those at the search's best rate, the mean over
            searches); bound (whether it is a lower bound: a trial had not met the goal).
        """
        rows = []
        for (split, size), trials in self.searches.items():
            rate = log_rates[size][split] if size in log_rates else np.nan
            if np.isfinite(rate):
                steps, met = steps_at(trials, rate)
                fewest, _ = steps_at(trials, self.rates.at[split, size])
                rows.append((size, steps - fewest, not met))
        table = pd.DataFrame(rows, columns=["batch_size", "cost", "bound"])
        means = table.groupby("batch_size", as_index=False).agg(
            {"cost": "mean", "bound": "any"}
        )
        return means.astype({"cost": float, "bound": bool})

    def cost_of(self, log_rates: pd.Series) -> pd.DataFrame:
        """`cost` of the same rates, by batch size, in all searches."""
        return self.cost(self.rates * 0 + log_rates)


def steps_at(trials: np.ndarray, log_rate: float) -> tuple[float, bool]:
    """ln of the steps that one of `Law.searches` takes at a rate, the mean over its NEAREST trials,
    and whether all of these met the goal; one that did not counts as the search's last step.
    """
    drawn, *_ = trials
    nearest = np.argsort(np.abs(drawn - log_rate), kind="stable")[:NEAREST]
    _, steps, last = trials[:, nearest]
    return float(np.where(np.isnan(steps), last, steps).mean()), bool(np.isfinite(steps).all())


def laws(trials: pd.DataFrame, cells: Iterable[Search], soon: bool = False) -> dict[Key, Law]:
    """The `Law` of every curve with all batch sizes of some search on record, by key.

    Args:
        trials: from `at_goals`.
        cells: the planned searches.
        soon: whether searches that ended too soon count.
    """
    sizes = {}
    for cell in cells:
        key = tuple(getattr(cell, name) for name in CURVE)
        sizes.setdefault(key, set()).add(cell.batch_size)
    curves = dict(list(trials.groupby(CURVE))) if len(trials) else {}
    laws = {key: _law(curves[key], len(sizes[key]), soon) for key in sizes if key in curves}
    return {key: law for key, law in laws.items() if law.n}


def _law(trials: pd.DataFrame, sizes: int, soon: bool) -> Law:
    search = ["split", "batch_size"]
    best = rates.best_rates(trials)
    best = best[best.groupby("split").split.transform("size") == sizes]
    counts = best.why != rates.EDGE if soon else best.why == ""
    logs = np.log(best[["rate", "steps"]].astype(float))
    best = best.assign(rate=logs.rate.where(counts), steps=logs.steps)
    tables = (best.pivot(index="split", columns="batch_size", values=name)
              for name in ("rate", "steps", "why"))  # fmt: skip
    names = {"learning_rate": "rate", "steps": "steps", "last_step": "last"}
    logs = np.log(trials[[*names]].astype(float)).rename(columns=names)
    logs["last"] = logs["last"].groupby([trials[name] for name in search]).transform("max")
    logs = trials[search].join(logs).merge(best[[*search, "rate", "steps"]], on=search,
                                           suffixes=("", "_best"))  # fmt: skip
    logs["over"] = logs.rate - logs.pop("rate_best")
    logs["distance"] = logs.steps + logs.over - logs.pop("steps_best")
    return Law(*tables, logs)
