"""An adaptive search for the critical batch size: few trainings, each told by those before it.

The page says how it goes, and what a tuned run is.  Every trial is a cell of its own, with a
record, so that whatever is stopped goes on where it was.  A trial ends at its goal, at the steps of
the best of its search, or at `BEYOND` times what its batch size took so far.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib import forms
from lib.analysis.hardware import SEEDS
from lib.measuring import sweeps
from lib.methods import method, spaces
from lib.records import results, store
from lib.records.store import DATA, record
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import workload

MOST = 40.0  # tuned runs
EXPLORED = 6  # trials of the first search, of the whole space
POWERS = 0.5, 1.0, 0.0  # of the ratio of batch sizes, by which rates are carried
FRESH = 2  # trials of a search with fresh seeds
SEARCHES = 3  # of a batch size on average, before the interval may end the plan
APART, ADDED = 8, 4  # factors between the first batch sizes, and to those that are added
INSIDE = 4  # the least factor from the critical batch size to the outermost ones
BEYOND = 2.5  # times the steps expected, at which a trial is given up
NEAR_RATE, NEAR = (
    1.4,
    0.12,
)  # how far fresh trials are from the best: in rate, in places of others
MOVES = 2.0, 0.5  # of the rate, once one is found
USUAL = {
    "reverse-log": 0.9
}  # places of other hyperparameters at first: momentum that is not slow
DEARER = 1.1  # a fresh trial may take longer than K*
TRIES = 4  # trials of one search, before it counts as one that needs as many steps as they took
WIDTH = 1.25  # the factor from the critical batch size to either end of its 90 % interval
SMALL = 0.1  # by which ln K* is moved, for slopes


@dataclass(frozen=True)
class Estimate:
    """The critical batch size with its 90 % interval, from so many `searches`.

    floor: K* of endless batches by the fitted law, steps.  error: of one search, the standard
    deviation of ln K* about that law.  telling: how much ln of the estimate moves with ln K* at
    each batch size.
    """

    critical: float
    low: float
    high: float
    searches: int
    floor: float
    error: float
    telling: dict[int, float]

    @property
    def width(self) -> float:
        """The factor from the estimate to the end of its interval."""
        return math.sqrt(self.high / self.low) if 0 < self.low else math.inf

    def reach(self, searches: np.ndarray) -> np.ndarray:
        """The factor from the mean of so many searches [n] to the ends of its 90 % interval."""
        return np.exp(stdtrit(self.searches - 2, 0.95) * self.error / np.sqrt(searches))

    def steps(self, sizes: np.ndarray) -> np.ndarray:
        """K* [n] of the law at batch sizes [n]."""
        return self.floor * (1 + self.critical / np.asarray(sizes, float))


def estimate(searches: dict[int, list[float]]) -> Estimate | None:
    """What steps to the goal of searches tell, by batch size; None of fewer than three sizes.

    The error is that of the searches about the fitted curve, so that a curve of another form widens
    the interval, too.
    """
    known = {size: steps for size, steps in sorted(searches.items()) if steps}
    if len(known) < 3:
        return None
    counts = np.array(list(map(len, known.values())))
    sizes = np.repeat(np.array(list(known), float), counts)
    logs = np.log(np.concatenate(list(known.values())))
    fitted = forms.fit(sizes, logs)
    centre = float(fitted.bend[0])
    freedom = len(logs) - 2
    error = math.sqrt(fitted.loss[0] / freedom)
    slopes = _slopes(sizes, logs, np.array(list(known)))
    spread = math.sqrt((slopes**2 / counts).sum())
    reach = float(stdtrit(freedom, 0.95)) * error * spread
    low = math.exp(centre - reach)
    high = math.exp(centre + reach)
    if not math.log(sizes.min()) - 1 < centre < math.log(sizes.max()) + 1:
        low = 0.0
        high = math.inf
    floor = math.exp(fitted.floor[0])
    telling = dict(zip(known, slopes.tolist()))
    return Estimate(math.exp(centre), low, high, len(logs), floor, error, telling)


def _slopes(sizes: np.ndarray, logs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """By how much ln C moves with ln K* at each of the known batch sizes."""
    moved = SMALL * (sizes == known[:, None])
    above, below = (forms.fit(sizes, logs + sign * moved).bend for sign in (1, -1))
    return (above - below) / (2 * SMALL)


def reach(drawn: pd.Series | dict[str, float], steps: float) -> float:
    """How far a step's gradient moves the weights, in the mean over so many steps: of momentum
    1 / (1 - momentum) if these are many, and less while velocities still grow.
    """
    m = drawn.get("momentum", 0.0)
    return (1 - m * (1 - m**steps) / (steps * (1 - m))) / (1 - m)


def effective(trials: pd.Series | pd.DataFrame) -> float | pd.Series:
    """The effective learning rates of trials that met the goal."""
    return trials.learning_rate * reach(trials, trials.steps)


class Plan:
    """What is searched, from the smallest batch size allowed to the largest (sizes), and what is
    known of it: `cells` are those trained so far, in their order; fields: further ones of theirs.
    """

    def __init__(self, name: str, algorithm: str, sizes: tuple[int, int], **fields):
        self.sizes = sizes
        self.work = workload(name)
        self.cell = functools.partial(Search, name, algorithm=algorithm, hits=1, **fields)
        self.space = spaces.intervals(self.work.space, algorithm, self.work.decay)
        made = method(algorithm).optimiser
        # A schedule's steps are others once the limit is
        self.free = not (made and made.schedule)
        self.cells: list[Search] = []
        self.rows: list[dict] = []

    def add(self, cell: Search, head: dict, table: pd.DataFrame) -> None:
        """Note what a record holds."""
        taken, seconds = head["trial_steps"] / len(table), head["wall_s"] / len(table)
        about = {"batch_size": cell.batch_size, "search": cell.replicate // SEEDS}
        about |= {
            "steps": table[f"steps@{self.work.goal:g}"],
            "taken": taken,
            "seconds": seconds,
        }
        found = table[[*self.space]].assign(**about)
        self.rows += found.to_dict("records")
        self.cells.append(cell)

    @property
    def trials(self) -> pd.DataFrame:
        """A row per trial: steps to the goal (or NaN), steps and seconds taken, hyperparameters."""
        about = ["batch_size", "search", "steps", "taken", "seconds"]
        return pd.DataFrame(self.rows, columns=[*about, *self.space])

    def met(self, size: int) -> pd.DataFrame:
        """The trials that met the goal at a batch size, the fastest first."""
        own = self.trials.query("batch_size == @size").dropna(subset="steps")
        return own.sort_values("steps", kind="stable")

    def searches(self) -> dict[int, list[float]]:
        """Steps of every search to the goal, or until given up, by batch size that met it."""
        least = self.trials.groupby(["batch_size", "search"])[["steps", "taken"]].min()
        steps = least.steps.fillna(least.taken).groupby("batch_size").agg(list)
        return steps[least.steps.groupby("batch_size").any()].to_dict()

    def steps(self) -> dict[int, float]:
        """K* of the batch sizes that met the goal."""
        return {size: float(np.exp(np.mean(np.log(k)))) for size, k in self.searches().items()}

    def runs(self) -> float:
        """The cost so far, in tuned runs; of sizes that never met the goal, trials."""
        trials = self.trials
        known = trials.batch_size.map(self.steps()).fillna(trials.taken)
        return sum(trials.taken / known)

    def explored(self, size: int) -> Search:
        """A search of all learning rates, others as usual, to its first hit."""
        drawn = {
            name: f"{at.at(USUAL.get(at.scale, 0.5)):.6g}" for name, at in self.space.items()
        }
        rates = self.space["learning_rate"]
        drawn["learning_rate"] = f"{rates.low:.6g}{spaces.BETWEEN}{rates.high:.6g}"
        space = ",".join(map("=".join, drawn.items()))
        return self.cell(size, trials=EXPLORED, space=space)

    def trial(
        self, size: int, search: int, like: pd.Series, rate: float, expected: float, shift=0.0
    ) -> Search:
        """The next trial of a search: with this effective rate, and other hyperparameters like
        those of a trial or shifted by so many places, all within the space.
        """
        drawn = {}
        for name, at in self.space.items():
            place = np.clip(at.place(like[name]) + shift, 0, 1 - 1e-9)
            drawn[name] = at.at(place) if at.high > at.low else like[name]
        at = self.space["learning_rate"]
        drawn["learning_rate"] = np.clip(rate / reach(drawn, expected), at.low, at.high)
        tried = self.trials.query("batch_size == @size and search == @search")
        limit = min([math.ceil(BEYOND * expected), *tried.steps.dropna().astype(int)])
        ends = {"max_steps": limit} if self.free and limit < self.work.max_steps else {}
        number = SEEDS * search + len(tried)
        return self.cell(size, trials=1, space=spaces.point(**drawn), replicate=number, **ends)

    def carried(self, sizes: list[int]) -> Iterator[list[Search]]:
        """First searches of batch sizes, with the rates of the nearest one known."""
        known = self.steps()
        nearest = {at: min(known, key=lambda k: abs(math.log(k / at))) for at in sizes}
        for power in POWERS:
            wave = []
            for size, near in nearest.items():
                best = self.met(near).iloc[0]
                rate = effective(best) * (size / near) ** power
                expected = known[near] * max(1.0, near / size)
                wave.append(self.trial(size, 0, best, rate, expected))
            yield wave

    def again(self, sizes: list[int]) -> Iterator[list[Search]]:
        """Searches with fresh seeds."""
        turn = {size: len(own) for size, own in self.searches().items()}
        for number in range(TRIES):
            wave = []
            for size in sizes:
                met, expected = self.met(size), self.steps()[size]
                if number >= FRESH and turn[size] in set(met.search):
                    continue
                random = np.random.default_rng((size, turn[size], number))
                rate = np.exp(np.log(effective(met[:3])).mean())
                rate *= NEAR_RATE ** random.uniform(-1, 1)
                shift = random.uniform(-NEAR, NEAR)
                wave.append(self.trial(size, turn[size], met.iloc[0], rate, expected, shift))
            if wave:
                yield wave

    def lacking(self, found: Estimate) -> list[int]:
        """A batch size that the curve needs to bend inside those searched; none if it does."""
        known = set(self.trials.batch_size)
        low, high = min(known), max(known)
        above = [min(self.sizes[1], high * ADDED)] * (found.critical > high / INSIDE)
        below = [max(self.sizes[0], low // ADDED)] * (found.critical < low * INSIDE)
        return [size for size in above + below if size not in known][:1]

    def telling(self, found: Estimate) -> list[int]:
        """Where a further search narrows the interval most; nowhere if it need not or may not."""
        counts = pd.Series(self.searches()).map(len)
        if found.width <= WIDTH and found.searches >= SEARCHES * len(counts):
            return []
        gain = pd.Series(found.telling) ** 2 / (counts * (counts + 1))
        chosen = gain.index[gain >= gain.max() / 2].to_list()
        return chosen if self.runs() + DEARER * FRESH * len(chosen) <= MOST else []

    def waves(self) -> Iterator[list[Search]]:
        """What is trained next, side by side, until the interval is narrow enough."""
        low, high = self.sizes
        middle = min(max(2 ** round(math.log2(low * high) / 2), low), high)
        yield [self.explored(middle)]
        if self.met(middle).empty:
            return
        for factor in MOVES:
            best = self.met(middle).iloc[0]
            yield [self.trial(middle, 0, best, effective(best) * factor, best.steps)]
        others = dict.fromkeys((max(low, middle // APART), min(high, middle * APART)))
        yield from self.carried([size for size in others if size != middle])
        while (found := estimate(self.searches())) and (sizes := self.lacking(found)):
            yield from self.carried(sizes)
        while (found := estimate(self.searches())) and (sizes := self.telling(found)):
            yield from self.again(sizes)


def run(plan: Plan, minutes: float, folder: Path = DATA, train: bool = True, **options) -> Plan:
    """Search until the plan ends or so many minutes of training are on record; what has a record is
    read, and without `train` nothing else.  options: of `sweeps.run`.  Returns the plan.
    """
    limit = 60 * minutes if train else 0
    for wave in plan.waves():
        told = f"{plan.work.title}, {plan.runs():.0f} tuned runs so far"
        study = Study(told, "", tuple(wave))
        lacking = results.missing(study, folder)
        if lacking and plan.trials.seconds.sum() >= limit:
            break
        if lacking:
            sweeps.run(study, folder, **options)
        for cell in wave:
            plan.add(cell, *store.read(record(cell, folder), cell))
    return plan
