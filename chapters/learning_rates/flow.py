"""What gradient flow says of learning rates far below the best."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.learning_rates import searched
from chapters.learning_rates.experiments import FLOWS
from lib.analysis import scaling
from lib.claims.judging import kept
from lib.records import results
from lib.studies.study import Study
from lib.workloads.catalogue import workload

FAR = 0.15, 0.3  # of the best rate, between which is far below


def far_below() -> pd.DataFrame:
    """Steps times rate of dense SGD's trials at rates of FAR of the best, over the time that
    gradient flow takes to the easiest goal: a row per network, search and batch size (workload,
    split, batch_size), over (of the median trial; NaN where it had not met the goal), trials.
    """
    return pd.DataFrame(kept("rate-flow", lambda: _far_below().to_dict("list")))


def _far_below() -> pd.DataFrame:
    flows, rows = FLOWS.results(), []
    cells = [c for c in searched.planned() if c.algorithm == "sgd" and not c.sparsity]
    trials = results.read(Study("", "", cells), without=scaling.WITHIN_BUDGETS)
    laws = {}
    if len(trials):
        laws = searched.laws(searched.at_goals(trials, searched.EASIEST), cells)
    for name, own in flows.groupby("workload") if len(flows) else ():
        easiest = own[own.goal == max(workload(name).goals)]
        times = easiest.groupby("split").time.median()
        law = laws.get((name, "sgd", "connection-sensitivity", 0.0))
        for (split, size), trials in law.trials.items() if law else ():
            distance, count = _travelled(trials, law.rates.at[split, size])
            over = distance / times.get(split, np.nan)
            rows.append((name, split, size, over if np.isfinite(over) else np.nan, count))
    return pd.DataFrame(rows, columns=["workload", "split", "batch_size", "over", "trials"])


def _travelled(trials: tuple, log_best: float) -> tuple[float, int]:
    """Steps times rate of the median trial at rates of FAR of the best, infinite where it had not
    met the goal, and how many trials there are.
    """
    drawn, steps, _ = trials
    low, high = log_best + np.log(FAR)
    far = (low < drawn) & (drawn < high)
    if not far.any():
        return np.nan, 0
    distance = np.where(np.isnan(steps), np.inf, drawn + steps)[far]
    return float(np.exp(np.median(distance))), int(far.sum())
