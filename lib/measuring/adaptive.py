"""An adaptive search for the critical batch size: few trainings, each told by those before it.

It starts at three batch sizes, the middle one first.  What was the best learning rate there is
carried to the others, times the ratio of the batch sizes to the powers 1/2, 1 and 0; what counts of
momentum is the effective rate, learning rate / (1 - momentum).  Sizes are added until the curve
bends inside them.  Then come searches with fresh seeds, near the best rates so far, where they
narrow the interval most: until it is WIDTH wide, the minutes are over, or MOST tuned runs spent.

Every trial is a cell of its own (`Cell`, one trial of one point of the search space) with a record,
so that whatever is stopped goes on where it was; the first search alone is one of several trials.
A trial ends at its goal, at the steps of the best of its search, which it cannot beat any more, or
at `BEYOND` times what its batch size took so far.

Costs are counted in tuned runs: of every batch size all steps of all its trials, those that
diverged or were given up included, over its K*; summed over batch sizes.  K* is the geometric mean
of its searches' steps to the goal: training once at the best setting found takes about as many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.measuring import sweeps
from lib.measuring.bends import estimate
from lib.methods import method, spaces
from lib.records import results, store
from lib.records.places import DATA, record
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload

WIDTH = 1.25  # the factor from the critical batch size to either end of its 90 % interval
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
SEEDS = 10  # of a search: its trials have one each, of initialisation and order
TRIES = 4  # trials of one search, before it counts as one that needs as many steps as they took


@dataclass(frozen=True)
class Trial:
    """A trial's batch size, search (0, 1, ...), hyperparameters by name, steps to the goal (None if
    it was not met), steps taken by all that its record holds, and their seconds.
    """

    batch_size: int
    search: int
    drawn: dict[str, float]
    steps: float | None
    taken: int
    seconds: float


def reach(drawn: dict[str, float], steps: float) -> float:
    """How far the gradient of a step moves the weights, on average over so many steps: of momentum
    1 / (1 - momentum) if these are many, and less while velocities still grow.
    """
    m = drawn.get("momentum", 0.0)
    return (1 - m * (1 - m**steps) / (steps * (1 - m))) / (1 - m)


class Plan:
    """What is searched, and what is known of it.

    name, algorithm: of the workload and the training method; sizes: the smallest and the largest
    batch size allowed; fields: further ones of the cells, such as precision.
    trials: `Trial`s so far; cells: theirs.
    """

    def __init__(self, name: str, algorithm: str, sizes: tuple[int, int], **fields):
        self.name, self.algorithm, self.fields = name, algorithm, fields
        self.sizes, self.work = sizes, workload(name)
        space = fields.get("space") or self.work.space
        self.space = spaces.intervals(space, algorithm, self.work.decay)
        made = method(algorithm).optimiser
        # Such a schedule's steps are others once the limit is
        self.free = not (made and made.schedule and made.schedule.unit == "limit")
        self.trials: list[Trial] = []
        self.cells: list[Cell] = []

    # --- what is known ----------------------------------------------------------------------------

    def of(self, size: int, search: int | None = None) -> list[Trial]:
        """The trials of a batch size, or of one of its searches."""
        own = [trial for trial in self.trials if trial.batch_size == size]
        return [t for t in own if search is None or t.search == search]

    def best(self, size: int) -> list[Trial]:
        """Those that met the goal at a batch size, the fastest first."""
        return sorted((t for t in self.of(size) if t.steps), key=lambda t: t.steps)

    def searches(self) -> dict[int, list[float]]:
        """The steps to the goal of every search, by batch size that met it."""
        found: dict[int, list[float]] = {}
        for size in sorted({t.batch_size for t in self.trials if t.steps}):
            each = [self.of(size, n) for n in range(1 + max(t.search for t in self.of(size)))]
            steps = [[t.steps for t in own if t.steps] or [t.taken for t in own] for own in each]
            found[size] = [float(min(own)) for own in steps]
        return found

    def steps(self, size: int) -> float:
        """K* at a batch size that met the goal."""
        return float(np.exp(np.mean(np.log(self.searches()[size]))))

    def runs(self) -> float:
        """The cost so far, in tuned runs; of sizes that never met the goal, trials."""
        known = self.searches()
        each = [t.taken / self.steps(t.batch_size) if t.batch_size in known else 1.0
                for t in self.trials]  # fmt: skip
        return float(sum(each))

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
        drawn = {}
        for name, at in self.space.items():
            if name != "learning_rate" and at.high > at.low:
                place = float(np.clip(at.place(np.array(like[name])) + shift, 0, 1))
                drawn[name] = float(at.at(np.array(min(place, 1 - 1e-9))))
            else:
                drawn[name] = like[name]
        own, at = rate / reach(drawn, steps), self.space["learning_rate"]
        return {**drawn, "learning_rate": float(np.clip(own, at.low, at.high))}

    def cell(self, size: int, search: int, drawn: dict[str, float], expected: float) -> Cell:
        """The next trial of a search."""
        tried = self.of(size, search)
        met = [t.steps for t in tried if t.steps]
        limit = min([math.ceil(BEYOND * expected), *map(int, met)])
        space = ",".join(f"{name}={value:.6g}" for name, value in drawn.items())
        own = {"trials": 1, "hits": 1, "space": space, "replicate": SEEDS * search + len(tried)}
        if self.free and limit < (self.fields.get("max_steps") or self.work.max_steps):
            own["max_steps"] = limit
        return Cell(self.name, size, self.algorithm, **{**self.fields, **own})

    def explored(self, size: int) -> Cell:
        """A search of all learning rates, others as usual, to its first hit."""
        usual = {n: at.at(np.array(USUAL.get(at.scale, 0.5))) for n, at in self.space.items()}
        rates = self.space["learning_rate"]
        words = [f"{n}={value:.6g}" for n, value in usual.items() if n != "learning_rate"]
        space = ",".join([f"learning_rate={rates.low:.6g}..{rates.high:.6g}", *words])
        own = {"trials": EXPLORED, "hits": 1, "space": space}
        return Cell(self.name, size, self.algorithm, **{**self.fields, **own})

    def carried(self, sizes: list[int]) -> Iterator[list[tuple[int, Cell]]]:
        """First searches of batch sizes, with the rates of the nearest one known."""
        known = np.array(list(self.searches()))
        near = {s: int(known[np.abs(np.log(known / s)).argmin()]) for s in sizes}
        best = {s: self.best(at)[0] for s, at in near.items()}
        took = {s: self.steps(at) * max(1.0, at / s) for s, at in near.items()}
        for power in POWERS:
            rates = {s: self.rate(best[s]) * (s / near[s]) ** power for s in sizes}
            points = {s: self.point(best[s].drawn, rates[s], took[s]) for s in sizes}
            yield [(0, self.cell(s, 0, points[s], took[s])) for s in sizes]

    def again(self, sizes: list[int]) -> Iterator[list[tuple[int, Cell]]]:
        """Searches with fresh seeds."""
        turn = {s: 1 + max(t.search for t in self.of(s)) for s in sizes}
        for number in range(TRIES):
            left = [
                s for s in sizes if number < FRESH or not any(t.steps for t in self.of(s, turn[s]))
            ]
            if left:
                yield [(turn[s], self._fresh(s, turn[s], number)) for s in left]

    def _fresh(self, size: int, search: int, number: int) -> Cell:
        best = self.best(size)[:3]
        centre = np.exp(np.mean([math.log(self.rate(t)) for t in best]))
        random = np.random.default_rng((size, search, number))
        rate = centre * NEAR_RATE ** random.uniform(-1, 1)
        shift = random.uniform(-NEAR, NEAR)
        point = self.point(best[0].drawn, rate, self.steps(size), shift)
        return self.cell(size, search, point, self.steps(size))

    def first(self) -> list[int]:
        """Batch sizes to begin with, the middle one first."""
        low, high = self.sizes
        middle = min(max(2 ** round(math.log2(low * high) / 2), low), high)
        return list(dict.fromkeys([middle, max(low, middle // APART), min(high, middle * APART)]))

    def lacking(self) -> list[int]:
        """A batch size that the curve needs to bend inside those searched; none if it does."""
        found, searched = estimate(self.searches()), sorted({t.batch_size for t in self.trials})
        if found is None:
            return []
        low, high = searched[0], searched[-1]
        smaller, larger = max(self.sizes[0], low // ADDED), min(self.sizes[1], high * ADDED)
        wanted = [larger] if found.critical > high / INSIDE else []
        wanted += [smaller] if found.critical < low * INSIDE else []
        return [size for size in wanted if size not in searched][:1]

    def telling(self) -> list[int]:
        """Where a further search narrows the interval most; nowhere if it is narrow enough, or if
        that costs too much.
        """
        found = estimate(self.searches())
        if found is None:
            return []
        n = {size: len(steps) for size, steps in self.searches().items()}
        if found.width <= WIDTH and found.searches >= SEARCHES * len(n):
            return []
        gain = {s: found.telling[s] ** 2 / (n[s] * (n[s] + 1)) for s in n}
        chosen = [size for size, one in gain.items() if one >= max(gain.values()) / 2]
        return chosen if self.runs() + DEARER * FRESH * len(chosen) <= MOST else []

    def waves(self) -> Iterator[list[tuple[int, Cell]]]:
        """What is trained next, side by side: cells with their searches; it ends where the interval
        is narrow enough, or no trial met the goal.
        """
        middle, *others = self.first()
        yield [(0, self.explored(middle))]
        if not self.best(middle):
            return
        for factor in MOVES:
            best = self.best(middle)[0]
            point = self.point(best.drawn, self.rate(best) * factor, best.steps)
            yield [(0, self.cell(middle, 0, point, best.steps))]
        yield from self.carried(others)
        while wanted := self.lacking():
            yield from self.carried(wanted)
        while sizes := self.telling():
            yield from self.again(sizes)

    def add(self, search: int, cell: Cell, head: dict, table: pd.DataFrame) -> None:
        """Note what a record holds."""
        met = table[f"steps@{self.work.goal:g}"]
        for n, steps in enumerate(met):
            drawn = {name: float(table[name][n]) for name in self.space}
            spent = head["trial_steps"] / len(table), head["wall_s"] / len(table)
            found = None if math.isnan(steps) else float(steps)
            self.trials.append(Trial(cell.batch_size, search, drawn, found, *spent))
        self.cells.append(cell)

    def seconds(self) -> float:
        """Of training so far."""
        return sum(trial.seconds for trial in self.trials)

    def minutes_more(self) -> float:
        """About how many more minutes of fresh searches make the interval WIDTH wide."""
        found = estimate(self.searches())
        if found is None or found.width <= WIDTH:
            return 0.0
        fresh = sum(trial.seconds for trial in self.trials if trial.search)
        times = (math.log(found.width) / math.log(WIDTH)) ** 2
        return (times - 1) * max(fresh, self.seconds() / 2) / 60


def run(plan: Plan, minutes: float, folder: Path = DATA, train: bool = True, **options) -> Plan:
    """Search until the plan ends or so many minutes of training are on record; what has a record is
    read.  Returns the plan.

    train: False reads what is there alone.  options: of `sweeps.run`.
    """
    for wave in plan.waves():
        told = f"{plan.work.title}, {plan.runs():.0f} tuned runs so far"
        study = Study(told, "", tuple(cell for _, cell in wave))
        lacking = results.missing(study, folder)
        if lacking and (not train or plan.seconds() >= 60 * minutes):
            break
        if lacking:
            sweeps.run(study, folder, **options)
        for search, cell in wave:
            plan.add(search, cell, *store.read(record(cell, folder), cell))
    return plan


def table(plan: Plan, folder: Path = DATA) -> pd.DataFrame:
    """The trials as of `lib.records.results.read`, of which curves are made: `replicate` is the
    number of the search, and what tells the cells of a search apart is the same for all.
    """
    found = results.read(Study(plan.name, "", tuple(plan.cells)), folder)
    if found.empty:
        return found
    same = {"space": "adaptive", "trials": FRESH, "max_steps": plan.work.max_steps}
    return found.assign(replicate=found.replicate // SEEDS, **same)
