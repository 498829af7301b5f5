"""Three experiments whose code has left the book: what their records say, without verdicts.

`lib.records.store.CLOSED` names the commit that has the code.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from lib.analysis import method_results, replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.names import title
from lib.page import told
from lib.studies import plans
from lib.wording import named, percent

QUARTER = "a quarter of the critical batch size"  # where a ramp begins, or at the whole
GOALS = {"mnist-fc-128x3-easier": 0.04, "digits-mlp": 0.04, "shakespeare": 2.2}  # of ramps
NORMS = {  # in which a method takes the steepest step: noise, gradient, power of their ratio
    "Euclidean": ("trace", "square", 1),
    "ℓ₁": ("sigmas", "slopes", 2),
    "nuclear": ("roots", "nuclear", 2),
}
NORM = {"adam": "ℓ₁", "adam-fixed": "ℓ₁", "muon": "nuclear"}  # of other methods: Euclidean


def ramps(trials: pd.DataFrame) -> pd.DataFrame:
    """Costs of Seesaw over those of halving the rate, a row per network and first batch size.

    Args:
        trials: the records in data/ramps.
    """
    rows = []
    for (work, start), own in trials.groupby(["workload", "start"], sort=False):
        costs = {cost: f"{cost}@{GOALS[work]:g}" for cost in ("steps", "examples")}
        fewest = own.groupby(["schedule", "replicate"])[[*costs.values()]].min()
        seesaw, halved = fewest.loc["Seesaw"], fewest.loc["rate halved"]
        row = {"network": title(work), "first batch": _share(start)}
        row["Seesaw met the goal"] = _count(seesaw)
        row["with the rate halved"] = _count(halved)
        rows.append(row | {cost: _over(seesaw[at], halved[at]) for cost, at in costs.items()})
    return pd.DataFrame(rows)


def _share(start: str) -> str:
    return "a quarter" if start == QUARTER else "the whole"


def _count(fewest: pd.DataFrame) -> str:
    met = fewest.notna().all(axis=1)
    return f"{met.sum()} of {len(met)}"


def _over(one: pd.Series, other: pd.Series) -> str:
    """A ratio in words, of the replicates in which both met the goal."""
    return told.times(replicates.compared(np.log(one), np.log(other)))


def norms(points: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes over noise scales, a row per network and method.

    Args:
        points: the records in data/norms.
    """
    rows, critical = [], dict(_criticals())
    for (work, algorithm), own in points.groupby(["workload", "algorithm"], sort=False):
        row = {"network": title(work), "method": named(algorithm)}
        own_norm = NORM.get(algorithm, "Euclidean")
        for column, norm in {"Euclidean": "Euclidean", "the method’s own": own_norm}.items():
            noise, gradient, power = NORMS[norm]
            logs = power * np.log(own[noise] / own[gradient])
            scale = scaling.mean_of(logs.groupby(own.replicate).mean())
            row[column] = told.times(scaling.less(critical[work, algorithm], scale))
        rows.append(row)
    return pd.DataFrame(rows)


def _criticals() -> Iterator[tuple[tuple[str, str], Effect]]:
    """ln of the critical batch size of every dense network and method."""
    searches = method_results.compared(plans.study("digits-soap"))
    curves = scaling.curves(searches[searches.sparsity == 0])
    return ((key[:2], scaling.critical(curve)) for key, curve in curves.items())


def masks(goals: pd.DataFrame) -> pd.DataFrame:
    """Steps with a mask that moves over those with one that stays, a column per goal.

    Args:
        goals: the records in data/masks, a row per search and goal.
    """
    names = {
        "every 8 steps": (goals["mask"] == "rewired") & (goals.every == 8),
        "every 512 examples": (goals["mask"] == "rewired")
        & (goals.every == (512 // goals.batch_size).clip(lower=1)),
        "thinned out": goals["mask"] == "thinned",
    }
    stays, rows = goals[goals["mask"] == "static"], []
    for name, chosen in names.items():
        row = {"mask": name if name == "thinned out" else f"rewired {name}"}
        for goal, own in goals[chosen].groupby("goal"):
            above, below = _steps(own), _steps(stays[stays.goal == goal])
            row[f"to {percent(goal)} error"] = told.times(replicates.compared(above, below))
        rows.append(row)
    return pd.DataFrame(rows)


def _steps(searches: pd.DataFrame) -> pd.Series:
    """The mean logarithm of steps over batch sizes, by replicate."""
    sizes = sorted(searches.batch_size.unique())
    return replicates.means(searches, "steps", sizes, log=True)
