"""Times of training steps on one core."""

from __future__ import annotations

import functools

import pandas as pd
import torch

from lib.engine import flattening, looped, pruning, sparse_stacked, stacked, training_state
from lib.fields import Whole, spec
from lib.measuring import one_cell
from lib.methods import METHODS
from lib.probes import timings
from lib.studies.cells import TRIALS, Cell
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
        work = workload(self.workload)
        executor = looped.Loop(models.build(work.model), getattr(torch, work.precision))
        data, w = work.train(), flattening.flatten(models.fresh(work.model, 0))[None]
        x, momentum, rate = (
            executor.inputs(data.x[: 2**self.largest]),
            METHODS["momentum"],
            torch.full((1, 1), 1e-3),
        )
        buffers, drawn = momentum.begin(w, ()), {"learning_rate": rate, "momentum": rate}

        def step(size: int) -> None:
            g = executor.gradients(w, x[:size], data.y[:size])[1]
            momentum.step(w, g, buffers, drawn, 1, ())

        sizes = [2**j for j in range(0, self.largest + 1, 2)]
        return pd.DataFrame(
            [{"batch_size": b, **timings.spread(lambda b=b: step(b), self.repeats)} for b in sizes]
        )


@spec
class SparseTimes:
    """Times per trial, on one core, of a step of many trials trained at once, of dense and of
    pruned networks.

    Raises ValueError naming the field, its value and what is allowed.
    """

    workload: WorkloadName
    trials: TRIALS = 100
    largest: Whole(4, 16) = 10
    repeats: timings.REPEATS = 7

    def definition(self) -> dict:
        return {"model": workload(self.workload).model, "sparsities": SPARSITIES}

    def measure(self) -> pd.DataFrame:
        """what, sparsity, batch_size (16, 64, ... 2^largest), seconds (median), low, high (range).

        what: "dense" and "dense, bfloat16"; "sparse", by products that skip the zeros; "scores",
        that pruning needs first. All are timed in turn, so that what else the machine does falls
        upon all.
        """
        work, rows = workload(self.workload), []
        data, module = work.train(), models.build(work.model)
        starts = {
            s: one_cell.start(Cell(work.name, 16, sparsity=s, trials=self.trials))
            for s in (0.0, *SPARSITIES)
        }

        def step(executor: stacked.Stack, start: training_state.Trials, x: torch.Tensor) -> None:
            g = executor.gradients(start.w, x, data.y[: len(x)], start.mask)[1]
            drawn = {**start.drawn, "learning_rate": 0 * start.drawn["learning_rate"]}
            METHODS["momentum"].step(start.w, g, {"v": torch.zeros_like(g)}, drawn, 1, ())

        for size in (2**j for j in range(4, self.largest + 1, 2)):
            kinds = [
                ("dense", 0.0, stacked.Stack(module)),
                ("dense, bfloat16", 0.0, stacked.Stack(module, torch.bfloat16)),
                *(("sparse", level, sparse_stacked.Sparse(module)) for level in SPARSITIES),
            ]
            calls = [
                functools.partial(step, run, starts[s], run.inputs(data.x[:size]))
                for _, s, run in kinds
            ]
            for (what, s, _), found in zip(
                kinds, timings.alternately(calls, self.repeats), strict=True
            ):
                times = {name: seconds / self.trials for name, seconds in found.items()}
                rows.append({"what": what, "sparsity": s, "batch_size": size, **times})
        loop = looped.Loop(models.build(work.model))
        dense = (starts[0.0].w[0], loop, loop.inputs(data.x), data.y, 0)
        times = timings.spread(
            lambda: pruning.scores("connection-sensitivity", *dense), self.repeats
        )
        return pd.DataFrame(
            [*rows, {"what": "scores", "sparsity": 0.0, "batch_size": len(data), **times}]
        )


SPARSITIES = (0.5, 0.7, 0.9)
SKIPPED = tuple(map(SparseTimes, ("digits-mlp", "digits-cnn")))
PLANNED = SKIPPED + tuple(
    StepTimes(name)
    for name in (
        "digits-mlp",
        "digits-cnn",
        "mnist-fc-128x3",
        "mnist-simple-cnn",
        "fashion-mnist-simple-cnn",
        "cifar-10-resnet-8",
    )
)


def one_core(name: str) -> pd.DataFrame | None:
    """The measured step times of a workload on one core of ours, or None."""
    measured = timings.results(StepTimes(name))
    return None if measured.empty else measured
