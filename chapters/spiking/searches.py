"""Searches of spiking networks, and of the ReLU network of the same shape, on the digits.

Predicted on 27 November 2026, after a pilot of one search a point and before any record here:

1. The curve has the same form.  At 8 time steps the goal takes as many steps as with rectifiers
   within a factor of 2 in the mean over batch sizes; more at small batches, fewer at large ones.
   (The pilot: 2.8 times at 16, 0.65 times at 1,024.)
2. A unit fires in fewer than half as many of its time steps as rectifiers are on for examples.
   Added up over 8 time steps it fires more often than a rectifier is on.
3. Silent units are more common than rectifiers that are never on, and their share changes with the
   batch size by less than 10 points.
4. With 25 time steps, steps to the goal change by less than a factor of 1.5.
5. Pruning to a tenth silences more spiking units than rectifiers, and multiplies steps by more.

Judged is the mean over BATCH_SIZES of REPLICATES searches; their number was fixed beforehand, and
so was the threshold in `claims`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.fields import PART, Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.records.store import DATA

if TYPE_CHECKING:
    from torch import Tensor

    from lib.engine.training_state import Outcome, Trials

EXAMPLES = 1350  # of the training set
METHOD, SPACE, PRUNING = "momentum", "lee2021", "connection-sensitivity"
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

    def definition(self) -> dict:
        return {"dataset": "digits", "goals": GOALS}

    def measure(self) -> pd.DataFrame:
        """A row per goal: of the first trial that met it, and of what its hidden units do then.

        goal, steps (NaN where none met it: the first trial then stands for all, before its first
        step), trial, learning_rate, momentum; rate, silent and first on the validation images, as
        of `neurons.activity`.
        """
        from lib.engine import lockstep
        from lib.methods import method

        start, parts = self._start(), self._parts()
        outcome = lockstep.train(
            parts[0],
            start,
            *parts[1:],
            method=method(METHOD),
            batch_size=self.batch_size,
            goals=GOALS,
            max_steps=self.max_steps,
            order_seed=self.replicate,
            hits=1,
            # Where no unit of the last layer fires, gradients still pass the spikes' surrogates
            drop_dead=not self.time,
        )
        return pd.DataFrame(self._winners(outcome, start, parts))

    def _parts(self) -> tuple:
        """What computes gradients, the training and the validation set."""
        from chapters.spiking import neurons
        from lib.engine.batched import BatchedExecutor
        from lib.workloads import datasets

        digits = datasets.load("digits", self.replicate)
        return BatchedExecutor(neurons.network(self.time)), digits.train, digits.validation

    def _start(self) -> Trials:
        """The trials before their first step."""
        import torch

        from chapters.spiking import neurons
        from lib.engine import flattening, training_state
        from lib.methods import spaces
        from lib.workloads import models

        seeds = [100_000 * self.replicate + trial for trial in range(self.trials)]
        fresh = [models.initialise(neurons.network(self.time), seed) for seed in seeds]
        w = torch.stack([flattening.flatten(module).clone() for module in fresh])
        mask = self._masks(w, seeds) if self.sparsity else None
        drawn = spaces.draw(SPACE, METHOD, self.trials, replicate=self.replicate)
        columns = {name: torch.from_numpy(v).float()[:, None] for name, v in drawn.items()}
        return training_state.Trials(w if mask is None else w * mask, mask, columns)

    def _masks(self, w: Tensor, seeds: list[int]) -> Tensor:
        """What connection sensitivity keeps of each trial's weights w [T, P]."""
        import torch

        from lib.engine import pruning

        executor, training, _ = self._parts()
        found = []
        for row, seed in zip(w, seeds, strict=True):
            scores = pruning.scores(PRUNING, row, executor, training.x, training.y, seed)
            found.append(pruning.chosen(PRUNING, scores, self.sparsity))
        return torch.stack(found)

    def _winners(self, outcome: Outcome, start: Trials, parts: tuple) -> Iterator[dict]:
        """The row of each goal."""
        from chapters.spiking import neurons

        for goal, first in zip(GOALS, outcome.first.T, strict=True):
            met = np.isfinite(first).any()
            trial = int(np.nanargmin(first)) if met else 0
            drawn = {name: float(values[trial, 0]) for name, values in start.drawn.items()}
            module = self._trained(trial, int(first[trial]) if met else 0, start, parts)
            done = neurons.activity(module, parts[2].x)
            seen = dict(zip(("rate", "silent", "first"), done, strict=True))
            yield {"goal": goal, "steps": first[trial], "trial": trial, **drawn, **seen}

    def _trained(self, trial: int, steps: int, start: Trials, parts: tuple):
        """The network of one trial, trained again for so many steps."""
        import torch

        from chapters.spiking import neurons
        from lib.engine import flattening, lockstep
        from lib.methods import method

        executor, training, _ = parts
        own = start.keep(torch.tensor([trial]))
        w, layers, momentum = own.w.clone(), flattening.layers(executor.module), method(METHOD)
        buffers = momentum.begin(own.w, layers)
        order = lockstep.batches(len(training.y), self.batch_size, self.replicate)
        for k, pick in zip(range(1, steps + 1), order, strict=False):
            batch = training.x[pick], training.y[pick]
            lockstep.update(momentum, executor, layers, own, w, buffers, k, batch)
        module = neurons.network(self.time)
        for p, values in zip(module.parameters(), flattening.unflatten(w[0], module), strict=True):
            p.data.copy_(values)
        return module


TIME, LONGER = 8, 25
BATCH_SIZES, FEW = (4, 16, 64, 256, 1024), (16, 256)
PRUNED = {"sparsity": 0.9, "batch_size": 16, "max_steps": 1000}
REPLICATES = (2, 3, 4, 5, 6)  # the pilot's draws were those of the first


def planned() -> tuple[Search, ...]:
    """Rectifiers and spikes at every batch size; then pruned ones at one, more time at two."""
    return (
        *(Search(t, b, replicate=n) for n in REPLICATES for b in BATCH_SIZES for t in (0, TIME)),
        *(Search(t, replicate=n, **PRUNED) for n in REPLICATES[:3] for t in (0, TIME)),
        *(Search(LONGER, b, replicate=n) for n in REPLICATES[:3] for b in FEW),
    )


def _place(search: Search, folder: Path) -> Path:
    name = f"time-{search.time}-sparsity-{search.sparsity:g}-batch-{search.batch_size}"
    return folder / f"{name}-{store.digest(search)}.csv"


SPIKES = Collection(
    "spikes", "search", DATA / "spikes", _place, planned, precision=lambda _: "float32"
)
