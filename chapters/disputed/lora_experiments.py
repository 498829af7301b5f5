"""Searches that train a small language model further on other text, by adapters or in full."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pandas as pd

from chapters.disputed.lora_base import DIGEST, MODEL, TEXT, WINDOWS
from lib.fields import Count, spec
from lib.measuring.experiment import Collection
from lib.methods import spaces

FULL = 0  # in place of a rank: the matrices themselves are trained
RANKS = (1, 4, 16, 64)
GOALS = (2.5, 2.6, 2.8)  # nats, the hardest first
SPACE = "learning_rate=5e-4..5e-2,beta1=0.9,beta2=0.999"
MOST_STEPS = {16: 600, 1: 4000, 64: 300, 4: 1500, 256: 150}
REPLICATES = (1, 2, 3)


@spec
class Search:
    """Trials of Adam that differ in learning rate and, with adapters, in initialisation.

    rank: of the adapters; FULL trains the adapted matrices themselves.  replicate: sets the draws,
    seeds, order and split.
    """

    rank: Literal[FULL, *RANKS]
    batch_size: Literal[*MOST_STEPS]
    replicate: Count(1000) = 1
    trials: Count(1024) = 8

    def definition(self) -> dict:
        base = {
            "model": MODEL,
            "text": TEXT,
            "base": DIGEST,
            "windows": WINDOWS,
            "space": SPACE,
        }
        return {**base, "goals": GOALS, "max_steps": MOST_STEPS[self.batch_size]}

    def start(self):
        """The executor, and the trials before their first step."""
        import torch  # slow to import; most chapters only read records

        from chapters.disputed import adapters, texts
        from lib.engine.batched import BatchedExecutor
        from lib.engine.training_state import Trials
        from lib.workloads import models
        from lib.workloads.tasks import TASKS

        drawn = spaces.draw(SPACE, "adam", self.trials, replicate=self.replicate)
        columns = {name: torch.from_numpy(v).float()[:, None] for name, v in drawn.items()}
        module, base, task = models.build(MODEL), texts.base(), TASKS["cross-entropy"]
        if self.rank == FULL:
            w = base.repeat(self.trials, 1)
            mask = adapters.trained(module).repeat(self.trials, 1)
            return BatchedExecutor(module, task=task), Trials(w, mask, columns)
        executor = adapters.Adapted(module, base, self.rank, task=task)
        seeds = [100_000 * self.replicate + trial for trial in range(self.trials)]
        return executor, Trials(executor.start(seeds), None, columns)

    def measure(self) -> pd.DataFrame:
        """A row per goal: goal, and the steps and learning_rate of the first trial to meet it (NaN
        if none did).
        """
        from chapters.disputed import texts
        from lib.engine import lockstep
        from lib.methods import METHODS

        executor, trials = self.start()
        outcome = lockstep.train(
            executor,
            trials,
            *texts.other(self.replicate),
            method=METHODS["adam"],
            batch_size=self.batch_size,
            goals=GOALS,
            hits=1,
            max_steps=MOST_STEPS[self.batch_size],
            order_seed=self.replicate,
        )
        rate, rows = trials.drawn["learning_rate"][:, 0].numpy(), []
        for goal, first in zip(GOALS, outcome.first.T):
            met = np.isfinite(first).any()
            best = int(np.nanargmin(first)) if met else 0
            rows.append((goal, first[best], rate[best] if met else np.nan))
        return pd.DataFrame(rows, columns=["goal", "steps", "learning_rate"])


def planned() -> list[Search]:
    """One replicate after another; the largest batches, which take longest, come last."""
    *sizes, largest = MOST_STEPS
    points = itertools.chain(
        itertools.product(REPLICATES, sizes), itertools.product(REPLICATES, [largest])
    )
    return [Search(rank, size, n) for n, size in points for rank in (FULL, *RANKS)]


ABOUT = "Continue a small language model on other text by adapters, into data/lora/."
NAME = "rank-{0.rank}-batch-{0.batch_size}"
CONTINUED = Collection("lora", "searches", NAME.format, planned, ABOUT)
EXPERIMENTS = {"lora": CONTINUED}
