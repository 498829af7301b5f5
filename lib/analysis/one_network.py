"""What one network's curve says in a sentence: where doublings stop to pay, how its line moves with the goal."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling

LINE = ["goal", "sparsity", "c1", "c2", "critical", "critical_low", "critical_high"]


def lines_by_goal(trials: pd.DataFrame) -> pd.DataFrame:
    """The fit c1/B + c2 of every curve at every goal, where its critical batch size lies within the sizes measured: LINE."""
    parts = [pd.DataFrame(columns=LINE)]
    for goal in scaling.goals(trials):
        summary, _ = scaling.summaries(scaling.at_goal(trials, goal))
        parts.append(summary[summary.identified.astype(bool)].assign(goal=goal)[LINE])
    return pd.concat([p for p in parts if len(p)] or parts, ignore_index=True)


def saved_per_doubling(batch_size: pd.Series, steps: pd.Series, at: float) -> tuple[float, float]:
    """The share of steps that a doubled batch saves: from the smallest size to the one nearest to `at`, and from there on.

    batch_size, steps: [n]; geometric means over the doublings between.  NaN where no two sizes lie on that side.
    """
    logs = pd.Series(np.log2(np.asarray(steps, float)), np.log2(np.asarray(batch_size, float))).sort_index()
    near = int(np.abs(logs.index - np.log2(at)).argmin()) if np.isfinite(at) and at > 0 else 0
    return _saved(logs.iloc[: near + 1]), _saved(logs.iloc[near:])


def _saved(logs: pd.Series) -> float:
    if len(logs) < 2:
        return np.nan
    return float(1 - 2 ** ((logs.iloc[-1] - logs.iloc[0]) / (logs.index[-1] - logs.index[0])))


def slowest_over_fastest(searches: pd.DataFrame) -> float:
    """Steps of the slowest search of a point over those of the fastest: the median over points with several; NaN if none has.

    searches: of `scaling.steps_to_result`, those that met the goal.
    """
    met = searches.dropna(subset="steps")
    by = met.groupby(["sparsity", "batch_size"]).steps
    several = (by.max() / by.min())[by.size() > 1]
    return float(several.median()) if len(several) else np.nan
