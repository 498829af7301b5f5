"""What this chapter measures: times of training steps on two processes, by framework, and on one
process, with the bytes that each sends and holds.
"""

from __future__ import annotations

from typing import Literal

import pandas as pd

from lib.fields import SHARE, Whole, spec
from lib.probes import timings
from lib.workloads.catalogue import WorkloadName, workload


@spec
class FrameworkTimes:
    """Times of a workload's steps with every system in `frameworks`, a batch on both processes.

    density: of sparse messages.  micro_batches: of stages.  repeats: rounds in which all systems
    are timed in turn.  replicate: distinguishes runs that are otherwise the same.
    """

    workload: WorkloadName
    algorithm: Literal["sgd", "momentum", "adam"]  # PyTorch has these too
    batch_size: int
    density: SHARE = 0.01
    micro_batches: int = 4
    repeats: Whole(2, 1000) = 9
    replicate: Whole(0, 1000) = 0

    def definition(self) -> dict:
        return {"model": workload(self.workload).model}

    def measure(self) -> pd.DataFrame:
        """The rows of `framework_clock.timed`, with weights: how many the network has."""
        # Imports PyTorch, which reading times does not need
        from chapters.batch_size_is_data_parallelism import framework_clock, frameworks
        from lib.workers import processes
        from lib.workloads import models

        work, size = workload(self.workload), self.batch_size
        data, parts = (
            work.train(),
            {"density": self.density, "micro_batches": self.micro_batches},
        )
        training = frameworks.Training(work.model, self.algorithm, size, 0.0, **parts)
        batch = data.x[:size].numpy(), data.y[:size].numpy()
        call = framework_clock.timed, frameworks.WORKERS, 1800.0, training, *batch, self.repeats
        weights = models.parameter_count(work.network())
        return pd.DataFrame(processes.launch(*call)).assign(weights=weights)


PLANNED = tuple(
    FrameworkTimes(name, algorithm, size, replicate=replicate)
    for replicate in range(2)
    for name, algorithm in (
        ("mnist-fc-1024x3", "sgd"),
        ("mnist-simple-cnn", "momentum"),
        ("digits-cnn", "adam"),
        ("mnist-fc-1024x3", "adam"),
    )
    for size in (64, 256, 1024)
)
ABOUT = "PyTorch's own ways to train with two processes"
EXPERIMENTS = {"timings-frameworks": timings.experiment(ABOUT, lambda: PLANNED)}


def measured(replicate: int) -> pd.DataFrame:
    """The records of this replicate of PLANNED, with their settings as columns."""
    return timings.results(*(times for times in PLANNED if times.replicate == replicate))
