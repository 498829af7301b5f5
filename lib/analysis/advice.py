"""What a curve advises: up to which batch size a larger one saves steps, and what to know before.

By K* = c1/B + c2, with critical batch size C = c1/c2, doubling B saves the share C / (2 (B + C)) of
the steps: half of them at most, a quarter at C, 40 % at C/4 and 10 % at 4 C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import Told, own, require
from lib.analysis import scaling
from lib.fields import Number, check
from lib.wording import brief, joined, number
from lib.workloads import own_file
from lib.workloads.catalogue import Workload
from lib.workloads.tasks import TASKS

NEARLY_HALF, LITTLE = 0.4, 0.1  # shares of the steps that a doubled batch saves
UNSURE = 4  # times its standard error, a goal is told apart from others near it
EASY = 1.25  # times a goal costs what asks for nothing: hardly anything has to be learned
LEAST = 3  # batch sizes that two constants ask for


def saved(batch_size: np.ndarray, critical: float) -> np.ndarray:
    """The share of the steps that doubling these batch sizes [n] saves, from 0 to 1/2."""
    return critical / (2 * (np.asarray(batch_size, float) + critical))


def worth(critical: float, share: float) -> float:
    """The batch size whose doubling saves this share of the steps.  Raises ValueError for shares
    outside (0, 0.5).
    """
    check("share", share, Number("(0, 0.5)"))
    return critical * (1 / (2 * share) - 1)


def fitting_goal(trials: pd.DataFrame, least: int = LEAST, asked: Asked | None = None) -> float:
    """The hardest goal that is met at so many batch sizes of the densest curve, or else at most of
    them.

    asked: of the validation set, if known.  Raises Told, with what was reached and the goal that it
    suggests, if no trial met any.
    """
    ladder = scaling.goals(trials)
    dense = trials[trials.sparsity == trials.sparsity.min()]
    met = {goal: dense.batch_size[dense[f"steps@{goal:g}"].notna()].nunique() for goal in ladder}
    most = max(met.values(), default=0)
    if not most:
        raise Told(_unmet(dense, asked))
    return next(goal for goal in ladder if met[goal] >= min(least, most))


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


def step_seconds(trials: pd.DataFrame) -> pd.DataFrame:
    """Seconds of one trial's step, as the searches took it, checks included: those of
    `scaling.CURVE`, batch_size, seconds.

    trials: a table of `lib.records.results.read`.
    """
    keys = [*scaling.CURVE, "batch_size"]
    heads = pd.DataFrame([*trials.attrs["provenance"]])
    heads = heads[heads.trial_steps > 0].groupby(keys)[["wall_s", "trial_steps"]].sum()
    return (heads.wall_s / heads.trial_steps).rename("seconds").reset_index()


@dataclass(frozen=True)
class Advice:
    """What one curve advises.

    smallest, largest: batch sizes (examples) that met the goal; sizes: how many.  critical, low,
    high: the critical batch size and its 5 to 95 % interval, not a number with fewer than `LEAST`
    sizes.  per_doubling: the mean share of the steps that a doubling saved from the smallest to the
    largest.  inside: whether the critical batch size lies within the sizes.
    """

    smallest: int
    largest: int
    sizes: int
    critical: float
    low: float
    high: float
    per_doubling: float

    @property
    def inside(self) -> bool:
        return self.smallest < self.critical < self.largest

    @property
    def useful(self) -> float:
        """Up to here, a doubled batch saves NEARLY_HALF of the steps, or more."""
        return worth(self.critical, NEARLY_HALF)

    @property
    def useless(self) -> float:
        """Beyond, it saves less than LITTLE."""
        return worth(self.critical, LITTLE)


def advise(trials: pd.DataFrame) -> Advice:
    """The advice of one curve's trials at their goal.  Raises ValueError unless a trial met it."""
    searches = scaling.steps_to_result(trials)
    curve = scaling.across_replicates(searches).sort_values("batch_size")
    require(len(curve) > 0, "goal", trials.goal.iloc[0], "met by a trial")
    sizes = curve.batch_size.to_numpy()
    steps = curve.steps.to_numpy()
    summary, _ = scaling.of_searches(searches)
    row = summary.iloc[0] if len(summary) else {}
    ends = ("critical", "critical_low", "critical_high")
    critical = [float(row.get(end, np.nan)) for end in ends]
    doublings = np.log2(sizes[-1] / sizes[0])
    saved = 1 - (steps[-1] / steps[0]) ** (1 / doublings) if doublings else np.nan
    return Advice(int(sizes[0]), int(sizes[-1]), len(sizes), *critical, float(saved))


def sentences(given: Advice) -> str:
    """The advice on steps, in words."""
    ends = f"batch sizes {number(given.smallest)} and {number(given.largest)}"
    half, little = (f"{100 * share:.0f} %" for share in (NEARLY_HALF, LITTLE))
    if given.sizes < LEAST:
        saved = f"{100 * given.per_doubling:.0f} % of the steps on average. "
        found = f"Between {ends}, a doubled batch saved {saved}"
        if given.sizes == 1:
            found = f"The goal was reached at one batch size only, {number(given.smallest)}. "
        needed = f"A critical batch size takes at least {LEAST} batch sizes that reach the goal."
        return found + needed
    if given.critical >= given.largest:
        return (
            f"The critical batch size lies above all that was measured, {ends}. "
            "Steps still fall; measure larger batches."
        )
    if not given.inside:
        return (
            f"The critical batch size lies below all that was measured, {ends}. "
            "Larger batches save few steps; measure smaller batches."
        )
    small = f"Up to B = {brief(given.useful)}, doubling the batch nearly halves the steps: "
    small += f"it saves {half} or more."
    if given.useful < given.smallest:
        small = f"Even from the smallest batch, B = {number(given.smallest)}, "
        small += f"doubling saves less than {half} of the steps."
    reach = ", a size beyond those measured" * (given.useless > given.largest)
    return f"{small} Beyond B = {brief(given.useless)}{reach}, it saves less than {little}."
