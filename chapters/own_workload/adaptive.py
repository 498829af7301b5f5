"""An adaptive search for the critical batch size: few trainings, each chosen from earlier results.

A race over learning rates at the middle batch size comes first.  Then two laws, for steps and for
rates (`lib.analysis.surface`), are fitted to all trainings so far, and the next trainings are those
that narrow the interval of the critical batch size most.  At the end, the advised setting is
trained from other initialisations.  Every training is a separate search with a record, so that an
interrupted search resumes where it stopped.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from lib import require
from lib.analysis import surface
from lib.engine.checkpoint import OutOfTime
from lib.measuring import sweeps
from lib.methods import method, spaces
from lib.records import results, store
from lib.records.store import DATA, record
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import workload

MOST, LEAST = 40.0, 24.0  # limit in tuned runs: in all, or after the race if that is later
RACE = 0.75  # largest share of all tuned runs for the race, even if it is re-counted later
RACED = 6  # learning rates in the race, over the whole space
SHORTEST, LONGER = 64, 4  # steps of its first round, and factor from one round to the next
HOPELESS = 4  # a harder goal is given up after this many times the steps to an easier one
# Fixed hyperparameters, within their ranges; all others are fixed in the middle of their range
HELD = {"momentum": 0.9, "beta1": 0.9, "beta2": 0.999}
EDGE = 1.5  # factor by which the next round's range exceeds the better rates
BRACKET, BRACKETS = 2.0, 6  # factor from the best rate to its neighbours, and most waves of them
STRIDE = 4  # factor between batch sizes
REACH = 16  # largest factor between a batch size that met the goal and a new one
FAR = 32  # largest factor between the critical batch size and a searched one
GOALS = 4  # whose steps are fitted together
WAVE = 3  # trainings that are chosen together
OFF = 0.0, 0.5, -0.7, 0.25, -0.35  # ln of rates over the best one, in turn
PATIENCE = 2.0  # a training is given up this many standard deviations above its expected ln steps
WIDEST = 0.5  # cap on that standard deviation
HORIZON = 3.0  # a schedule spans at least this many times the expected steps
TRIES = 3  # trainings of a batch size that may miss the goal before a nearer one is tried
ENOUGH = 3  # batch sizes that must meet a goal; otherwise the next easier goal is taken
# ln of factors on the rate, used if more trainings than one and than share MISSES miss the goal
SAFER, MISSES, APART = (-0.35, -0.7), 0.1, 0.25
WIDTH = 1.25  # sufficient factor from the critical batch size to an end of its interval
SURE = 5, 20  # batch sizes and trainings that must have met the goal before WIDTH ends the plan
# Trainings of the advised setting, at first and after one of them missed the goal; and the number
# of the first one, above the numbers of all other trainings at a batch size
PROOFS, FRESH = (4, 8), 101


class Plan:
    """Decides what to train next from the results so far.

    Args:
        name: of a workload.
        algorithm: a training method.
        ends: the smallest and the largest batch size allowed.
        fields: further fields of its searches.

    Attributes:
        searches: those trained so far, in order.
        trials: their trainings.
        fresh: trainings of advised settings, which the laws are not fitted to; the first `before`
            of them had higher rates than the one advised now.
        lowered: ln of the factor on the best rate after trainings in `fresh` missed the goal.
        refuted: whether several of them missed it at the lowest rate as well.
        goal: the goal to search for, the hardest that was met.
        raced: number of trainings when the race was over; 0 before that.
        most: limit in tuned runs, set when the race was over.
        stopped: whether the minutes ran out before the plan ended.
    """

    def __init__(self, name: str, algorithm: str, ends: tuple[int, int], **fields):
        self.ends = low, high = ends
        self.work = workload(name)
        self.search = functools.partial(Search, name, algorithm=algorithm, hits=1, **fields)
        self.space = spaces.intervals(self.work.space, algorithm, self.work.decay)
        self.held = {
            name: min(max(HELD.get(name, float(axis.values(0.5))), axis.low), axis.high)
            for name, axis in self.space.items()
            if name != "learning_rate"
        }
        optimiser = method(algorithm).optimiser
        self.scheduled = bool(optimiser and optimiser.schedule)
        self.middle = min(max(2 ** round(math.log2(low * high) / 2), low), high)
        self.stride = STRIDE if high >= low * STRIDE ** (ENOUGH + 1) else 2
        # Batch sizes between one that failed and the nearest that met the goal
        self.nearer: set[int] = set()
        self.numbers: Counter[int] = Counter()  # of trainings chosen so far, by batch size
        # Set if an exploration has to determine the goals
        self.within = self.work.facts and self.work.facts.within
        self.goal = min(self.work.goals)
        self.searches: list[Search] = []
        self.trials = self.fresh = pd.DataFrame()
        self.before, self.lowered, self.refuted = 0, 0.0, False
        self.raced, self.most, self.stopped = 0, MOST, False

    # --- what is known ----------------------------------------------------------------------------

    def add(self, search: Search, head: dict, table: pd.DataFrame) -> None:
        """Add the trainings of a record."""
        about = {
            "batch_size": search.batch_size,
            "limit": search.max_steps or self.work.max_steps,
            "seconds": head["wall_s"] / len(table),
            "placed": search.trials == 1,
        }
        table = table.assign(**about)
        if search.replicate >= FRESH:
            self.fresh = pd.concat([self.fresh, table], ignore_index=True)
            return
        self.trials = pd.concat([self.trials, table], ignore_index=True)
        self.searches.append(search)

    @property
    def table(self) -> pd.DataFrame:
        """The trainings, with steps to the goal, seconds, and the limit of steps."""
        return self.trials.assign(steps=self.trials[f"steps@{self.goal:g}"])

    def met(self) -> pd.DataFrame:
        """The trainings that met the goal, by batch size, the fastest first."""
        return self.table.dropna(subset="steps").sort_values(["batch_size", "steps"])

    def surface(self) -> surface.Surface | None:
        """The laws fitted to all trainings, for the goal and up to GOALS - 1 easier ones; None
        before a training has met the goal.
        """
        if self.trials.empty or self.met().empty:
            return None
        goals = [goal for goal in sorted(self.work.goals) if goal >= self.goal][:GOALS]
        return surface.fit(self.trials, [f"steps@{goal:g}" for goal in goals], self.ladder())

    def ladder(self) -> list[int]:
        """Batch sizes that may be searched."""
        low, high = self.ends
        sizes = (self.middle * float(self.stride) ** step for step in range(-32, 33))
        return sorted({int(size) for size in sizes if low <= size <= high} | self.nearer)

    def runs(self, first: int | None = None) -> float:
        """Cost of all or the first trainings in tuned runs: steps over those at the best rate."""
        fitted, trials = self.surface(), self.trials[:first]
        if first is None:
            trials = pd.concat([trials, self.fresh])
        if fitted is None:
            return float(len(trials))
        return float((trials.last_step / fitted.steps(trials.batch_size)[0]).sum())

    def left(self) -> float:
        """Tuned runs until the search ends."""
        return max(self.most, self.runs(self.raced) / RACE) - self.runs()

    # --- what is trained --------------------------------------------------------------------------

    def training(
        self, size: int, rate: float | tuple[float, float], limit: float, trials: int = 1
    ) -> Search:
        """One training of at most `limit` steps, with new random numbers; or a race of several, at
        rates drawn between two, until the first meets the hardest goal.
        """
        self.numbers[size] += 1
        hparams = {name: [self.held.get(name, rate)] for name in self.space}
        hparams["learning_rate"] = [rate] if trials == 1 else rate
        return self.search(
            size,
            trials=trials,
            space=spaces.written(hparams),
            replicate=self.numbers[size],
            max_steps=min(math.ceil(limit), self.work.max_steps),
        )

    def explore(self) -> Iterator[list[Search]]:
        """A wave of rates over the whole space, trained for the steps from which goals are set."""
        axis = self.space["learning_rate"]
        yield [self.training(self.middle, (axis.low, axis.high), self.within.steps, RACED)]

    def explored(self) -> str:
        """The workload's name with goals: the lowest error of `explore` plus once, twice and four
        times the allowed share, if below that of a constant answer.

        Raises ValueError if the lowest error is not.
        """
        lowest, chance = self.trials.best_error.min(), self.work.facts.chance
        best = f"within {self.within.share:g} of a best of {lowest:.3g}"
        require(lowest < chance, "goals", best, f"of one below {chance:.3g}, which needs no training")
        room = self.within.share * abs(lowest)
        errors = [error for n in (1, 2, 4) if (error := lowest + n * room) < chance]
        errors = errors or [(lowest + chance) / 2]
        goals = dict.fromkeys(f"{self.work.asks.convert(error):.4g}" for error in errors)
        return f"{self.work.name}:{','.join(goals)}"

    def race(self) -> Iterator[list[Search]]:
        """Rates over the whole space at the middle batch size, in rounds of increasing length with
        the range of the better half, until one meets the hardest goal or it seems out of reach.
        """
        hardest, most = self.goal, self.work.max_steps
        axis = self.space["learning_rate"]
        low, high, racing, limit = axis.low, axis.high, RACED, min(SHORTEST, most)
        while True:
            yield [self.training(self.middle, (low, high), limit, racing)]
            goals = [g for g in self.work.goals if self.trials[f"steps@{g:g}"].notna().any()]
            self.goal = min(goals, default=self.goal)
            far = HOPELESS * self.table.steps.min()  # NaN before any goal was met
            last = self.trials.tail(racing).query("status != 'infeasible'")
            ended = len(self.met()) and (self.goal == hardest or limit >= far)
            if ended or limit >= most or last.empty:
                return
            better = last.nsmallest(max(2, racing // 2), "best_error").learning_rate
            low, high = better.min() / EDGE, better.max() * EDGE
            racing = max(2, len(better))
            limit = min(limit * LONGER, most)

    def bracket(self) -> Iterator[list[Search]]:
        """Rates above and below the best one, until it is bracketed by others."""
        for _ in range(BRACKETS):
            best = self.met().iloc[0]
            long = self.trials.last_step >= best.steps / BRACKET
            tried = self.trials[long | self.trials.status.eq("infeasible")]
            off = np.log(tried.learning_rate / best.learning_rate)
            moves = [math.log(BRACKET), -math.log(BRACKET)]
            moves = [move for move in moves if (abs(off - move) > abs(move) / 2).all()]
            if not moves:
                return
            limit = self.limit(best.steps, surface.SCATTER)
            rates = best.learning_rate * np.exp(moves)
            yield [self.training(self.middle, rate, limit) for rate in rates]

    def limit(self, steps: float, spread: float) -> float:
        """The number of steps after which a training is given up, from its expected steps and the
        standard deviation of their ln; a schedule spans this number.
        """
        factor = math.exp(PATIENCE * min(spread, WIDEST))
        return steps * (max(HORIZON, factor) if self.scheduled else factor)

    def worthwhile(self, fitted: surface.Surface) -> list[int]:
        """Batch sizes at which another training is likely to meet the goal and be informative."""
        low, high = self.ends
        critical = min(max(fitted.critical[0], low), high)
        tried, met = Counter(self.trials.batch_size), {*self.met().batch_size}
        failed = {size for size, count in tried.items() if count >= TRIES} - met
        for size in failed & {*self.ladder()}:
            near = min(sorted(met), key=lambda met_at: abs(math.log(met_at / size)))
            between = 2 ** round(math.log2(near * size) / 2)
            self.nearer |= {between} - {near, size}
        sizes = self.ladder()
        return [
            size
            for size, expected in zip(sizes, fitted.steps(sizes)[0])
            if size not in failed
            and critical / FAR <= size <= critical * FAR
            and min(met) / REACH <= size <= max(met) * REACH
            and self.limit(expected, fitted.scatter) <= self.work.max_steps
        ]

    def next_wave(self, fitted: surface.Surface, sizes: list[int]) -> list[Search]:
        """The trainings that narrow the interval of the critical batch size most."""
        wave = []
        for _ in range(WAVE):
            after = {}
            for size in sizes:
                off = OFF[self.numbers[size] % len(OFF)]
                rate = float(fitted.rates([size])[0, 0]) * math.exp(off)
                after[size] = fitted.after(size, rate), rate
            size = min(after, key=lambda size: after[size][0].width)
            fitted, rate = after[size]
            steps, spread = fitted.expected(size, rate)
            wave.append(self.training(size, rate, self.limit(math.exp(steps), spread)))
        return wave

    def waves(self) -> Iterator[list[Search]]:
        """Yield the searches to train next, side by side, until the interval is narrow enough."""
        if self.within:
            yield from self.explore()
            return
        yield from self.race()
        if self.met().empty:
            return
        yield from self.bracket()
        self.raced, self.most = len(self.trials), max(MOST, self.runs() + LEAST)
        while self.left() >= WAVE:
            fitted, met = self.surface(), self.met().batch_size
            sizes = self.worthwhile(fitted)
            if len(sizes) < ENOUGH:
                easier = [goal for goal in self.work.goals if goal > self.goal]
                if not easier:
                    return
                self.goal = min(easier)
            elif fitted.width <= WIDTH and (met.nunique(), len(met)) >= SURE:
                return
            else:
                yield self.next_wave(fitted, sizes)

    def proofs(
        self, advised: Callable[[], tuple[int, float, float] | None]
    ) -> Iterator[list[Search]]:
        """Trainings of the advised setting, with new initialisations and orders; repeated at lower
        rates as long as one of them misses the goal.

        advised: returns batch size, rate and limit of steps; None if nothing is advised.
        """
        few, more = PROOFS
        while (advice := advised()) is not None:
            size, *_ = advice
            self.before = len(self.fresh)
            self.numbers[size] = FRESH - 1 + self.before
            yield [self.training(*advice) for _ in range(more if self.lowered else few)]
            missed = self.tried().isna().sum()
            shade, *_ = self.safe()
            lower = [factor for factor in SAFER if factor < shade]
            if missed and lower:
                self.lowered = lower[0]
                continue
            self.refuted = missed > 1
            return

    def tried(self) -> pd.Series:
        """Steps of the trainings of the setting advised now; NaN for those that missed the goal."""
        if self.fresh.empty:
            return pd.Series(dtype=float)
        return self.fresh[f"steps@{self.goal:g}"][self.before :]

    def safe(self) -> tuple[float, int, int]:
        """ln of the factor on the best rate at which few trainings miss the goal, and no trainings
        of the advised setting; and of those at the best rate, how many missed it and their number.
        """
        placed = self.table[self.table.placed & (self.table.limit < self.work.max_steps)]
        off = np.log(placed.learning_rate / self.surface().rates(placed.batch_size)[0])
        missed = {
            factor: placed.steps.isna()[(off - factor).abs() < APART]
            for factor in (0.0, *SAFER)
        }
        most = {factor: max(1, MISSES * len(near)) for factor, near in missed.items()}
        fine = [factor for factor, near in missed.items() if near.sum() <= most[factor]]
        shade = fine[0] if fine else SAFER[-1]
        return min(shade, self.lowered), int(missed[0.0].sum()), len(missed[0.0])

    def minutes(self) -> float:
        """Minutes until the search ends, at the pace so far."""
        left = max(0.0, self.left()) + PROOFS[0]
        seconds = pd.concat([self.trials, self.fresh]).seconds.sum()
        return seconds / 60 * left / self.runs()

    def title(self, wave: list[Search]) -> str:
        """The progress of the search, as the title of the next wave's progress bar."""
        if not self.raced:
            return f"{self.work.title}, a race over learning rates first"
        if wave[0].replicate >= FRESH:
            return f"{self.work.title}, as advised, from other initialisations"
        runs, most = self.runs(), self.runs() + self.left()
        start = f"{self.work.title}, {runs:.0f} of {most:.0f} tuned runs"
        return f"{start}, about {self.minutes():.1f} minutes to go"


def run(
    plan: Plan,
    minutes: float,
    folder: Path = DATA,
    train: bool = True,
    since: float | None = None,
    waves: Iterator[list[Search]] | None = None,
    **options,
) -> Plan:
    """Search until the plan ends or the minutes are over; searches on record are read.

    Args:
        plan: a new plan, or a finished one for `Plan.proofs`.
        minutes: allowed.
        folder: of records.
        train: whether to train; if not, the first search without a record ends the plan.
        since: when the minutes begin (`time.time`); None: now.
        waves: of the plan; None: `Plan.waves`.
        options: for `sweeps.run`.

    Returns the plan.
    """
    until = (time.time() if since is None else since) + 60 * minutes
    for wave in plan.waves() if waves is None else waves:
        study = Study(plan.title(wave), "", wave)
        try:
            if results.missing(study, folder):
                if not train or time.time() >= until:
                    raise OutOfTime
                sweeps.run(study, folder, until=until, **options)
        except OutOfTime:
            plan.stopped = True
            # Searches of the wave that had ended count as well
            lacking = {*results.missing(study, folder)}
            wave = [search for search in wave if search not in lacking]
        for search in wave:
            plan.add(search, *store.read(record(search, folder), search))
        if plan.stopped:
            break
    return plan
