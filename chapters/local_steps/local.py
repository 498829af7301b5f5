"""Local steps with an outer step by Nesterov (DiLoCo), and its sparse form, on digits.

The page tells what was predicted before the records.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

import pandas as pd

from lib.fields import SHARE, Count, spec
from lib.measuring.experiment import Collection
from lib.methods.intervals import Interval
from lib.own import folder_name
from lib.records import store
from lib.records.store import DATA
from lib.studies.cells import Cell

INNER, DILOCO, SPARSE = WAYS = ("inner method", "DiLoCo", "sparse form")
RATES = {"learning_rate": Interval(1e-4, 0.1), "outer_rate": Interval(0.2, 1.0)}
ADAM = "learning_rate=1e-4..0.1,beta1=0.9,beta2=0.999"
REPLICAS, SIZES = (1, 2, 4, 8), (16, 64, 256)
OFTEN, SELDOM, RARELY = STEPS = (5, 30, 100)  # local ones of a round, the last at batch size 64
MIDDLE, LARGEST = 64, 1024  # the latter of one replica alone, for critical batch sizes
DENSITIES = (0.01, 0.03, 0.1, 1.0)
REPLICATES = 4
MOST_STEPS = {16: 900, 64: 600, 256: 300, 1024: 200}  # local ones of a replica


@spec
class Search:
    """Trials that differ in inner and outer rate and initialisation.

    replicas, local_steps: of a round.  batch_size: examples of a step of all replicas together.
    density: share of the entries that a replica sends, in the sparse form.  replicate: its draws,
    seeds, shards and split.  Raises ValueError naming the field, its value and what is allowed.
    """

    way: Literal[*WAYS]
    replicas: Count(64)
    local_steps: Count(1000)
    batch_size: Count(LARGEST)
    density: SHARE = 1.0
    replicate: Count(1000) = 1
    trials: Count(1024) = 32
    workload: Literal["digits-mlp-16x2", "digits-mlp"] = "digits-mlp-16x2"

    @property
    def cell(self) -> Cell:
        """A search of the inner method with the same seeds and split."""
        draws = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        return Cell(self.workload, self.batch_size, "adam", space=ADAM, **draws)

    def definition(self) -> dict:
        limit = MOST_STEPS[self.batch_size]
        return {**self.cell.definition(), "space": ADAM, "max_steps": limit}

    def drawn(self) -> dict:
        """The rates of all trials, by name, [trials]; an outer rate of 1 for the inner method."""
        from scipy.stats import qmc  # slow to import, and most chapters only read

        sequence = qmc.Sobol(len(RATES), scramble=True, seed=self.replicate)
        points = sequence.random_base2((self.trials - 1).bit_length())[: self.trials]
        found = {name: axis.at(points[:, i]) for i, (name, axis) in enumerate(RATES.items())}
        return found | ({"outer_rate": points[:, 1] * 0 + 1} if self.way == INNER else {})

    def trained(self) -> tuple:
        """The replicas before their first round, and the judge of their errors."""
        import torch

        from lib.engine import batched, flattening
        from lib.engine.replicas import Replicas, shards, streams
        from lib.engine.validation import Validation
        from lib.measuring import one_cell
        from lib.methods import METHODS
        from lib.workloads import datasets, models

        work, trials = self.cell.work, one_cell.start(self.cell)
        executor = batched.BatchedExecutor(models.build(work.model))
        data = work.train(self.replicate)
        rates = {n: torch.from_numpy(v).float()[:, None] for n, v in self.drawn().items()}
        outer = rates.pop("outer_rate")
        places = shards(data.y, self.replicas, False, self.replicate)
        own = streams(data, places, self.batch_size // self.replicas, self.replicate)
        how = {"momentum": 0.0} if self.way == INNER else {}
        how |= {"density": self.density} if self.way == SPARSE else {}
        layers, drawn = flattening.layers(executor.module), trials.drawn | rates
        given = METHODS["adam"], executor.gradients, layers, trials.w, drawn, own, outer
        held = datasets.load(work.dataset, self.replicate).validation
        return Replicas(*given, **how), Validation(executor, held, work.goals)

    def measure(self) -> pd.DataFrame:
        """A row per trial: learning_rate, outer_rate, rounds@GOAL (the first that meets it), and
        bytes, which a replica sends in a round.
        """
        import torch

        from lib.messages.settings import INDEX_BYTES, VALUE_BYTES, target

        replicas, judge = self.trained()
        goals = self.cell.work.goals
        first = torch.full((self.trials, len(goals)), torch.nan)
        for count in range(1, MOST_STEPS[self.batch_size] // self.local_steps + 1):
            w = replicas.round(self.local_steps)
            wrong = judge.costs(w, judge.limits.max().expand(len(w)))[0]
            first[(wrong[:, None] <= judge.limits) & first.isnan()] = count
            if first[:, 0].isfinite().any():  # the hardest
                break
        size = w.shape[1]
        pair = VALUE_BYTES + INDEX_BYTES
        sent = target(self.density, size) * pair if self.density < 1 else size * VALUE_BYTES
        rounds = {f"rounds@{goal:g}": first[:, n] for n, goal in enumerate(goals)}
        told = {**self.drawn(), **rounds, "bytes": sent}
        return pd.DataFrame(told).rename_axis("trial").reset_index()


def arms() -> list[tuple]:
    """Ways, replicas, local steps, batch sizes and densities of a point each."""
    rounds = [*itertools.product(STEPS[:2], SIZES), (RARELY, MIDDLE)]
    alone = [(1, *one, 1.0) for one in (*rounds, (OFTEN, LARGEST))]
    several = [(m, *one, 1.0) for m, one in itertools.product(REPLICAS[1:], rounds)]
    sparse = [(SPARSE, REPLICAS[-1], SELDOM, MIDDLE, k) for k in DENSITIES]
    dense = [(way, *one) for way in (INNER, DILOCO) for one in alone]
    return [*dense, *sparse, *((DILOCO, *one) for one in several)]


def planned() -> tuple[Search, ...]:
    """Every point, its further searches last."""
    every = itertools.product(range(1, REPLICATES + 1), arms())
    return tuple(Search(*arm, replicate=n) for n, arm in every)


def _place(search: Search, folder: Path) -> Path:
    way, how = WAYS.index(search.way), f"{search.replicas}x{search.local_steps}"
    name = f"way-{way}-{how}-batch-{search.batch_size}-{store.digest(search)}.csv"
    return folder / folder_name(search.workload) / name


LOCAL = Collection(
    "local steps", "search", DATA / "local-steps", _place, planned, precision=lambda _: "float32"
)
