"""Searches on textures on a ring, and the fields of the trial that wins each.

Predicted on 27 November 2026, after a pilot of single trainings and before any record here:

1. Fields on textures with edges have a participation 1.3 to 1.8 times that of fields on Gaussian
   textures.  (Single searches had 3.3 to 4.3 and 2.2 to 2.6.)
2. Beside weights as they are drawn, at 2.4, the former rise and the latter do not.
3. The batch size changes participation by less than a fifth from end to end.
4. A network without biases is odd, and both classes look alike when all signs are turned, so the
   expected gradient is zero at the start.  Connection sensitivity sees the noise of the examples
   alone.  As that is as smooth as the inputs, a kept weight's neighbour is kept more often than by
   chance, with edges and without.  Whether pruned networks meet the goal was left open.

Judged is the mean over BATCH_SIZES of REPLICATES searches; their number was fixed beforehand, and
so were the thresholds in `claims`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.fields import PART, Count, Number, Whole, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.records.store import DATA

if TYPE_CHECKING:
    from lib.engine.training_state import Outcome, Trials

EDGED = 3.0  # the gain of inputs with edges
GOALS = {0.0: (0.05, 0.15), EDGED: (0.15, 0.2)}  # errors, by gain, the harder first
SITES, HIDDEN = 64, 16
SITE = [f"site_{place}" for place in range(SITES)]
MOST_GAIN, MOST_EXAMPLES = 100, 65_536
METHOD, SPACE = "momentum", "lee2021"


@spec
class Search:
    """So many trials of momentum, in lock step until one meets the harder goal.

    gain: of the function that squashes the inputs; 0 leaves them Gaussian.  sparsity: share of the
    parameters that connection sensitivity removes at the start.  replicate: its draws, seeds,
    examples and their order.  Raises ValueError naming the field, its value and what is allowed.
    """

    gain: Number(f"[0, {MOST_GAIN}]")
    batch_size: Count(MOST_EXAMPLES)
    sparsity: PART = 0.0
    replicate: Whole(0, 9999) = 1
    trials: Count(4096) = 16
    max_steps: Count(10**6) = 20_000

    @property
    def goals(self) -> tuple[float, ...]:
        """Validation errors, the harder first."""
        return GOALS[EDGED if self.gain else 0.0]

    def definition(self) -> dict:
        return {"inputs": "ring", "goals": self.goals}

    def measure(self) -> pd.DataFrame:
        """A row per goal and hidden unit of the first trial that met it.

        goal, steps (NaN where none met it: the first trial then stands for all, before its first
        step), trial, learning_rate, momentum, unit, and its weight at every site of the ring.
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
            goals=self.goals,
            max_steps=self.max_steps,
            order_seed=self.replicate,
            hits=1,
        )
        return pd.concat(self._winners(outcome, start, parts), ignore_index=True)

    def _parts(self) -> tuple:
        """What computes gradients, the training and the validation set."""
        from chapters.receptive_fields import ring
        from lib.engine.batched import BatchedExecutor

        sizes = (ring.TRAIN, ring.VALIDATION)
        sets = (ring.samples(n, self.gain, 2 * self.replicate + k) for k, n in enumerate(sizes))
        return BatchedExecutor(ring.network()), *sets

    def _start(self) -> Trials:
        """The trials before their first step."""
        import torch

        from chapters.receptive_fields import ring
        from lib.engine import flattening, training_state
        from lib.methods import spaces
        from lib.workloads import models

        seeds = [100_000 * self.replicate + trial for trial in range(self.trials)]
        fresh = [models.initialise(ring.network(), seed) for seed in seeds]
        w = torch.stack([flattening.flatten(module).clone() for module in fresh])
        ring.fields(w).mul_(ring.START)
        mask = self._masks(w, seeds) if self.sparsity else None
        drawn = spaces.draw(SPACE, METHOD, self.trials, replicate=self.replicate)
        columns = {name: torch.from_numpy(v).float()[:, None] for name, v in drawn.items()}
        return training_state.Trials(w if mask is None else w * mask, mask, columns)

    def _masks(self, w, seeds: list[int]):
        """What connection sensitivity keeps of each trial's weights w [T, P]."""
        import torch

        from lib.engine import pruning

        name = "connection-sensitivity"
        executor, training, _ = self._parts()
        found = []
        for row, seed in zip(w, seeds, strict=True):
            scores = pruning.scores(name, row, executor, training.x, training.y, seed)
            found.append(pruning.chosen(name, scores, self.sparsity))
        return torch.stack(found)

    def _winners(self, outcome: Outcome, start: Trials, parts: tuple) -> Iterator[pd.DataFrame]:
        """The rows of each goal."""
        for goal, first in zip(self.goals, outcome.first.T, strict=True):
            met = np.isfinite(first).any()
            trial = int(np.nanargmin(first)) if met else 0
            fields = self._trained(trial, int(first[trial]) if met else 0, start, parts)
            drawn = {name: float(values[trial, 0]) for name, values in start.drawn.items()}
            told = {"goal": goal, "steps": first[trial], "trial": trial, **drawn}
            rows = pd.DataFrame(fields.round(5), columns=SITE)
            rows.insert(0, "unit", range(HIDDEN))
            for place, (name, value) in enumerate(told.items()):
                rows.insert(place, name, value)
            yield rows

    def _trained(self, trial: int, steps: int, start: Trials, parts: tuple) -> np.ndarray:
        """The fields [HIDDEN, SITES] of one trial, trained again for so many steps."""
        import torch

        from chapters.receptive_fields import ring
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
        return ring.fields(w)[0].numpy()


BATCH_SIZES = (64, 512, 4096)
REPLICATES = (2, 3, 4, 5, 6)  # the pilot's draws were those of the first
PRUNED = {"sparsity": 0.5, "batch_size": 512, "max_steps": 2000}


def planned() -> tuple[Search, ...]:
    """Dense at every batch size, one search of each before the next; then pruned at one."""
    return (
        *(Search(g, b, replicate=n) for n in REPLICATES for b in BATCH_SIZES for g in GOALS),
        *(Search(g, replicate=n, **PRUNED) for n in REPLICATES[:3] for g in GOALS),
    )


def _place(search: Search, folder: Path) -> Path:
    name = f"gain-{search.gain:g}-sparsity-{search.sparsity:g}-batch-{search.batch_size}"
    return folder / f"{name}-{store.digest(search)}.csv"


FIELDS = Collection(
    "receptive fields", "search", DATA / "fields", _place, planned, precision=lambda _: "float32"
)
