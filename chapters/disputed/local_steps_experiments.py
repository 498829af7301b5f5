"""Local steps with an outer Nesterov step (DiLoCo), and its sparse form, on digits."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import pandas as pd

from lib.fields import SHARE, Count, spec
from lib.measuring.experiment import Collection
from lib.methods.intervals import Interval
from lib.studies.search import Search as Spec

if TYPE_CHECKING:
    from chapters.disputed.replicas import Replicas
    from lib.measuring.rerun import Steps

INNER, DILOCO, SPARSE = WAYS = ("inner method", "DiLoCo", "sparse form")
RATES = {"learning_rate": Interval(1e-4, 0.1), "outer_rate": Interval(0.2, 1.0)}
ADAM = "learning_rate=1e-4..0.1,beta1=0.9,beta2=0.999"
REPLICAS, SIZES = (1, 2, 4, 8), (16, 64, 256)
OFTEN, SELDOM, RARELY = STEPS = (5, 30, 100)  # local steps per round; RARELY only at batch size 64
MIDDLE, LARGEST = 64, 1024  # LARGEST for a single replica only, for critical batch sizes
DENSITIES = (0.01, 0.03, 0.1, 1.0)
REPLICATES = range(1, 5)
MOST_STEPS = {16: 900, 64: 600, 256: 300, 1024: 200}  # local steps per replica, by batch size


@spec
class Search:
    """Trials that differ in inner and outer rate and initialisation.

    local_steps: per round.  batch_size: examples per step, of all replicas together.  density:
    share of the entries that a replica sends, in the sparse form.  replicate: sets the draws,
    seeds, shards and split.
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
    def cell(self) -> Spec:
        """A search of the inner method with the same seeds and split."""
        draws = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        return Spec(self.workload, self.batch_size, "adam", space=ADAM, **draws)

    def definition(self) -> dict:
        limit = MOST_STEPS[self.batch_size]
        return {**self.cell.definition(), "space": ADAM, "max_steps": limit}

    def drawn(self) -> dict:
        """The rates [trials] by name; the outer rate is 1 for the inner method alone."""
        from scipy.stats import qmc  # slow to import; most chapters only read records

        sequence = qmc.Sobol(len(RATES), scramble=True, seed=self.replicate)
        points = sequence.random_base2((self.trials - 1).bit_length())[: self.trials]
        rates = {name: axis.values(column) for (name, axis), column in zip(RATES.items(), points.T)}
        return rates | ({"outer_rate": points[:, 1] * 0 + 1} if self.way == INNER else {})

    def start(self, steps: Steps) -> Replicas:
        """The replicas before their first round."""
        import torch

        from chapters.disputed import replicas
        from lib.engine import clients, flattening
        from lib.methods import METHODS

        rates = {n: torch.from_numpy(v).float()[:, None] for n, v in self.drawn().items()}
        places = clients.shards(steps.train.y, self.replicas, False, self.replicate)
        size = self.batch_size // self.replicas
        return replicas.Replicas(
            METHODS["adam"],
            steps.executor.gradients,
            flattening.layers(steps.executor.module),
            steps.w,
            steps.trials.drawn | rates,
            clients.streams(steps.train, places, size, self.replicate),
            rates["outer_rate"],
            momentum=0.0 if self.way == INNER else replicas.MOMENTUM,
            density=self.density if self.way == SPARSE else None,
        )

    def measure(self) -> pd.DataFrame:
        """A row per trial: learning_rate, outer_rate, rounds@GOAL (the first that meets it), and
        bytes that a replica sends per round.
        """
        import torch

        from lib.measuring.rerun import Steps
        from lib.messages import INDEX_BYTES, VALUE_BYTES, target

        goals = self.cell.work.goals
        most = MOST_STEPS[self.batch_size] // self.local_steps
        steps = Steps(self.cell, goals)
        replicas = self.start(steps)
        first = torch.full((self.trials, len(goals)), torch.nan)
        rounds = steps.until_met(lambda _: replicas.round(self.local_steps), most)
        for count, _, wrong in rounds:
            first[(wrong[:, None] <= steps.limits) & first.isnan()] = count
        size = steps.w.shape[1]
        sent = size * VALUE_BYTES
        if self.density < 1:
            sent = target(self.density, size) * (VALUE_BYTES + INDEX_BYTES)
        met = {f"rounds@{goal:g}": column for goal, column in zip(goals, first.T)}
        table = pd.DataFrame({**self.drawn(), **met, "bytes": sent})
        return table.rename_axis("trial").reset_index()


def arms() -> list[tuple]:
    """Way, replicas, local steps, batch size and density of every arm."""
    rounds = [*itertools.product(STEPS[:2], SIZES), (RARELY, MIDDLE)]
    alone = [*rounds, (OFTEN, LARGEST)]
    return [
        *((way, 1, *shape, 1.0) for way in (INNER, DILOCO) for shape in alone),
        *((SPARSE, REPLICAS[-1], SELDOM, MIDDLE, k) for k in DENSITIES),
        *((DILOCO, m, *shape, 1.0) for m in REPLICAS[1:] for shape in rounds),
    ]


def planned() -> list[Search]:
    """Every arm, one replicate after another."""
    return [Search(*arm, replicate=n) for n in REPLICATES for arm in arms()]


def _file(search: Search) -> str:
    shape = f"{search.replicas}x{search.local_steps}-batch-{search.batch_size}"
    return f"{search.workload}/way-{WAYS.index(search.way)}-{shape}"


ABOUT = "Train replicas by local steps and outer steps, into data/local-steps/."
LOCAL = Collection("local-steps", "searches", _file, planned, ABOUT)
EXPERIMENTS = {"local-steps": LOCAL}
