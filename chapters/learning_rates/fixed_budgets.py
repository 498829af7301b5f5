"""Trials as budgets of equal steps and of equal examples see them: how many settings are good."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import share
from lib.workloads.catalogue import workload

STEPS, EPOCHS = "fixed steps", "fixed epochs"


def limits(name: str) -> dict[str, int]:
    """The budgets, in steps and in examples, at which the maps of a workload's trials are read:
    more for large data sets.
    """
    small = workload(name).train_size < 10_000
    return {"steps": 1024, "examples": 2**14} if small else {"steps": 4096, "examples": 2**18}


def maps(trials: pd.DataFrame) -> pd.DataFrame:
    """Every trial of a workload twice, as budgets of steps (kind STEPS) and of examples (EPOCHS)
    see it, at its `limits`.

    outcome: "reached the goal", "did not", or "diverged or died" if it did so within the budget.
    slowness: 1 - momentum.
    """
    if trials.empty:
        return pd.DataFrame(columns=["kind", "batch_size", "outcome"])
    budgets = limits(trials.workload.iloc[0])
    about = trials[["workload", "batch_size", "learning_rate"]]
    about = about.assign(slowness=1 - trials.momentum.fillna(0))
    lost = trials.status == "infeasible"
    parts = []
    for kind, within in (
        (STEPS, budgets["steps"]),
        (EPOCHS, budgets["examples"] // trials.batch_size),
    ):
        cases = [trials.steps <= within, lost & (trials.last_step <= within)]
        outcome = np.select(cases, ["reached the goal", "diverged or died"], "did not")
        parts.append(about.assign(kind=kind, outcome=outcome))
    return pd.concat(parts, ignore_index=True)


def shares(outcome: pd.DataFrame) -> pd.DataFrame:
    """Share of the trials of `maps` that reached the goal, per kind and batch size, both in order,
    with its interval.
    """
    met = outcome.outcome.eq("reached the goal")
    counts = met.groupby([outcome.kind, outcome.batch_size]).agg(["sum", "size"]).astype(int)
    found = [share(*row) for row in counts.to_numpy().tolist()]
    return pd.DataFrame(found, counts.index, ["share", "low", "high"]).reset_index()


def moved(shares: pd.DataFrame) -> tuple[float, float, float] | None:
    """The share of good trials that is gained at fixed steps, or lost at fixed epochs, from the
    smallest batch to the largest, with the ends of its interval: the lesser of the two.  None under
    5 batch sizes.
    """
    ends = shares.set_index("kind")[["share", "low", "high"]]
    steps, epochs = (ends[ends.index == kind].to_numpy() for kind in (STEPS, EPOCHS))
    if min(len(steps), len(epochs)) < 5:
        return None
    return min(
        fall(steps[-1], steps[0]), fall(epochs[0], epochs[-1]), key=lambda found: found[1]
    )


def lost(trials: pd.DataFrame) -> tuple[float, float, float]:
    """The share of one workload's trials that fail at the smallest batch size less that at the
    largest, within equal steps, with the ends of its interval.
    """
    steps = int(trials.groupby("batch_size").max_steps.max().min())
    failed = trials.status.eq("infeasible") & (trials.last_step <= steps)
    by = failed.groupby(trials.batch_size).agg(["sum", "size"]).astype(int)
    return fall(share(*by.iloc[0]), share(*by.iloc[-1]))


def fall(before: tuple, after: tuple) -> tuple[float, float, float]:
    """One share less another, each with its ends: Newcombe's (1998) interval of the difference."""
    (a, a_low, a_high), (b, b_low, b_high) = before, after
    low, high = np.hypot(a - a_low, b_high - b), np.hypot(a_high - a, b - b_low)
    return a - b, float(a - b - low), float(a - b + high)
