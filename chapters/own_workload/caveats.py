"""What to know before an answer is used: whether a goal was met, and what is doubtful in it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from lib import Told, own
from lib.analysis import goals
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
    """The goal to read curves at, `goals.fitting`.

    known: `facts`.  asks: what the goals are of.  Raises Told, with what was reached and the goal
    that it suggests, if no trial met any.
    """
    found = goals.fitting(trials)
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
    if not told:
        return found + "not on record. Set easier goals, or a larger max_steps"
    found += f"{trials.best_error.min():.3g} ({joined(told)}). "
    goal = _rounded_up(reached.max())
    if known and goal >= known.chance:
        same = f"an answer that is the same for all examples costs {known.chance:.3g}"
        return f"{found}Set a larger max_steps before an easier goal: {same}"
    every = "every batch size" if reached.notna().all() else "every batch size with an error"
    easier = f"Set goals=({asks.given(goal):g},), which {every} came to"
    return f"{found}{easier}, or a larger max_steps"


def _rounded_up(error: float) -> float:
    """To two digits."""
    digit = 10.0 ** (math.floor(math.log10(error)) - 1) if error > 0 else 1.0
    return float(f"{math.ceil(error / digit - 1e-9) * digit:.2g}")


def limited(trials: pd.DataFrame) -> list[int]:
    """Batch sizes at which the limit of steps came before any trial had met its goal."""
    by = trials.groupby("batch_size")
    ended = by.steps.count().eq(0) & by.status.agg(lambda status: (status == "budget").any())
    return list(ended.index[ended])


def caveats(trials: pd.DataFrame, work: Workload, known: Facts | None) -> list[str]:
    """What to know before the answer is used, a sentence or two each: an easier goal than was asked
    for, a limit of steps that came first, a validation set too small for the goal.

    trials: at their goal (`scaling.at_goal`).
    """
    task = work.asks
    goal = trials.goal.iloc[0]
    found = []
    sizes = trials.batch_size.nunique()
    hardest = min(work.goals)
    if goal > hardest:
        met = trials.batch_size[trials[f"steps@{hardest:g}"].notna()].nunique()
        found.append(
            f"The hardest goal, {task.written(hardest)}, was met at {met or 'none'} of {sizes} "
            f"batch sizes. All below is for {task.written(goal)}."
        )
    if limits := limited(trials):
        limit = int(trials.max_steps[trials.batch_size.isin(limits)].max())
        where = f"batch size{'s' * (len(limits) > 1)} {joined([f'{size:,}' for size in limits])}"
        found.append(
            f"At {where} the limit of {limit:,} steps (max_steps) was reached before any trial met "
            f"{task.written(goal)}. More trials do not help there: raise the limit. It is the same "
            f"for all batch sizes, so that small batches see fewer examples."
        )
    return found + (_coarse(goal, work, known) if known and task.counted else [])


def _coarse(goal: float, work: Workload, known: Facts) -> list[str]:
    """Whether the validation set is too small to tell a share of mistakes from others near it."""
    found = []
    one = 1 / known.values
    written = work.asks.written
    told = written(goal)
    finer = [written(g) for g in work.goals if 0 < g < one]
    spread = math.sqrt(goal * (1 - goal) / known.values)
    held = f"The validation set has {known.values:,} examples"
    if finer:
        found.append(
            f"{held}, each {100 * one:.2g} %: a goal of {joined(finer)} allows no mistake at all."
        )
    if one <= goal < UNSURE * spread:
        found.append(
            f"{held}. At a goal of {told}, chance alone moves the error by {100 * spread:.2g} % "
            f"(a standard error), more than a quarter of the goal. Validate on more."
        )
    if goal > known.chance / EASY:
        found.append(
            f"The goal of {told} is easy: answers that are all the same miss "
            f"{100 * known.chance:.2g} %."
        )
    return found
