"""What the page measures about parts of a network, all with SGD: parts divided among workers,
networks that grow, and two halves trained one after the other.
"""

from __future__ import annotations

import itertools
from typing import Literal

import pandas as pd

from chapters.other_workers.sizes import WIDTHS
from lib.fields import Count, spec
from lib.measuring.experiment import Collection, OfSearch
from lib.methods.intervals import Interval

REPLICATES, TRIALS = (1, 2, 3), 32
WORKERS, LOCAL_STEPS = (2, 4, 8), (1, 5, 20, 80)
PUBLISHED = 20  # local steps in the published runs
GROWTHS = {  # (first, doublings, scaled, by_norm) of every arm
    (64, 0, False, True): "64 units from the start",
    (16, 0, False, True): "16 units from the start",
    (16, 2, False, True): "16 to 64: function kept",
    (16, 2, False, False): "16 to 64: function kept, one rate",
    (16, 2, True, True): "16 to 64: published rule",
}
GROWING_STEPS = {16: 1000, 64: 400, 256: 250, 1024: 160}  # at most, by batch size
HALVES = {
    "whole": "the whole network",
    "halves": "two halves",
    "recovered": "two halves, then the whole",
}
HALVES_STEPS = {16: 1000, 64: 800, 256: 600}  # at most, by batch size


class Search(OfSearch):
    """A search to the hardest goal or max_steps; replicate sets draws, seeds, orders and parts."""

    soon = False  # whether one hit ends it; else all trials go on, to find the cheapest

    def __post_init__(self):
        _ = self.cell  # runs its checks

    @property
    def settings(self) -> dict:
        return {"hits": 1 if self.soon else self.trials, "max_steps": self.max_steps}

    def in_stages(self, rule: str, lengths: Interval, seed: int) -> pd.DataFrame:
        """A row per trial, with stage: the steps per stage, tuned along with the learning rate;
        rule: name of a function of `training`.
        """
        # Imports PyTorch, which is slow; most chapters only read records
        import torch
        from scipy.stats import qmc

        from chapters.other_workers import training
        from lib.measuring import one_search

        sobol = qmc.Sobol(1, seed=seed + self.replicate)
        points = sobol.random_base2((self.trials - 1).bit_length())
        stage = lengths.values(points[: self.trials, 0]).round()
        trials = one_search.start(self.cell)
        trials.w, method = getattr(training, rule)(self, trials.w)
        trials.drawn["stage"] = torch.from_numpy(stage).float()[:, None]
        outcome = one_search.train_search(self.cell, trials=trials, method=method)
        return one_search.table(self.cell, outcome).assign(stage=stage)


@spec
class Subnetworks(Search):
    """Disjoint parts (`training.Parts`); batch_size: per worker; one worker is plain SGD."""

    workers: Count(64)
    local_steps: Count(10**4)
    batch_size: int = 16
    replicate: int = 1
    trials: int = TRIALS
    max_steps: int = 2000
    workload: Literal[*WIDTHS] = "digits-mlp"

    soon = True

    @property
    def examples(self) -> int:
        return self.workers * self.batch_size

    def measure(self) -> pd.DataFrame:
        """A row per trial, with sent: the numbers that a worker sends back after a round."""
        from chapters.other_workers import training
        from lib.measuring import one_search

        parts = training.Parts(self)
        outcome = one_search.train_search(self.cell, method=parts.method)
        return one_search.table(self.cell, outcome).assign(sent=parts.sent)


@spec
class Growing(Search):
    """The digits' MLP, begun with hidden layers of `first` units and doubled `doublings` times.

    scaled: whether old weights into a layer that grew are scaled.  by_norm: whether the rate of new
    weights follows their norm, or is the same as for old ones.
    """

    first: Literal[16, 64]
    doublings: Literal[0, 2] = 0
    batch_size: int = 16
    scaled: bool = False
    by_norm: bool = True
    replicate: int = 1
    trials: int = TRIALS
    max_steps: int = GROWING_STEPS[16]
    workload: Literal["digits-mlp"] = "digits-mlp"  # the only network that grows

    def measure(self) -> pd.DataFrame:
        return self.in_stages("growing", Interval(2, 128), 10_000)


@spec
class Halves(Search):
    """The digits' MLP of four hidden layers, by an arm of HALVES; "whole" is plain SGD."""

    arm: Literal[*HALVES]
    batch_size: int = 16
    replicate: int = 1
    trials: int = TRIALS
    max_steps: int = HALVES_STEPS[16]
    workload: Literal["digits-mlp-64x4"] = "digits-mlp-64x4"  # the only network that is halved

    def measure(self) -> pd.DataFrame:
        return self.in_stages("halves", Interval(8, 512), 20_000)


def subnetworks() -> list[Subnetworks]:
    """One worker with the examples per step of all; every number of workers and of local steps;
    further replicates of searches that judge claims; and a network four times as wide.
    """
    size = Subnetworks.batch_size
    alone = [(1, 1, size * workers) for workers in (1, *WORKERS)]
    split = [(*pair, size) for pair in itertools.product(WORKERS, LOCAL_STEPS)]
    searches = []
    for shape in alone + split:
        judged = shape in alone or shape[1] == PUBLISHED
        replicates = (*REPLICATES, 4, 5) if judged else REPLICATES
        searches += [Subnetworks(*shape, n) for n in replicates]
    wide = {"workload": "digits-mlp-256x2", "max_steps": 1000}
    shapes = alone[0], alone[-1], (WORKERS[-1], PUBLISHED, size)
    return searches + [Subnetworks(*s, n, **wide) for n in REPLICATES for s in shapes]


def growing() -> list[Growing]:
    """Networks of full and of least width from the start, and growth by three rules."""
    return [
        Growing(first, doublings, size, *rule, replicate=n, max_steps=most)
        for n in REPLICATES
        for size, most in GROWING_STEPS.items()
        for first, doublings, *rule in GROWTHS
    ]


def halves() -> list[Halves]:
    """Every arm, then more searches of "whole" and "recovered", which scatter widely."""
    points = [
        *itertools.product(REPLICATES, HALVES_STEPS, HALVES),
        *itertools.product(range(4, 15), HALVES_STEPS, ("whole", "recovered")),
    ]
    return [Halves(arm, b, n, max_steps=HALVES_STEPS[b]) for n, b, arm in points]


def _grown(search: Growing) -> str:
    widths = "16-32-64" if search.doublings else search.first
    return f"{search.workload}/width-{widths}-batch-{search.batch_size}"


APART = "{0.workload}/workers-{0.workers}-local-{0.local_steps}".format
CUT = "{0.workload}/{0.arm}-batch-{0.batch_size}".format
EXPERIMENTS = {
    name: Collection(name, "searches", file, planned, f"{about}, into data/{name}/.")
    for name, file, planned, about in [
        ("subnetworks", APART, subnetworks, "Train disjoint parts of a network, a worker each"),
        ("growing", _grown, growing, "Train networks that grow wider as they go"),
        ("halves", CUT, halves, "Train the two halves of a network one after the other"),
    ]
}
