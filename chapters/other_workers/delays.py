"""The delay of every gradient from real workers: processes that do not wait for each other."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.fields import POSITIVE, Count, Number, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.workloads.catalogue import WorkloadName, workload


@spec
class Job:
    """Plain SGD by `workers` processes that push gradients of `batch_size` examples to one that
    holds the weights.

    steps: gradients in all.  pause: seconds that the last worker waits before each gradient.
    """

    workload: WorkloadName = "digits-mlp"
    workers: Count(64) = 2
    batch_size: Count(1024) = 16
    learning_rate: POSITIVE = 0.05
    steps: Count(10**5) = 1000
    pause: Number("[0, 1]") = 0.0

    def definition(self) -> dict:
        work = workload(self.workload)
        return {"dataset": work.dataset, "model": work.model, "source": work.source}

    def measure(self) -> pd.DataFrame:
        """A row per worker (from 1) and delay: worker, delay (in updates), count of its gradients,
        and error, the final validation error."""
        from chapters.other_workers import turns  # imports PyTorch, which is slow

        pushed = turns.push(self)
        gradients = pd.DataFrame({"worker": pushed["workers"], "delay": pushed["delays"]})
        counts = gradients.groupby(["worker", "delay"]).size().reset_index(name="count")
        return counts.assign(error=pushed["error"])


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


def in_turn(pushed: pd.DataFrame) -> float:
    """The share of gradients that are exactly W - 1 late, in jobs whose W workers do not pause.

    pushed: the records.
    """
    even = pushed[pushed.pause == 0]
    return np.average(even.delay == even.workers - 1, weights=even["count"])
