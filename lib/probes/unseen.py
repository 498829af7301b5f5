"""The error at the goal on unseen images: winners of searches, trained again to the step at which
they met the goal.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lib.fields import spec
from lib.measuring.experiment import Collection
from lib.probes import tracks
from lib.records import store
from lib.records.store import DATA
from lib.studies import plans
from lib.studies.cells import NUMBER, Cell


@spec
class Winners:
    """The fastest trial of every search of a study with one network, one method and one sparsity.

    study: a name in `lib.studies.plans`.
    goal: the validation error at which steps are compared, one of the workload's goals.
    last: the largest number of a replicate that counts.
    smallest: the least batch size.
    """

    study: str
    workload: str
    sparsity: float
    goal: float
    algorithm: str = "momentum"
    last: NUMBER = 12
    smallest: int = 1

    def definition(self) -> dict:
        """What the record's name depends on besides the fields: nothing."""
        return {}

    def cells(self, data: Path = DATA) -> list[Cell]:
        """Those of its searches that are on record under `data`."""
        asked = (self.workload, self.algorithm, self.sparsity, "connection-sensitivity", "goal")
        return [
            c
            for c in plans.study(self.study).cells
            if (c.workload, c.algorithm, c.sparsity, c.pruning, c.stop) == asked
            and c.replicate <= self.last
            and c.batch_size >= self.smallest
            and store.exists(store.record(c, data))
        ]

    def measure(self, data: Path = DATA) -> pd.DataFrame:
        """A row per search whose goal was met: batch_size, replicate, split, trial, steps, and
        errors of the winner.

        validation, test: shares of wrong answers at the step at which the search met the goal.  Up
        to rounding, the first is at most the goal.
        """
        rows = []
        for cell in self.cells(data):
            won = tracks.steps_to_goal(cell, data, self.goal)[:1]
            for trial, count in won.astype(int).items():
                found = errors(cell, trial, count)
                rows.append((cell.batch_size, cell.replicate, cell.split, trial, count, *found))
        return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS = ["batch_size", "replicate", "split", "trial", "steps", "validation", "test"]


def errors(cell: Cell, trial: int, steps: int) -> list[float]:
    """Validation and test error of one of a search's trials after so many steps."""
    from lib.measuring.rerun import Rerun  # brings PyTorch, and most chapters only read
    from lib.workloads import datasets

    rerun = Rerun(cell, [trial])
    for _ in range(steps):
        rerun.update()
    test = datasets.load(cell.work.dataset, cell.split).test
    costs = map(rerun.costs, (rerun.validation, test))
    return [cost.float().mean().item() for cost in costs]


LEVELS = (0.0, 0.9)
PLANNED = tuple(
    Winners(study, name, level, goal, smallest=smallest)
    for study, name, goal, smallest in (
        ("digits-searches", "digits-mlp", 0.05, 1),
        ("digits-searches", "digits-cnn", 0.05, 1),
        ("mnist-searches", "mnist-simple-cnn-easier", 0.04, 64),
        ("fc-searches", "mnist-fc-128x3-easier", 0.05, 64),
        ("fc-searches", "fashion-mnist-fc-128x3-easier", 0.14, 64),
    )
    for level in LEVELS
)


def _place(what: Winners, folder: Path) -> Path:
    name = f"{what.algorithm}-{what.sparsity:g}-{store.digest(what)}.csv"
    return folder / store.place(what.workload) / name


UNSEEN = Collection(
    "unseen",
    "set",
    DATA / "unseen",
    _place,
    lambda: PLANNED,
    precision=lambda what: what.cells()[0].arithmetic,
)
