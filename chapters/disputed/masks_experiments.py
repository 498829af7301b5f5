"""Searches with a mask that stays, and with masks that move, at equal average density."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from lib.fields import PART, Count, spec
from lib.measuring.experiment import Collection, OfCell

GOALS = (0.05, 0.06, 0.08)  # validation errors, the hardest first
DENSITY = 0.1  # on average
# From twice the average: before, while and after it falls, 3/8 of it and 5/8 of the last add up
FIRST, LAST = 0.2, 0.04
# About the steps that SGD takes with the mask that stays, as on record elsewhere
HORIZON = {64: 120, 16: 230, 256: 90, 4: 800, 1024: 90}
STEPS, EXAMPLES, THINNING = 8, 512, 4  # between two changes of a mask
DROP = 0.3
LONGEST = 10  # times the horizon, after which a search is given up
MASKS = ("static", "steps", "examples", "thinned")
REPLICATES = (1, 2, 3)


@spec
class Search(OfCell):
    """Trials of SGD, which differ in rate, initialisation and, of masks that move, horizon.

    mask: "static", "rewired" or "thinned" (`moving`).  every: steps between two of its changes.
    drop: the share that is exchanged at first.  replicate: its draws, seeds, data order and split
    of the examples.  Raises ValueError naming the field, its value and what is allowed.
    """

    mask: Literal["static", "rewired", "thinned"]
    batch_size: Literal[*HORIZON]
    every: Count(10_000) = 1
    drop: PART = 0.0
    replicate: Count(1000) = 1
    trials: Count(1024) = 64

    workload = "digits-mlp"

    @property
    def settings(self) -> dict:
        sparsity = 1 - (FIRST if self.mask == "thinned" else DENSITY)
        return {"space": "learning_rate=0.03..3", "sparsity": sparsity}

    def definition(self) -> dict:
        return self.cell.definition() | {"densities": (DENSITY, FIRST, LAST)}

    def measure(self) -> pd.DataFrame:
        """A row per goal: goal, steps (NaN where no trial met it), and of the trial that did its
        learning_rate, its horizon and the average density of its weights until then.
        """
        import torch  # slow to import, and most chapters only read

        from lib.engine import lockstep
        from lib.measuring.rerun import Steps

        start, about = Steps(self.cell, GOALS), HORIZON[self.batch_size]
        # Within a factor of two
        horizon = about * 2 ** np.random.default_rng(self.replicate).uniform(-1, 1, self.trials)
        start.trials.drawn["horizon"] = torch.from_numpy(horizon).float()[:, None]
        outcome = lockstep.train(
            start.executor,
            start.trials,
            start.train,
            start.held,
            method=self.method(),
            batch_size=self.batch_size,
            goals=GOALS,
            max_steps=LONGEST * about,
            order_seed=self.replicate,
            hits=1,
        )
        rate = start.rate[:, 0].numpy()
        rows = [self._told(first, rate, horizon) for first in outcome.first.T]
        names = ["steps", "learning_rate", "horizon", "density"]
        return pd.DataFrame(rows, columns=names).assign(goal=GOALS)

    def method(self):
        """SGD with the search's mask."""
        from chapters.disputed import moving
        from lib.methods import METHODS

        sgd = METHODS["sgd"]
        if self.mask == "rewired":
            return moving.moving(sgd, moving.rewired(self.every, self.drop))
        if self.mask == "thinned":
            return moving.moving(sgd, moving.thinned(self.every, FIRST, LAST), LAST)
        return sgd

    def _told(self, first: np.ndarray, rate: np.ndarray, horizon: np.ndarray) -> tuple:
        """Steps, rate, horizon and density of the trial that met a goal first."""
        from chapters.disputed import moving

        if np.isnan(first).all():
            return (np.nan,) * 4
        t = int(np.nanargmin(first))
        density = DENSITY
        if self.mask == "thinned":
            density = moving.average(first[t], horizon[t], self.every, FIRST, LAST)
        return first[t], rate[t], horizon[t], density


def search(mask: str, batch_size: int, replicate: int) -> Search:
    """The search that the page calls by one of MASKS."""
    if mask in ("steps", "examples"):
        every = STEPS if mask == "steps" else max(1, EXAMPLES // batch_size)
        return Search("rewired", batch_size, every, DROP, replicate)
    return Search(mask, batch_size, THINNING if mask == "thinned" else 1, 0.0, replicate)


def planned() -> tuple[Search, ...]:
    """One of each before the next, the middle batch sizes first."""
    every = (search(mask, size, n) for n in REPLICATES for size in HORIZON for mask in MASKS)
    return tuple(dict.fromkeys(every))  # at 64 examples both ways of rewiring are one


ABOUT = "Train sparse networks whose masks move, into data/masks/."
MASKED = Collection("masks", "searches", "{0.mask}-batch-{0.batch_size}".format, planned, ABOUT)
EXPERIMENTS = {"moving-masks": MASKED}
