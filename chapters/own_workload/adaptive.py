"""An adaptive search for the critical batch size: few trainings, each told by those before it.

The page says how it goes.  Every trial is a cell of its own, one point of the search space, with a
record, so that whatever is stopped goes on where it was; the first search alone has several trials.
A trial ends at its goal, at the steps of the best of its search, which it cannot beat any more, or
at `BEYOND` times what its batch size took so far.

Costs are counted in tuned runs: of every batch size all steps of all its trials, those that
diverged or were given up included, over its K*, the geometric mean of its searches' steps to the
goal; summed over batch sizes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from chapters.own_workload.bends import WIDTH, Estimate, estimate
from lib.analysis.hardware import SEEDS
from lib.measuring import sweeps
from lib.methods import method, spaces
from lib.records import results, store
from lib.records.store import DATA, record
from lib.studies.cells import Cell
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
NEAR_RATE, NEAR = 1.4, 0.12  # how far fresh trials are from the best: in rate, in places of others
MOVES = 2.0, 0.5  # of the rate, once one is found
USUAL = {"reverse-log": 0.9}  # places of other hyperparameters at first: momentum that is not slow
DEARER = 1.1  # a fresh trial may take longer than K*
TRIES = 4  # trials of one search, before it counts as one that needs as many steps as they took


# What is known of a trial, besides its hyperparameters: its search (0, 1, ...) of a batch size, its
# steps to the goal (NaN if it was not met), and the steps and the seconds that it took
ABOUT = ["batch_size", "search", "steps", "taken", "seconds"]


def reach(drawn: pd.Series | dict[str, float], steps: float) -> float:
    """How far the gradient of a step moves the weights, on average over so many steps: of momentum
    1 / (1 - momentum) if these are many, and less while velocities still grow.
    """
    m = drawn.get("momentum", 0.0)
    return (1 - m * (1 - m**steps) / (steps * (1 - m))) / (1 - m)


def effective(trials: pd.Series | pd.DataFrame) -> float | pd.Series:
    """The effective learning rates of trials that met the goal."""
    return trials.learning_rate * reach(trials, trials.steps)


class Plan:
    """What is searched, and what is known of it.

    name, algorithm: of the workload and the training method; sizes: the smallest and the largest
    batch size allowed; fields: further ones of the cells, such as precision.
    cells: those trained so far, in their order.
    """

    def __init__(self, name: str, algorithm: str, sizes: tuple[int, int], **fields):
        self.sizes = sizes
        self.work = workload(name)
        self.cell = functools.partial(Cell, name, algorithm=algorithm, hits=1, **fields)
        self.space = spaces.intervals(self.work.space, algorithm, self.work.decay)
        made = method(algorithm).optimiser
        # A schedule's steps are others once the limit is
        self.free = not (made and made.schedule)
        self.cells: list[Cell] = []
        self.rows: list[dict] = []

    def add(self, cell: Cell, head: dict, table: pd.DataFrame) -> None:
        """Note what a record holds."""
        found = table[[*self.space]].assign(
            batch_size=cell.batch_size,
            search=cell.replicate // SEEDS,
            steps=table[f"steps@{self.work.goal:g}"],
            taken=head["trial_steps"] / len(table),
            seconds=head["wall_s"] / len(table),
        )
        self.rows += found.to_dict("records")
        self.cells.append(cell)

    # --- what is known ----------------------------------------------------------------------------

    @property
    def trials(self) -> pd.DataFrame:
        """A row per trial so far: its hyperparameters, and ABOUT it."""
        return pd.DataFrame(self.rows, columns=[*ABOUT, *self.space])

    def met(self, size: int) -> pd.DataFrame:
        """The trials that met the goal at a batch size, the fastest first."""
        own = self.trials.query("batch_size == @size").dropna(subset="steps")
        return own.sort_values("steps", kind="stable")

    def searches(self) -> dict[int, list[float]]:
        """The steps to the goal of every search, by batch size that met it; of a search that did
        not, the fewest that a trial took.
        """
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

    # --- what is tried next -----------------------------------------------------------------------

    def explored(self, size: int) -> Cell:
        """A search of all learning rates, others as usual, to its first hit."""
        drawn = {name: f"{at.at(USUAL.get(at.scale, 0.5)):.6g}" for name, at in self.space.items()}
        rates = self.space["learning_rate"]
        drawn["learning_rate"] = f"{rates.low:.6g}{spaces.BETWEEN}{rates.high:.6g}"
        space = ",".join(map("=".join, drawn.items()))
        return self.cell(size, trials=EXPLORED, space=space)

    def trial(
        self, size: int, search: int, like: pd.Series, rate: float, expected: float, shift=0.0
    ) -> Cell:
        """The next trial of a search: with this effective rate over the steps expected, and other
        hyperparameters like those of a trial or shifted by so many places, all within the space.
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

    def carried(self, sizes: list[int]) -> Iterator[list[Cell]]:
        """First searches of batch sizes, with the rates of the nearest one known."""
        known = self.steps()
        for power in POWERS:
            yield [self._carried(size, known, power) for size in sizes]

    def _carried(self, size: int, known: dict[int, float], power: float) -> Cell:
        near = min(known, key=lambda at: abs(math.log(at / size)))
        best = self.met(near).iloc[0]
        rate = effective(best) * (size / near) ** power
        return self.trial(size, 0, best, rate, known[near] * max(1.0, near / size))

    def again(self, sizes: list[int]) -> Iterator[list[Cell]]:
        """Searches with fresh seeds."""
        turn = {size: len(own) for size, own in self.searches().items()}
        for number in range(TRIES):
            left = [s for s in sizes if number < FRESH or turn[s] not in set(self.met(s).search)]
            if left:
                yield [self._fresh(size, turn[size], number) for size in left]

    def _fresh(self, size: int, search: int, number: int) -> Cell:
        best = self.met(size)[:3]
        random = np.random.default_rng((size, search, number))
        centre = np.exp(np.log(effective(best)).mean())
        near = centre * NEAR_RATE ** random.uniform(-1, 1), self.steps()[size]
        return self.trial(size, search, best.iloc[0], *near, random.uniform(-NEAR, NEAR))

    def lacking(self, found: Estimate) -> list[int]:
        """A batch size that the curve needs to bend inside those searched; none if it does."""
        low, *between, high = sorted({*self.trials.batch_size})
        above = [min(self.sizes[1], high * ADDED)] * (found.critical > high / INSIDE)
        below = [max(self.sizes[0], low // ADDED)] * (found.critical < low * INSIDE)
        return [size for size in above + below if size not in (low, *between, high)][:1]

    def telling(self, found: Estimate) -> list[int]:
        """Where a further search narrows the interval most; nowhere if it is narrow enough, or if
        that costs too much.
        """
        counts = pd.Series(self.searches()).map(len)
        if found.width <= WIDTH and found.searches >= SEARCHES * len(counts):
            return []
        gain = pd.Series(found.telling) ** 2 / (counts * (counts + 1))
        chosen = gain.index[gain >= gain.max() / 2].to_list()
        return chosen if self.runs() + DEARER * FRESH * len(chosen) <= MOST else []

    def waves(self) -> Iterator[list[Cell]]:
        """What is trained next, side by side; it ends where the interval is narrow enough, or no
        trial met the goal.
        """
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
    read.  Returns the plan.

    train: False reads what is there alone.  options: of `sweeps.run`.
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
