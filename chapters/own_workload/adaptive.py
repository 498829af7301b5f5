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

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from chapters.own_workload.bends import WIDTH, estimate
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


@dataclass(frozen=True)
class Trial:
    """A trial of a search (0, 1, ...): its hyperparameters, its steps to the goal (None if it was
    not met), and the steps and the seconds that it took.
    """

    batch_size: int
    search: int
    drawn: dict[str, float]
    steps: float | None
    taken: float
    seconds: float


def reach(drawn: dict[str, float], steps: float) -> float:
    """How far the gradient of a step moves the weights, on average over so many steps: of momentum
    1 / (1 - momentum) if these are many, and less while velocities still grow.
    """
    m = drawn.get("momentum", 0.0)
    return (1 - m * (1 - m**steps) / (steps * (1 - m))) / (1 - m)


def written(drawn: dict[str, float | tuple[float, float]]) -> str:
    """A point of the search space as cells know it, or a part of one, of values and ranges."""
    ends = {name: [f"{end:.6g}" for end in np.atleast_1d(at)] for name, at in drawn.items()}
    return ",".join(f"{name}={spaces.BETWEEN.join(each)}" for name, each in ends.items())


class Plan:
    """What is searched, and what is known of it.

    name, algorithm: of the workload and the training method; sizes: the smallest and the largest
    batch size allowed; fields: further ones of the cells, such as precision.
    trials: `Trial`s so far; cells: theirs.
    """

    def __init__(self, name: str, algorithm: str, sizes: tuple[int, int], **fields):
        self.name = name
        self.algorithm = algorithm
        self.sizes = sizes
        self.fields = fields
        self.work = workload(name)
        space = fields.get("space") or self.work.space
        self.space = spaces.intervals(space, algorithm, self.work.decay)
        made = method(algorithm).optimiser
        # A schedule's steps are others once the limit is
        self.free = not (made and made.schedule)
        self.trials: list[Trial] = []
        self.cells: list[Cell] = []

    # --- what is known ----------------------------------------------------------------------------

    def of(self, size: int, search: int | None = None) -> list[Trial]:
        """The trials of a batch size, or of one of its searches."""
        own = (trial for trial in self.trials if trial.batch_size == size)
        return [trial for trial in own if search in (None, trial.search)]

    def best(self, size: int) -> list[Trial]:
        """Those that met the goal at a batch size, the fastest first."""
        return sorted((t for t in self.of(size) if t.steps), key=lambda t: t.steps)

    def searches(self) -> dict[int, list[float]]:
        """The steps to the goal of every search, by batch size that met it."""
        sizes = sorted({t.batch_size for t in self.trials if t.steps})
        return {b: [self._steps(b, n) for n in range(self.of(b)[-1].search + 1)] for b in sizes}

    def _steps(self, size: int, search: int) -> float:
        """Of a search that did not meet the goal, the fewest that a trial took."""
        return float(min(self._met(size, search) or [t.taken for t in self.of(size, search)]))

    def steps(self, size: int) -> float:
        """K* at a batch size that met the goal."""
        return float(np.exp(np.mean(np.log(self.searches()[size]))))

    def runs(self) -> float:
        """The cost so far, in tuned runs; of sizes that never met the goal, trials."""
        known = {size: self.steps(size) for size in self.searches()}
        return float(sum(t.taken / known.get(t.batch_size, t.taken) for t in self.trials))

    # --- what is tried next -----------------------------------------------------------------------

    def rate(self, trial: Trial) -> float:
        """The effective rate of one that met the goal."""
        return trial.drawn["learning_rate"] * reach(trial.drawn, trial.steps)

    def point(
        self, like: dict[str, float], rate: float, steps: float, shift: float = 0.0
    ) -> dict[str, float]:
        """Hyperparameters with this effective rate over so many steps, others as `like` or shifted
        by so many places, all within the space.
        """
        drawn = dict(like)
        for name, at in self.space.items():
            if name != "learning_rate" and at.high > at.low:
                place = np.clip(at.place(np.array(like[name])) + shift, 0, 1 - 1e-9)
                drawn[name] = float(at.at(place))
        at = self.space["learning_rate"]
        drawn["learning_rate"] = float(np.clip(rate / reach(drawn, steps), at.low, at.high))
        return drawn

    def cell(self, size: int, search: int, drawn: dict[str, float], expected: float) -> Cell:
        """The next trial of a search."""
        limit = min([math.ceil(BEYOND * expected), *self._met(size, search)])
        tried = len(self.of(size, search))
        most = self.fields.get("max_steps") or self.work.max_steps
        ends = {"max_steps": limit} if self.free and limit < most else {}
        number = SEEDS * search + tried
        return self._cell(size, trials=1, space=written(drawn), replicate=number, **ends)

    def _cell(self, size: int, **own) -> Cell:
        return Cell(self.name, size, self.algorithm, **{**self.fields, "hits": 1, **own})

    def explored(self, size: int) -> Cell:
        """A search of all learning rates, others as usual, to its first hit."""
        usual = {n: at.at(np.array(USUAL.get(at.scale, 0.5))) for n, at in self.space.items()}
        rates = self.space["learning_rate"]
        space = written({**usual, "learning_rate": (rates.low, rates.high)})
        return self._cell(size, trials=EXPLORED, space=space)

    def carried(self, sizes: list[int]) -> Iterator[list[Cell]]:
        """First searches of batch sizes, with the rates of the nearest one known."""
        known = list(self.searches())
        for power in POWERS:
            yield [self._carried(size, known, power) for size in sizes]

    def _carried(self, size: int, known: list[int], power: float) -> Cell:
        near = min(known, key=lambda at: abs(math.log(at / size)))
        best = self.best(near)[0]
        ratio = size / near
        expected = self.steps(near) * max(1.0, 1 / ratio)
        point = self.point(best.drawn, self.rate(best) * ratio**power, expected)
        return self.cell(size, 0, point, expected)

    def again(self, sizes: list[int]) -> Iterator[list[Cell]]:
        """Searches with fresh seeds."""
        turn = {size: 1 + self.of(size)[-1].search for size in sizes}
        for number in range(TRIES):
            left = [s for s in sizes if number < FRESH or not self._met(s, turn[s])]
            if left:
                yield [self._fresh(size, turn[size], number) for size in left]

    def _met(self, size: int, search: int) -> list[int]:
        return [int(trial.steps) for trial in self.of(size, search) if trial.steps]

    def _fresh(self, size: int, search: int, number: int) -> Cell:
        best = self.best(size)[:3]
        steps = self.steps(size)
        centre = np.exp(np.mean([math.log(self.rate(t)) for t in best]))
        random = np.random.default_rng((size, search, number))
        rate = centre * NEAR_RATE ** random.uniform(-1, 1)
        point = self.point(best[0].drawn, rate, steps, random.uniform(-NEAR, NEAR))
        return self.cell(size, search, point, steps)

    def first(self) -> list[int]:
        """Batch sizes to begin with, the middle one first."""
        low, high = self.sizes
        middle = min(max(2 ** round(math.log2(low * high) / 2), low), high)
        return list(dict.fromkeys([middle, max(low, middle // APART), min(high, middle * APART)]))

    def lacking(self) -> list[int]:
        """A batch size that the curve needs to bend inside those searched; none if it does."""
        found = estimate(self.searches())
        if found is None:
            return []
        searched = {trial.batch_size for trial in self.trials}
        low = min(searched)
        high = max(searched)
        wanted = []
        if found.critical > high / INSIDE:
            wanted.append(min(self.sizes[1], high * ADDED))
        if found.critical < low * INSIDE:
            wanted.append(max(self.sizes[0], low // ADDED))
        return [size for size in wanted if size not in searched][:1]

    def telling(self) -> list[int]:
        """Where a further search narrows the interval most; nowhere if it is narrow enough, or if
        that costs too much.
        """
        found = estimate(self.searches())
        if found is None:
            return []
        counts = {size: len(steps) for size, steps in self.searches().items()}
        if found.width <= WIDTH and found.searches >= SEARCHES * len(counts):
            return []
        gain = {size: found.telling[size] ** 2 / (n * (n + 1)) for size, n in counts.items()}
        most = max(gain.values())
        chosen = [size for size, one in gain.items() if one >= most / 2]
        cost = DEARER * FRESH * len(chosen)
        return chosen if self.runs() + cost <= MOST else []

    def waves(self) -> Iterator[list[Cell]]:
        """What is trained next, side by side; it ends where the interval is narrow enough, or no
        trial met the goal.
        """
        middle, *others = self.first()
        yield [self.explored(middle)]
        if not self.best(middle):
            return
        for factor in MOVES:
            best = self.best(middle)[0]
            point = self.point(best.drawn, self.rate(best) * factor, best.steps)
            yield [self.cell(middle, 0, point, best.steps)]
        yield from self.carried(others)
        while wanted := self.lacking():
            yield from self.carried(wanted)
        while sizes := self.telling():
            yield from self.again(sizes)

    def add(self, cell: Cell, head: dict, table: pd.DataFrame) -> None:
        """Note what a record holds."""
        taken, seconds = (head[name] / len(table) for name in ("trial_steps", "wall_s"))
        column = f"steps@{self.work.goal:g}"
        search = cell.replicate // SEEDS
        settings = table[[*self.space]].to_dict("records")
        for drawn, steps in zip(settings, table[column]):
            met = None if math.isnan(steps) else float(steps)
            trial = Trial(cell.batch_size, search, drawn, met, taken, seconds)
            self.trials.append(trial)
        self.cells.append(cell)

    def seconds(self) -> float:
        """Of training so far."""
        return sum(trial.seconds for trial in self.trials)


def run(plan: Plan, minutes: float, folder: Path = DATA, train: bool = True, **options) -> Plan:
    """Search until the plan ends or so many minutes of training are on record; what has a record is
    read.  Returns the plan.

    train: False reads what is there alone.  options: of `sweeps.run`.
    """
    for wave in plan.waves():
        told = f"{plan.work.title}, {plan.runs():.0f} tuned runs so far"
        study = Study(told, "", tuple(wave))
        lacking = results.missing(study, folder)
        if lacking and (not train or plan.seconds() >= 60 * minutes):
            break
        if lacking:
            sweeps.run(study, folder, **options)
        for cell in wave:
            plan.add(cell, *store.read(record(cell, folder), cell))
    return plan
