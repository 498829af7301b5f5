"""What to know before an answer is used: whether a goal was met, and what is doubtful in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from lib import Told, own
from lib.analysis import scaling
from lib.wording import joined
from lib.workloads import own_file
from lib.workloads.catalogue import Workload
from lib.workloads.tasks import TASKS, Task

if TYPE_CHECKING:
    from lib.workloads.own_network import Facts

UNSURE = 4  # times its standard error, a goal is told apart from others near it
EASY = 1.25  # times a goal costs what asks for nothing: hardly anything has to be learned


def facts(work: Workload) -> Facts | None:
    """What is known of a function of the reader's; None of any other workload."""
    return own_file.facts(work.name) if own.is_own(work.name) else None


def goal(
    trials: pd.DataFrame, known: Facts | None = None, asks: Task = TASKS["classification"]
) -> float:
    """The goal to read curves at, `scaling.fitting`.  Raises Told, with what was reached and the
    goal that it suggests, if no trial met any.
    """
    found = scaling.fitting(trials)
    if found is None:
        raise Told(_unmet(trials[trials.sparsity == trials.sparsity.min()], known, asks))
    return found


def _unmet(trials: pd.DataFrame, known: Facts | None, asks: Task) -> str:
    """What the trials of the densest curve reached that met no goal, and what to change."""
    reached = trials.groupby("batch_size").best_error.min()
    told = [f"{error:.3g} at batch size {size}" for size, error in reached.dropna().items()]
    if trials.status.eq("infeasible").all():
        return f"goals: no trial met any; all {len(trials)} diverged or died: rescale the inputs"
    found = f"goals: no trial met any; the lowest error of {len(trials)} trials is "
    found += f"{trials.best_error.min():.3g} ({joined(told)}). "
    digit = 10.0 ** (math.floor(math.log10(reached.max() or 1.0)) - 1)
    goal = float(f"{math.ceil(reached.max() / digit - 1e-9) * digit:.2g}")  # to two digits, up
    if known and goal >= known.chance:
        same = f"an answer that is the same for all examples costs {known.chance:.3g}"
        return f"{found}Set a larger max_steps before an easier goal: {same}"
    easier = f"Set goals=({asks.given(goal):g},), which all of these came to"
    return f"{found}{easier}, or a larger max_steps"


def caveats(trials: pd.DataFrame, work: Workload, known: Facts | None) -> list[str]:
    """What to know before the answer is used, a sentence or two each: an easier goal than was asked
    for, a limit of steps that came first, a validation set too small for the goal; trials at their
    goal.
    """
    written = work.asks.written
    goal = trials.goal.iloc[0]
    hardest = min(work.goals)
    found = []
    if goal > hardest:
        hits = trials.dropna(subset=f"steps@{hardest:g}")
        met = hits.batch_size.nunique()
        found.append(
            f"The hardest goal, {written(hardest)}, was met at {met or 'none'} of "
            f"{trials.batch_size.nunique()} batch sizes. All below is for {written(goal)}."
        )
    by = trials.groupby("batch_size")
    ended = by.steps.count().eq(0) & by.status.agg(lambda status: (status == "budget").any())
    if ended.any():
        where = joined([f"{size:,}" for size in ended.index[ended]])
        found.append(
            f"At batch size {where} the limit of steps (max_steps) was reached before any trial "
            f"met {written(goal)}. More trials do not help there: raise the limit. It is the same "
            f"for all batch sizes, so that small batches see fewer examples."
        )
    return found + (_coarse(goal, written, known) if known and work.asks.counted else [])


def _coarse(goal: float, written: Callable[[float], str], known: Facts) -> list[str]:
    """Whether the validation set is too small to tell a share of mistakes from others near it."""
    found = []
    spread = math.sqrt(goal * (1 - goal) / known.values)
    if goal < UNSURE * spread:
        found.append(
            f"The validation set has {known.values:,} examples. At a goal of {written(goal)}, "
            f"chance alone moves the error by {100 * spread:.2g} % (a standard error), more than "
            f"a quarter of the goal. Validate on more."
        )
    if goal > known.chance / EASY:
        found.append(
            f"The goal of {written(goal)} is easy: answers that are all the same miss "
            f"{100 * known.chance:.2g} %."
        )
    return found
