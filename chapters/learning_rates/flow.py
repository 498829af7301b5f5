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
    easiest = searched.at_goals(trials, searched.EASIEST) if len(trials) else trials
    laws = searched.laws(easiest, cells) if len(trials) else {}
    for name, own in flows.groupby("workload") if len(flows) else ():
        goal = max(workload(name).goals)
        times = own[own.goal == goal].groupby("split").time.median()
        law = laws.get((name, "sgd", "connection-sensitivity", 0.0))
        for (split, size), (drawn, taken, _) in law.trials.items() if law else ():
            low, high = law.rates.at[split, size] + np.log(FAR)
            far = (low < drawn) & (drawn < high)
            # What had not met the goal goes further
            travelled = np.exp(np.median(np.where(np.isnan(taken), np.inf, drawn + taken)[far]))
            over = travelled / times.get(split, np.nan)
            over = float(over) if np.isfinite(over) else np.nan
            rows.append((name, int(split), int(size), over, int(far.sum())))
    return pd.DataFrame(rows, columns=["workload", "split", "batch_size", "over", "trials"])
