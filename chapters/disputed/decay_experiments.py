"""Learning rate and weight decay tuned together, for a fixed number of epochs, at several batch
sizes.  The page states what was predicted before measuring.
"""

from __future__ import annotations

from typing import Literal

import pandas as pd

from lib.fields import Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.methods import variants
from lib.studies.search import SPLITS
from lib.studies.search import Search as Spec
from lib.workloads.catalogue import WorkloadName

DECAYS = (0.01, 10)
SPACES = {  # all but rate and decay are fixed
    "adam": "learning_rate=1e-4..0.1,beta1=0.9,beta2=0.99",
    "muon": "learning_rate=1e-3..1,momentum=0.95,aux_ratio=0.1",
}
BATCH_SIZES = (16, 64, 256)
# Three searches were planned; the others were added after looking at these, which did not determine
# a timescale to within a factor of two
REPLICATES = {"adam": 10, "muon": 5}


@spec
class Search:
    """Trials that differ in rate, decay and initialisation, all trained for `epochs`; every other
    trial has no decay.

    replicate: sets the draws, the seeds, and the order and split of the examples.
    """

    workload: WorkloadName
    algorithm: Literal[*SPACES]
    batch_size: Count(65_536)
    replicate: Whole(0, SPLITS) = 1
    epochs: Count(10_000) = 30
    trials: Count(4096) = 64

    @property
    def cell(self) -> Spec:
        draws = {"trials": self.trials, "replicate": self.replicate, "split": self.replicate}
        space = SPACES[self.algorithm] + ",weight_decay={}..{}".format(*DECAYS)
        name = self.algorithm + variants.SUFFIX
        return Spec(self.workload, self.batch_size, name, space=space, **draws)

    def definition(self) -> dict:
        return self.cell.definition() | {"drawn": self.cell.space}

    def measure(self) -> pd.DataFrame:
        """A row per trial after the last step: learning_rate, weight_decay, loss (mean validation
        cross-entropy) and error; NaN loss if it diverged.
        """
        from lib.measuring.rerun import Rerun  # imports PyTorch, which is slow
        from lib.workloads.tasks import TASKS

        run = Rerun(self.cell)
        drawn, validation = run.trials.drawn, run.validation
        drawn["weight_decay"][::2] = 0
        for _ in range(round(self.epochs * self.cell.work.train_size / self.batch_size)):
            run.update()
        logits = run.executor.logits(run.evaluated(), run.executor.inputs(validation.x))
        columns = {name: drawn[name][:, 0] for name in ("learning_rate", "weight_decay")}
        for name, task in (("loss", "cross-entropy"), ("error", "classification")):
            columns[name] = TASKS[task].cost(logits, validation.y).double().mean(1)
        return pd.DataFrame({name: column.numpy() for name, column in columns.items()})


def planned() -> list[Search]:
    """Every method and batch size, one replicate after another, small batches last in each."""
    points = sorted((n, name) for name, most in REPLICATES.items() for n in range(1, most + 1))
    sizes = BATCH_SIZES[::-1]
    return [Search("digits-mlp-nats", name, size, n) for n, name in points for size in sizes]


DECAYED = Collection(
    "decay",
    "searches",
    "{0.workload}/{0.algorithm}-batch-{0.batch_size}".format,
    planned,
    "Tune learning rate and weight decay together at several batch sizes, into data/decay/.",
)
EXPERIMENTS = {"decay": DECAYED}
