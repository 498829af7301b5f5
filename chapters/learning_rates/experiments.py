"""What this chapter measures besides searches: the time to a goal in gradient flow."""

from __future__ import annotations

import pandas as pd

from lib.fields import POSITIVE, SEED, Count, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.studies.search import NUMBER
from lib.workloads.catalogue import WorkloadName, workload

SPLITS = (101, 102, 103)  # as in the searches


@spec
class Flow:
    """Gradient descent on all training examples at a rate small enough to follow the flow, from the
    initial weights of a trial of the searches.
    """

    workload: WorkloadName
    split: NUMBER
    seed: SEED
    rate: POSITIVE = 0.02
    steps: Count(10**6) = 1500

    def definition(self) -> dict:
        """What the record's name depends on besides the fields."""
        work = workload(self.workload)
        return {"dataset": work.dataset, "model": work.model}

    def measure(self) -> pd.DataFrame:
        """A row per goal that was met: goal, time (the rate times the steps to it)."""
        import torch
        from torch.nn.functional import cross_entropy

        from lib.workloads import datasets, models

        work = workload(self.workload)
        data = datasets.load(work.dataset, self.split)
        network = models.fresh(work.model, self.seed)
        descent = torch.optim.SGD(network.parameters(), lr=self.rate)
        left, rows = sorted(work.goals, reverse=True), []
        for step in range(1, self.steps + 1):
            descent.zero_grad()
            cross_entropy(network(data.train.x), data.train.y).backward()
            descent.step()
            with torch.no_grad():
                wrong = network(data.validation.x).argmax(1) != data.validation.y
            while left and float(wrong.double().mean()) <= left[0]:
                rows.append((left.pop(0), step * self.rate))
            if not left:
                break
        return pd.DataFrame(rows, columns=["goal", "time"])


FLOWS = Collection(
    "flows",
    "descents",
    lambda flow: f"{store.home(flow.workload)}-split-{flow.split}-{flow.seed}",
    lambda: tuple(
        Flow("digits-mlp", split, 100_000 * split + n) for split in SPLITS for n in range(5)
    ),
    "Follow the gradient flow on the digits, into data/flows/ (two minutes).",
)
EXPERIMENTS = {"flows": FLOWS}
