"""What this chapter measures besides searches: the delay of every gradient of real workers,
processes that do not wait for each other.
"""

from __future__ import annotations

import pandas as pd

from lib import require
from lib.fields import POSITIVE, Count, Number, check, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.workloads.catalogue import WorkloadName, workload

MOST_WORKERS, MOST_STEPS, MOST_PAUSE = 64, 10**5, 1.0
TIMEOUT = 600.0  # seconds that a job may take


@spec
class Job:
    """Plain SGD by `workers` processes that push gradients of `batch_size` examples to one that
    holds the weights.

    steps: gradients in all.  pause: seconds that the last worker rests before each of its
    gradients. Raises ValueError naming the field, its value and what is allowed.
    """

    workload: WorkloadName = "digits-mlp"
    workers: Count(MOST_WORKERS) = 2
    batch_size: int = 16
    learning_rate: POSITIVE = 0.05
    steps: Count(MOST_STEPS) = 1000
    pause: Number(f"[0, {MOST_PAUSE:g}]", f"seconds from 0 to {MOST_PAUSE:g}") = 0.0

    def __post_init__(self):
        work = workload(self.workload)
        require(work.task == "classification", "workload", self.workload, "one of classification")
        check("batch_size", self.batch_size, Count(work.train_size))

    def definition(self) -> dict:
        work = workload(self.workload)
        return {"dataset": work.dataset, "model": work.model, "source": work.source}

    def measure(self) -> pd.DataFrame:
        """worker (from 1), delay and count: how many of this worker's gradients were so many
        updates late; and error, the validation error at the end."""
        # Brings PyTorch, which is slow to import, and most chapters only read
        from chapters.late_workers import turns
        from lib.workloads import datasets

        work = workload(self.workload)
        told = turns.push(self, work.train(), datasets.load(work.dataset).validation, TIMEOUT)
        every = pd.DataFrame({"worker": told["workers"], "delay": told["delays"]})
        found = every.groupby(["worker", "delay"]).size().reset_index(name="count")
        return found.assign(error=told["error"])


PLANNED = (Job(), Job(pause=0.01), Job(workers=4))


DELAYS = Collection(
    "delays",
    "jobs",
    lambda job: f"{store.home(job.workload)}/workers-{job.workers}",
    lambda: PLANNED,
    "Train with worker processes that do not wait for each other; record how late gradients are, "
    "into data/delays/.",
    alone=True,
)
EXPERIMENTS = {"async-delays": DELAYS}


def in_turn(table: pd.DataFrame) -> float:
    """Of the records, the least share of a job's gradients that are exactly W - 1 late: as they all
    are where W workers of equal pace take turns.

    Whatever their pace, every update makes one gradient of each of the others later by one, so that
    the mean is W - 1 but for the ends.
    """
    equal = table[table.pause == 0]
    count = equal["count"]
    late = count.where(equal.delay == equal.workers - 1, 0)
    return (late.groupby(equal.workers).sum() / count.groupby(equal.workers).sum()).min()
