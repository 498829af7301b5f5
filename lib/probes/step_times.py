"""Times of training steps on one core."""

from __future__ import annotations

import functools

import pandas as pd
import torch

from lib.engine import flattening, sequential
from lib.fields import Whole, spec
from lib.methods import METHODS
from lib.probes import timings
from lib.studies.cells import TRIALS
from lib.workloads import models
from lib.workloads.catalogue import WorkloadName, workload


@spec
class StepTimes:
    """Times of one trial's training step on one core, gradient and update, at 4^0 ... 2^largest
    examples.

    Raises ValueError naming the field, its value and what is allowed.
    """

    workload: WorkloadName
    largest: Whole(0, 16) = 10
    repeats: timings.REPEATS = 9

    def definition(self) -> dict:
        work = workload(self.workload)
        return {"model": work.model, "precision": work.precision}

    def measure(self) -> pd.DataFrame:
        """batch_size, seconds (median), low, high (range)."""
        work, momentum = workload(self.workload), METHODS["momentum"]
        module, dtype = models.build(work.model), getattr(torch, work.precision)
        executor = sequential.SequentialExecutor(module, dtype)
        data = work.train()
        x = executor.inputs(data.x[: 2**self.largest])
        w = flattening.flatten(models.fresh(work.model, 0))[None]
        rate = torch.full((1, 1), 1e-3)
        drawn = {"learning_rate": rate, "momentum": rate}
        buffers = momentum.begin(w, ())

        def step(size: int) -> None:
            g = executor.gradients(w, x[:size], data.y[:size])[1]
            momentum.step(w, g, buffers, drawn, 1, ())

        rows = []
        for power in range(0, self.largest + 1, 2):
            times = timings.spread(functools.partial(step, 2**power), self.repeats)
            rows.append({"batch_size": 2**power, **times})
        return pd.DataFrame(rows)


@spec
class SparseTimes:
    """Times per trial, on one core, of a step of many trials trained at once, of dense and of
    pruned networks.

    The records were made with products that skip the zeros of pruned networks.  Training no longer
    has these, so the records are read and none is made.  Their columns: what ("dense", "dense,
    bfloat16", "sparse", or "scores", which pruning needs first), sparsity, batch_size, seconds
    (median), low, high (range).
    """

    workload: WorkloadName
    trials: TRIALS = 100
    largest: Whole(4, 16) = 10
    repeats: timings.REPEATS = 7

    def definition(self) -> dict:
        """What the record's name depends on besides the fields."""
        return {"model": workload(self.workload).model, "sparsities": SPARSITIES}

    def measure(self) -> pd.DataFrame:
        """Raises RuntimeError: they cannot be taken anew."""
        raise RuntimeError(f"{self}: training skips no zeros any more; take the book's record")


SPARSITIES = (0.5, 0.7, 0.9)
SKIPPED = tuple(map(SparseTimes, ("digits-mlp", "digits-cnn")))
TIMED = (
    "digits-mlp",
    "digits-cnn",
    "mnist-fc-128x3",
    "mnist-simple-cnn",
    "fashion-mnist-simple-cnn",
    "cifar-10-resnet-8",
)
PLANNED = SKIPPED + tuple(map(StepTimes, TIMED))


def one_core(name: str) -> pd.DataFrame | None:
    """The measured step times of a workload on one core of ours, or None."""
    measured = timings.results(StepTimes(name))
    return None if measured.empty else measured
