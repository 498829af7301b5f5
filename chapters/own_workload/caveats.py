"""What to know before an answer is used: whether a goal was met, and what is doubtful in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from lib import Told, own
from lib.analysis import goals
from lib.wording import joined
from lib.workloads import own_file
from lib.workloads.catalogue import Workload
from lib.workloads.tasks import TASKS

UNSURE = 4  # times its standard error, a goal is told apart from others near it
EASY = 1.25  # times a goal costs what asks for nothing: hardly anything has to be learned


@dataclass(frozen=True)
class Asked:
    """A validation set: its examples, and what the best answer costs that is the same for all (or
    an untrained model's); highest: from what value errors are counted down, where higher is better.
    """

    examples: int
    chance: float
    highest: float | None = None


def asked_of(work: Workload) -> Asked | None:
    """The validation set of a function of the reader's; None of any other workload."""
    if not own.is_own(work.name):
        return None
    if found := own_file.facts(work.name):
        return Asked(found.values, found.chance, work.asks.highest)
    labels = own_file.load(work.name).validation[1]
    return Asked(len(labels), TASKS[work.task].constant(labels))


def goal(trials: pd.DataFrame, asked: Asked | None = None) -> float:
    """The goal to read curves at, `goals.fitting`.

    asked: of the validation set, if known.  Raises Told, with what was reached and the goal that it
    suggests, if no trial met any.
    """
    found = goals.fitting(trials)
    if found is None:
        raise Told(_unmet(trials[trials.sparsity == trials.sparsity.min()], asked))
    return found


def _unmet(trials: pd.DataFrame, asked: Asked | None) -> str:
    """What the trials of the densest curve reached that met no goal, and what to change."""
    reached = trials.groupby("batch_size").best_error.min()
    told = [f"{error:.3g} at batch size {size}" for size, error in reached.dropna().items()]
    start = f"goals: no trial met any; the lowest error of {len(trials)} trials is "
    if trials.status.eq("infeasible").all():
        return f"goals: no trial met any; all {len(trials)} diverged or died: rescale the inputs"
    if not told:
        return start + "not on record. Set easier goals, or a larger max_steps"
    found = f"{start}{trials.best_error.min():.3g} ({joined(told)}). "
    goal = _rounded_up(reached.max())
    if asked and goal >= asked.chance:
        same = f"an answer that is the same for all examples costs {asked.chance:.3g}"
        return f"{found}Set a larger max_steps before an easier goal: {same}"
    every = "every batch size" if reached.notna().all() else "every batch size with an error"
    told = goal if asked is None or asked.highest is None else round(asked.highest - goal, 12)
    return f"{found}Set goals=({told:g},), which {every} came to, or a larger max_steps"


def _rounded_up(error: float) -> float:
    """To two digits."""
    digit = 10.0 ** (math.floor(math.log10(error)) - 1) if error > 0 else 1.0
    return float(f"{math.ceil(error / digit - 1e-9) * digit:.2g}")


def limited(trials: pd.DataFrame) -> list[int]:
    """Batch sizes at which the limit of steps came before any trial had met its goal."""
    by = trials.groupby("batch_size")
    ended = by.steps.count().eq(0) & by.status.agg(lambda status: (status == "budget").any())
    return list(ended.index[ended])


def caveats(trials: pd.DataFrame, work: Workload, asked: Asked | None) -> list[str]:
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
    return found + (_coarse(goal, work, asked) if asked and task.counted else [])


def _coarse(goal: float, work: Workload, asked: Asked) -> list[str]:
    """Whether the validation set is too small to tell a share of mistakes from others near it."""
    found = []
    one = 1 / asked.examples
    written = work.asks.written
    told = written(goal)
    finer = [written(g) for g in work.goals if 0 < g < one]
    spread = math.sqrt(goal * (1 - goal) / asked.examples)
    held = f"The validation set has {asked.examples:,} examples"
    if finer:
        found.append(
            f"{held}, each {100 * one:.2g} %: a goal of {joined(finer)} allows no mistake at all."
        )
    if one <= goal < UNSURE * spread:
        found.append(
            f"{held}. At a goal of {told}, chance alone moves the error by {100 * spread:.2g} % "
            f"(a standard error), more than a quarter of the goal. Validate on more."
        )
    if goal > asked.chance / EASY:
        found.append(
            f"The goal of {told} is easy: answers that are all the same miss "
            f"{100 * asked.chance:.2g} %."
        )
    return found
