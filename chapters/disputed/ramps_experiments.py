"""What this chapter measures: searches whose batch size and learning rate change after each quarter
of their examples.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Literal

import pandas as pd

from chapters.disputed.schedules import Ramp, ramped
from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.methods import method
from lib.records.store import folder_name
from lib.studies.cells import Cell

DECAY, SEESAW, DOUBLING, LATE, CONSTANT = SCHEDULES = (
    "rate halved",
    "Seesaw",
    "batch doubled, rate raised",
    "late switch",
    "constant",
)
A = 2  # by what the first schedule divides the rate at every cut
QUARTERS = (0.25, 0.5, 0.75)  # of the examples: the cuts
FACTORS = {  # cuts, and at each the factors of batch size and rate
    DECAY: (QUARTERS, 1, 1 / A),
    SEESAW: (QUARTERS, A, A**-0.5),
    DOUBLING: (QUARTERS, A, A**0.5),
    LATE: (QUARTERS[-1:], A**3, 1.0),
    CONSTANT: ((), 1, 1.0),
}
QUARTER, WHOLE = STARTS = "a quarter of the critical batch size", "the critical batch size"


@dataclasses.dataclass(frozen=True)
class Network:
    """How one network is trained and judged.  lengths: from either start, the batch size and the
    examples, which grow as c1/B + c2 has it: by 1 + B/B_crit.  goals: the hardest first.
    checks: as many examples apart from either start.
    """

    algorithm: str
    space: str
    lengths: tuple[tuple[int, int], ...]
    goals: tuple[float, ...]
    replicates: int
    trials: int = 16
    checks: tuple[str, ...] = ("every-4", "every-1")


ADAM = "learning_rate={}..{},beta1=0.9,beta2=0.999"
ERRORS = (0.04, 0.05, 0.06)
FC, MLP, TEXT = "mnist-fc-128x3-easier", "digits-mlp", "shakespeare"
NETWORKS = {
    FC: Network("sgd", "learning_rate=3e-3..3", ((44, 54_000), (176, 86_400)), ERRORS, 4),
    MLP: Network("adam", ADAM.format("1e-4", "0.1"), ((18, 2_700), (72, 4_320)), ERRORS, 20),
    TEXT: Network(
        "adam",
        ADAM.format("1e-3", "0.03"),
        ((9, 9_000), (36, 14_400)),
        (2.2, 2.3),  # nats per character
        replicates=3,
        trials=8,
        checks=("every-16", "every-4"),
    ),
}


@spec
class Search:
    """Trials of one schedule, which differ in their peak rate and initialisation.

    start: where the batch size begins.  replicate: its draws, seeds and split of the examples.
    Raises ValueError naming the field, its value and what is allowed.
    """

    workload: Literal[*NETWORKS]
    schedule: Literal[*SCHEDULES]
    start: Literal[*STARTS]
    replicate: Count(1000) = 1
    trials: Count(1024) = 16

    @property
    def lengths(self) -> tuple[int, int]:
        """The first batch size, and the examples after which the search ends."""
        return NETWORKS[self.workload].lengths[STARTS.index(self.start)]

    @property
    def ramp(self) -> Ramp:
        """The schedule: its cuts in examples, and the factors at each."""
        cuts, batch, rate = FACTORS[self.schedule]
        _, horizon = self.lengths
        return Ramp(tuple(round(cut * horizon) for cut in cuts), batch, rate)

    @property
    def cell(self) -> Cell:
        """The same search with neither batch size nor rate changed."""
        first, horizon = self.lengths
        network = NETWORKS[self.workload]
        start = STARTS.index(self.start)
        draws = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        most = self.ramp.steps(horizon, first)
        how = {"hits": 1, "max_steps": most, "checks": network.checks[start]}
        return Cell(
            self.workload, first, network.algorithm, space=network.space, **draws, **how
        )

    @property
    def most(self) -> tuple[int, int]:
        """Steps of a search that meets no goal, and their examples."""
        steps = self.cell.max_steps
        return steps, self.ramp.examples(steps, self.cell.batch_size)

    def definition(self) -> dict:
        ramp = dataclasses.asdict(self.ramp)
        own = {name: getattr(self.cell, name) for name in ("batch_size", "space", "max_steps")}
        return {**self.cell.definition(), **own, "ramp": ramp}

    def measure(self) -> pd.DataFrame:
        """A row per trial: learning_rate, the peak; steps@GOAL, the check that first met it; and
        examples@GOAL, by then.
        """
        from lib.measuring import one_cell  # brings PyTorch

        cell = self.cell
        ramp = self.ramp
        out = one_cell.train_cell(cell, **changed(cell, ramp))
        told = {"learning_rate": cell.draw()["learning_rate"], "status": out.status}
        for goal, first in zip(cell.work.goals, out.first.T):
            told[f"steps@{goal:g}"] = first
            seen = [n if n != n else ramp.examples(int(n), cell.batch_size) for n in first]
            told[f"examples@{goal:g}"] = seen
        return pd.DataFrame(told).rename_axis("trial").reset_index()


def changed(cell: Cell, ramp: Ramp) -> dict:
    """Options with which a cell's batch sizes and rates change as the ramp says."""
    how = ramped(method(cell.algorithm), ramp, cell.batch_size)
    return {"method": how, "sizes": ramp.sizes(cell.batch_size)}


def planned() -> tuple[Search, ...]:
    """Every schedule from every start, the two that claims compare first."""
    found = []
    for name, network in NETWORKS.items():
        counts = range(1, network.replicates + 1)
        for n, start, how in itertools.product(counts, STARTS, SCHEDULES):
            found.append(Search(name, how, start, n, network.trials))
    return tuple(sorted(found, key=lambda search: search.schedule not in (DECAY, SEESAW)))


def _file(search: Search) -> str:
    which = f"{SCHEDULES.index(search.schedule)}-from-{search.cell.batch_size}"
    return f"{folder_name(search.workload)}/schedule-{which}"


RAMPS = Collection(
    "ramps",
    "searches",
    _file,
    planned,
    "Train with batch sizes and learning rates that change on the way, into data/ramps/.",
)
EXPERIMENTS = {"batch-ramps": RAMPS}
