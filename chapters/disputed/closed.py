"""What the records of three experiments say, without verdicts; their code has left the book.

`lib.records.store.CLOSED` names the commit that has the code.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import method_results, replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.names import title
from lib.page import estimates
from lib.studies import plans
from lib.wording import named, percent

STARTS = {"a quarter of the critical batch size": "a quarter of C"}  # of a ramp
GOALS = {"mnist-fc-128x3-easier": 0.04, "digits-mlp": 0.04, "shakespeare": 2.2}  # of ramps
NORMS = {  # norm: (column of the noise, column of the gradient, power of their ratio)
    "Euclidean": ("trace", "square", 1),
    "ℓ₁": ("sigmas", "slopes", 2),
    "nuclear": ("roots", "nuclear", 2),
}
OWN = {"adam": "ℓ₁", "adam-fixed": "ℓ₁", "muon": "nuclear"}  # a method's norm; else Euclidean


def ramps(trials: pd.DataFrame) -> pd.DataFrame:
    """Costs of Seesaw over those of halving the rate, a row per network and initial batch size."""
    rows = []
    for (work, start), searches in trials.groupby(["workload", "start"]):
        costs = [f"{cost}@{GOALS[work]:g}" for cost in ("steps", "examples")]
        fewest = searches.groupby(["schedule", "replicate"])[costs].min()
        pair = [fewest.loc[name] for name in ("Seesaw", "rate halved")]
        met = [str(search.notna().all(axis=1).sum()) for search in pair]
        above, below = map(np.log, pair)
        ratios = (replicates.compared(above[cost], below[cost]) for cost in costs)
        rows.append(
            (
                title(work),
                STARTS.get(start, "C"),
                f"{', '.join(met)} of {len(pair[0])}",
                *ratios,
            )
        )
    columns = ["network", "first batch", "met: Seesaw, halving", "steps", "examples"]
    return pd.DataFrame(rows, columns=columns)


def norms(points: pd.DataFrame) -> pd.DataFrame:
    """Critical batch size over noise scale, a row per method and norm, a column per network."""
    searches = method_results.compared(plans.study("digits-soap"))
    curves = scaling.curves(searches[searches.sparsity == 0])
    critical = {key[:2]: scaling.critical(curve) for key, curve in curves.items()}
    cells = {}
    for (work, algorithm), path in points.groupby(["workload", "algorithm"], sort=False):
        for norm in dict.fromkeys(["Euclidean", OWN.get(algorithm, "Euclidean")]):
            noise, gradient, power = NORMS[norm]
            logs = power * np.log(path[noise] / path[gradient])
            scale = scaling.mean_of(logs.groupby(path.replicate).mean())
            ratio = scaling.less(critical[work, algorithm], scale)
            cells.setdefault((named(algorithm), norm), {})[title(work)] = ratio
    rows = [{"method": name, "norm": norm} | row for (name, norm), row in cells.items()]
    return pd.DataFrame(rows)


def masks(searches: pd.DataFrame) -> pd.DataFrame:
    """Steps with a mask that moves over those with one that stays, a column per goal."""
    interval = (512 // searches.batch_size).clip(lower=1)  # steps that take 512 examples
    rewired = searches["mask"] == "rewired"
    moving = {
        "rewired every 8 steps": rewired & (searches.every == 8),
        "rewired every 512 examples": rewired & (searches.every == interval),
        "thinned out": searches["mask"] == "thinned",
    }
    columns = {}
    for goal, rows in searches.groupby("goal"):
        static = _steps(rows[rows["mask"] == "static"])
        logs = (_steps(rows[chosen[rows.index]]) for chosen in moving.values())
        columns[f"to {percent(goal)} error"] = [
            replicates.compared(mean, static) for mean in logs
        ]
    return pd.DataFrame({"mask": [*moving], **columns})


def _steps(searches: pd.DataFrame) -> pd.Series:
    """The mean over batch sizes of ln steps, by replicate."""
    sizes = sorted(searches.batch_size.unique())
    return replicates.means(searches, "steps", sizes)


def values(ramps: pd.DataFrame, norms: pd.DataFrame, masks: pd.DataFrame) -> dict[str, list]:
    """The ratios that the sentence above each table sums up."""
    last = norms.drop_duplicates("method", keep="last")
    effects = {
        "ramp_steps": ramps.steps,
        "ramp_examples": ramps.examples,
        "euclidean": norms[norms.norm == "Euclidean"].iloc[:, 2:].stack(),
        "own_norm": last.iloc[:, 2:].stack(),
        "hardest": masks.iloc[:, 1],
        "easiest": masks.iloc[:, -1],
    }
    return {name: _ratios(several) for name, several in effects.items()}


def _ratios(effects: pd.Series) -> list[float]:
    """The ratios that rest on several searches."""
    several = {i: effect for i, effect in enumerate(effects.dropna()) if effect.n > 1}
    return [*estimates.ratios(several).values()]


def written(table: pd.DataFrame) -> pd.DataFrame:
    """One of these tables with ratios and intervals in words, and a dash where there is none."""
    write = lambda cell: estimates.times(cell) if isinstance(cell, Effect | None) else cell  # noqa: E731
    return table.map(write)
