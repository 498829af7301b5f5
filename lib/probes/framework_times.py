"""Times of training steps on two processes, by framework, beside those of one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib import require, require_number, require_whole
from lib.probes import timings
from lib.workloads.catalogue import workload

METHODS = ("sgd", "momentum", "adam")  # that PyTorch has, too
MOST_REPEATS = 1000


@dataclass(frozen=True)
class FrameworkTimes:
    """Times of a workload's steps by every system of `lib.workers.frameworks`, at 64, 256 and 1,024 examples over both processes.

    largest: of these batch sizes, the last that is timed.  density, micro_batches: of sparse messages and stages.  repeats:
    rounds in which all systems are timed in turn.  Raises ValueError naming the field, its value and what is allowed.
    """

    workload: str
    algorithm: str
    largest: int = 1024
    density: float = 0.01
    micro_batches: int = 4
    repeats: int = 25

    def __post_init__(self):
        work = workload(self.workload)  # complains of an unknown one
        require(work.task == "classification", "workload", self.workload, "one of classification")
        require(self.algorithm in METHODS, "algorithm", self.algorithm, f"one of {METHODS}")
        require(self.largest in SIZES, "largest", self.largest, f"one of {SIZES}")
        require_number("density", self.density, lambda share: 0 < share <= 1, "a number in (0, 1]")
        require_whole("micro_batches", self.micro_batches, 1, min(SIZES))
        require_whole("repeats", self.repeats, 2, MOST_REPEATS)

    def definition(self) -> dict:
        return {"model": workload(self.workload).model}

    def measure(self) -> pd.DataFrame:
        """A row per batch size and system, as `lib.workers.frameworks.timed` returns them; weights is how many there are."""
        from lib.workers import frameworks  # brings PyTorch, and reading times does without
        from lib.workloads import models

        work = workload(self.workload)
        sizes = [size for size in SIZES if size <= self.largest]
        trained = [frameworks.Training(work.model, self.algorithm, size, 0.0, density=self.density,
                                       micro_batches=self.micro_batches) for size in sizes]  # fmt: skip
        data = work.train()
        rows = frameworks.timed(trained, data.x[: sizes[-1]], data.y[: sizes[-1]], self.repeats)
        return pd.DataFrame(rows).assign(weights=models.parameter_count(models.build(work.model)))


SIZES = (64, 256, 1024)
PLANNED = (
    FrameworkTimes("mnist-fc-1024x3", "sgd"),
    FrameworkTimes("mnist-simple-cnn", "momentum"),
    FrameworkTimes("digits-cnn", "adam"),
    FrameworkTimes("mnist-fc-1024x3", "adam"),
)


def measured(*more: FrameworkTimes, folder: Path = timings.FOLDER) -> pd.DataFrame:
    """What is on record of PLANNED and of `more`, with the settings as columns; empty if nothing is."""
    return timings.results(*PLANNED, *more, folder=folder)
