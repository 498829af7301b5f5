"""Searches whose batch size and learning rate change after each quarter of their examples.

The page tells what was predicted before the records.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Literal

import pandas as pd

from chapters.batch_ramps.ramps import Ramp, ramped
from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.methods import method
from lib.own import folder_name
from lib.records import store
from lib.records.store import DATA
from lib.studies.cells import Cell
from lib.workloads.catalogue import workload

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
ADAM = "learning_rate=1e-4..0.1,beta1=0.9,beta2=0.999"
# Of each network: its method, the space that the rate is drawn from, and of either start the batch
# size and the examples, which grow as c1/B + c2 has it: by 1 + B/B_crit
NETWORKS = {
    "mnist-fc-128x3-easier": ("sgd", "learning_rate=3e-3..3", ((44, 54_000), (176, 86_400))),
    "digits-mlp": ("adam", ADAM, ((18, 2_700), (72, 4_320))),
}
QUARTER, WHOLE = STARTS = "a quarter of the critical batch size", "the critical batch size"
CHECKS = dict(zip(STARTS, ("every-4", "every-1")))  # as many examples apart from either start
REPLICATES = {"mnist-fc-128x3-easier": 4, "digits-mlp": 20}


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
        return NETWORKS[self.workload][2][STARTS.index(self.start)]

    @property
    def ramp(self) -> Ramp:
        """The schedule: its cuts in examples, and the factors at each."""
        cuts, batch, rate = FACTORS[self.schedule]
        _, horizon = self.lengths
        return Ramp(tuple(round(cut * horizon) for cut in cuts), batch, rate)

    @property
    def cell(self) -> Cell:
        """The same search with neither batch size nor rate changed."""
        algorithm, space, _ = NETWORKS[self.workload]
        first, horizon = self.lengths
        draws = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        most = self.ramp.steps(horizon, first)
        how = {"hits": 1, "max_steps": most, "checks": CHECKS[self.start], "space": space}
        return Cell(self.workload, first, algorithm, **draws, **how)

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

        cell, ramp = self.cell, self.ramp
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


def goals(name: str) -> tuple[float, ...]:
    """Validation errors of a network, the hardest first."""
    return workload(name).goals


def planned() -> tuple[Search, ...]:
    """Every schedule from every start, the searches of a point last."""
    found = []
    for name, count in REPLICATES.items():
        for n, start, how in itertools.product(range(1, count + 1), STARTS, SCHEDULES):
            found.append(Search(name, how, start, n))
    return tuple(found)


def _place(search: Search, folder: Path) -> Path:
    which = f"{SCHEDULES.index(search.schedule)}-from-{search.cell.batch_size}"
    name = f"schedule-{which}-{store.digest(search)}.csv"
    return folder / folder_name(search.workload) / name


RAMPS = Collection(
    "batch ramps", "search", DATA / "ramps", _place, planned, precision=lambda s: s.cell.arithmetic
)
