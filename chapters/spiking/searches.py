"""Searches of spiking networks, and of the ReLU network of the same shape, on the digits.

The page tells what was predicted before the records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd

from lib.fields import PART, Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.records.store import DATA

EXAMPLES = 1350  # of the training set
SHARED = ("batch_size", "sparsity", "replicate", "trials", "max_steps")
GOALS = (0.04, 0.08)  # validation errors, the harder first
MOST_TIME = 1000


@spec
class Search:
    """So many trials of momentum, in lock step until one meets the harder goal.

    time: steps of spiking neurons for an example; 0: rectifiers.  sparsity: share of the parameters
    that connection sensitivity removes at the start.  replicate: its draws, seeds, order and split
    of the digits.  Raises ValueError naming the field, its value and what is allowed.
    """

    time: Whole(0, MOST_TIME)
    batch_size: Count(EXAMPLES)
    sparsity: PART = 0.0
    replicate: Whole(0, 9999) = 1
    trials: Count(4096) = 32
    max_steps: Count(10**6) = 2000
    model: Literal["mlp", "cnn"] = "mlp"

    def definition(self) -> dict:
        return {"dataset": "digits", "goals": GOALS}

    def measure(self) -> pd.DataFrame:
        """A row per goal: what `winners` tells of the trial that won, and what its hidden units do on
        the validation images (rate, silent and first, as of `neurons.activity`).
        """
        from chapters.spiking import neurons
        from lib.measuring import winners
        from lib.workloads import datasets

        digits = datasets.load("digits", self.replicate)
        asked = winners.Asked(
            network=lambda: neurons.network(self.time, self.model),
            training=digits.train,
            validation=digits.validation,
            goals=GOALS,
            # Where no unit of the last layer fires, gradients still pass the spikes' surrogates
            drop_dead=not self.time,
            **{name: getattr(self, name) for name in SHARED},
        )
        found = []
        for told, module in winners.winners(asked):
            rate, silent, first = neurons.activity(module, digits.validation.x)
            found.append({**told, "rate": rate, "silent": silent, "first": first})
        return pd.DataFrame(found)


TIME, LONGER = 8, 25
BATCH_SIZES, FEW, MORE = (4, 16, 64, 256, 1024), (16, 256), (64,)
CNN = {"model": "cnn", "trials": 16}
CNN_SIZES = (4, 64, 256)
JUDGED = {"mlp": GOALS[0], "cnn": GOALS[1]}
PRUNED = {"sparsity": 0.9, "batch_size": 16, "max_steps": 1000}
REPLICATES = (2, 3, 4, 5, 6)  # the pilot's draws were those of the first


def planned() -> tuple[Search, ...]:
    """Rectifiers and spikes at every batch size; then pruned ones at one, more time at three, and
    convolutional ones.
    """
    three = REPLICATES[:3]
    return (
        *(Search(t, b, replicate=n) for n in REPLICATES for b in BATCH_SIZES for t in (0, TIME)),
        *(Search(t, replicate=n, **PRUNED) for n in three for t in (0, TIME)),
        *(Search(LONGER, b, replicate=n) for n in three for b in (*FEW, *MORE)),
        *(Search(t, b, replicate=n, **CNN) for b in CNN_SIZES for n in three for t in (0, TIME)),
    )


def _place(search: Search, folder: Path) -> Path:
    name = f"time-{search.time}-sparsity-{search.sparsity:g}-batch-{search.batch_size}"
    name = name if search.model == "mlp" else f"{search.model}-{name}"
    return folder / f"{name}-{store.digest(search)}.csv"


SPIKES = Collection(
    "spikes", "search", DATA / "spikes", _place, planned, precision=lambda _: "float32"
)
