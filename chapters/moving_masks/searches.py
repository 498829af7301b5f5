"""Searches with a mask that stays, and with masks that move, at equal average density."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from lib.fields import PART, Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.records.store import DATA
from lib.studies.cells import Cell

WORK = "digits-mlp"
GOALS = (0.05, 0.06, 0.08)  # validation errors, the hardest first
DENSITY = 0.1  # on average
# From twice the average: before, while and after it falls, 3/8 of it and 5/8 of the last add up
FIRST, LAST = 0.2, 0.04
# About the steps that SGD takes with the mask that stays, as on record elsewhere
HORIZON = {4: 800, 16: 230, 64: 120, 256: 90, 1024: 90}
STEPS, EXAMPLES, THINNING = 8, 512, 4  # between two changes of a mask
NAMES = ["steps", "learning_rate", "horizon", "density"]
LONGEST = 10  # times the horizon, after which a search is given up


@spec
class Search:
    """Trials of SGD, which differ in rate, initialisation and, of masks that move, horizon.

    mask: "static", "rewired" or "thinned" (`moving`).  every: steps between two of its changes.
    drop: the share that is exchanged at first.  replicate: its draws, seeds, data order and split
    of the examples.  Raises ValueError naming the field, its value and what is allowed.
    """

    mask: Literal["static", "rewired", "thinned"]
    batch_size: Whole(1, 1350)
    every: Count(10_000) = 1
    drop: PART = 0.0
    replicate: Count(1000) = 1
    trials: Count(1024) = 64

    @property
    def cell(self) -> Cell:
        """A search of the same draws, seeds, order and split with a mask that stays."""
        draws = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        sparsity = 1 - (FIRST if self.mask == "thinned" else DENSITY)
        space = "learning_rate=0.03..3"
        return Cell(WORK, self.batch_size, "sgd", sparsity=sparsity, space=space, **draws)

    def definition(self) -> dict:
        return self.cell.definition() | {"densities": (DENSITY, FIRST, LAST)}

    @property
    def horizon(self) -> int:
        """Steps about which horizons are drawn, within a factor of two."""
        sizes = np.log(list(HORIZON))
        return round(np.exp(np.interp(np.log(self.batch_size), sizes, np.log([*HORIZON.values()]))))

    def measure(self) -> pd.DataFrame:
        """A row per goal: goal, steps (NaN where no trial met it), and of the trial that did its
        learning_rate, its horizon and the average density of its weights until then.
        """
        import torch  # slow to import, and most chapters only read

        from lib.engine import batched, lockstep
        from lib.measuring import one_cell
        from lib.workloads import datasets, models

        trials, cell = one_cell.start(self.cell), self.cell
        random = np.random.default_rng(self.replicate)
        horizon = self.horizon * 2 ** random.uniform(-1, 1, self.trials)
        trials.drawn["horizon"] = torch.from_numpy(horizon).float()[:, None]
        data = datasets.load(cell.work.dataset, cell.split)
        module = models.build(cell.work.model)
        outcome = lockstep.train(
            batched.BatchedExecutor(module),
            trials,
            data.train,
            data.validation,
            method=self.method(),
            batch_size=self.batch_size,
            goals=GOALS,
            max_steps=LONGEST * self.horizon,
            order_seed=self.replicate,
            hits=1,
        )
        rate = trials.drawn["learning_rate"][:, 0].numpy()
        rows = [self._told(first, rate, horizon) for first in outcome.first.T]
        return pd.DataFrame(rows, columns=NAMES).assign(goal=GOALS)

    def method(self):
        """SGD with the search's mask."""
        from chapters.moving_masks import moving
        from lib.methods import method

        if self.mask == "static":
            return method("sgd")
        rules = {
            "rewired": lambda: moving.rewired(self.every, self.drop),
            "thinned": lambda: moving.thinned(self.every, FIRST, LAST),
        }
        return moving.moving(method("sgd"), rules[self.mask]())

    def _told(self, first: np.ndarray, rate: np.ndarray, horizon: np.ndarray) -> tuple:
        """Of the trial that met a goal first, in the order of NAMES."""
        if np.isnan(first).all():
            return (np.nan,) * len(NAMES)
        t = int(np.nanargmin(first))
        thinned = self.mask == "thinned"
        density = average(first[t], horizon[t], self.every) if thinned else DENSITY
        return first[t], rate[t], horizon[t], density


def average(steps: float, horizon: float, every: int) -> float:
    """The mean share of weights that are there over so many steps of a mask that is thinned."""
    from chapters.moving_masks.moving import density

    changes = (k // every * every for k in range(1, int(steps) + 1))
    return float(np.mean([density(k / horizon, FIRST, LAST) for k in changes]))


MASKS = ("static", "steps", "examples", "thinned")
SIZES = tuple(HORIZON)
REPLICATES = (1, 2, 3)
DROP = 0.3


def search(mask: str, batch_size: int, replicate: int) -> Search:
    """The search that the page calls by one of MASKS."""
    if mask in ("steps", "examples"):
        every = STEPS if mask == "steps" else max(1, EXAMPLES // batch_size)
        return Search("rewired", batch_size, every, DROP, replicate)
    return Search(mask, batch_size, THINNING if mask == "thinned" else 1, 0.0, replicate)


def planned() -> tuple[Search, ...]:
    """One of each before the next, the middle batch sizes first."""
    sizes = sorted(SIZES, key=lambda size: abs(np.log(size / 64)))
    every = (search(mask, size, n) for n in REPLICATES for size in sizes for mask in MASKS)
    return tuple(dict.fromkeys(every))  # at 64 examples both ways of rewiring are one


def _place(own: Search, folder: Path) -> Path:
    return folder / f"{own.mask}-batch-{own.batch_size}-{store.digest(own)}.csv"


MASKED = Collection(
    "masks", "search", DATA / "masks", _place, planned, precision=lambda _: "float32"
)
