"""The noise scale of a running job, as its workers' own gradients tell it, beside that of other
gradients at the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from lib import require
from lib.fields import Count, Number, Whole, spec
from lib.measuring.experiment import Collection
from lib.own import folder_name
from lib.probes import tracks
from lib.probes.trained_again import Again
from lib.records import store
from lib.records.store import DATA
from lib.studies.cells import Cell
from lib.workloads.catalogue import WorkloadName, workload

if TYPE_CHECKING:
    from torch import Tensor, nn

    from lib.probes.noise_scale import NoiseScale
    from lib.workloads.datasets import Split

METHODS = ("sgd", "momentum")  # which torch.optim.SGD has, too
MOST_WORKERS, MOST_STEPS = 64, 10**6
ROWS = 120  # of a record at most
TIMEOUT = 7200.0  # seconds that a job may take


@spec
class Job(Again):
    """A trial of a measured cell, trained again by `workers` processes that listen to their
    gradients, for `steps` steps.

    batch_size: over all workers.  span: of the running averages, in steps.  examples: of the
    training set, drawn anew at every step, from which its noise scale is estimated offline, by
    gradients of `chunk` examples; 0: all of them. Raises ValueError naming the field, its value and
    what is allowed, as `lib.studies.cells.Cell`.
    """

    workload: WorkloadName
    batch_size: int
    algorithm: Literal[*METHODS]
    trials: int
    trial: int
    hits: int
    steps: Count(MOST_STEPS)
    workers: Whole(2, MOST_WORKERS) = 2
    span: Number(f"(1, {MOST_STEPS}]") = 100.0
    examples: int = 0
    chunk: int = 50

    def __post_init__(self):
        super().__post_init__()
        task = workload(self.workload).task
        require(task == "classification", "workload", self.workload, "one of classification")
        self.check_chunk()
        fits = self.batch_size % self.workers == 0
        require(fits, "batch_size", self.batch_size, f"a multiple of workers ({self.workers})")

    def measure(self) -> pd.DataFrame:
        """step, and noise scales in examples at the weights before it, a row for each of up to ROWS
        steps.

        running, low, high: what `lib.workers.noise_hook` tells of the window of steps that ends
        here, with its 5 to 95 %. offline: `lib.probes.noise_scale` at every step, its tr(Sigma) and
        |G|^2 averaged over the same window.  single: that of this step alone.  What is infinite is
        empty.
        """
        # Brings PyTorch, which is slow to import, and most chapters only read
        from lib.workers import (
            processes,
        )

        return pd.DataFrame(processes.launch(_listen, self.workers, TIMEOUT, self)).replace(
            np.inf, np.nan
        )


def _listen(rank: int, job: Job) -> list[dict]:
    """Train as worker `rank`; the rows, of worker 0."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    from lib.workers.noise_hook import NoiseState, noise_hook
    from lib.workers.noise_meter import Averages
    from lib.workloads import models

    work, drawn = (
        workload(job.workload),
        {name: float(values[job.trial]) for name, values in job.cell.draw().items()},
    )
    data, network = work.train(), models.fresh(work.model, job.trial)
    ddp = DistributedDataParallel(network)
    state = NoiseState(job.batch_size // job.workers, total=len(data), span=job.span)
    ddp.register_comm_hook(state, noise_hook)
    optimizer = torch.optim.SGD(
        ddp.parameters(), lr=drawn["learning_rate"], momentum=drawn.get("momentum", 0.0)
    )
    told = set(np.linspace(1, job.steps, min(job.steps, ROWS)).round().astype(int).tolist())
    rows, window = [], Averages(job.span)
    for step, mine in _shares(job, len(data), rank):
        optimizer.zero_grad()
        cross_entropy(ddp(data.x[mine]), data.y[mine]).backward()
        if rank == 0:
            single = _offline(job, network, data, step)
            window = window.after(float(single.trace), float(single.square))
            if step in told:
                now, then = state.estimate(), window.estimate()
                rows.append(
                    {
                        "step": step,
                        "running": now.noise_scale,
                        "low": now.low,
                        "high": now.high,
                        "offline": then.noise_scale,
                        "single": float(single.simple),
                    }
                )
        optimizer.step()
    return rows


def _shares(job: Job, examples: int, rank: int) -> Iterator[tuple[int, Tensor]]:
    """Steps from 1 and the examples of worker `rank`, in the order of the trial."""
    from lib.engine import lockstep

    order = lockstep.batches(examples, job.batch_size, 0)
    for step, pick in zip(range(1, job.steps + 1), order, strict=False):
        yield step, pick.chunk(job.workers)[rank]


def _offline(job: Job, network: nn.Module, data: Split, step: int) -> NoiseScale:
    """The noise scale of the training set at the network's weights, from examples drawn for this
    step.
    """
    import torch
    from torch.nn.functional import cross_entropy

    from lib.probes import noise_scale

    drawn = torch.randperm(len(data), generator=torch.Generator().manual_seed(step))[
        : job.examples or len(data)
    ]
    rows = []
    for pick in drawn[: len(drawn) // job.chunk * job.chunk].split(job.chunk):
        g = torch.autograd.grad(
            cross_entropy(network(data.x[pick]), data.y[pick]), list(network.parameters())
        )
        rows.append(torch.cat([part.flatten() for part in g]))
    return noise_scale.estimate(noise_scale.gram(torch.stack(rows)), job.chunk, len(data))


def planned() -> tuple[Job, ...]:
    """The fastest trials at batch size 64 with SGD: on MNIST to the step at which it met its goal,
    on digits for longer.
    """
    images, digits = (
        Cell("mnist-fc-128x3", 64, "sgd", trials=32, hits=2),
        Cell("digits-mlp", 64, "sgd"),
    )
    return (
        *(_again(t, steps=tracks.last_step(t), examples=2000) for t in tracks.fastest(images, 1)),
        *(_again(t, steps=200, span=50.0, chunk=10) for t in tracks.fastest(digits, 1)),
    )


def _again(track: tracks.Track, **fields) -> Job:
    shared = ("workload", "batch_size", "algorithm", "trials", "trial", "hits")
    return Job(**{name: getattr(track, name) for name in shared}, **fields)


def _place(job: Job, folder: Path) -> Path:
    name = f"{job.algorithm}-{job.batch_size}-{store.digest(job)}.csv"
    return folder / store.place(job.workload) / folder_name(job.workload) / name


JOBS = Collection("jobs", "job", DATA / "running", _place, planned, precision=lambda _: "float32")
record, results, missing, run = JOBS.record, JOBS.results, JOBS.missing, JOBS.run


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """Of `results` with the networks' names, a row per network and its workers: the running
    estimate beside the offline one.

    held: share of the rows whose 5 to 95 % hold `offline`.  apart: median factor between `running`
    and `offline`, either way. ahead: median of `single` over `offline`: how far a window lags
    behind its last step.
    """
    rows = []
    for (name, workers), own in (
        table.groupby(["network", "workers"], sort=False) if len(table) else ()
    ):
        held = (own.low <= own.offline.fillna(np.inf)) & (
            own.offline.fillna(np.inf) <= own.high.fillna(np.inf)
        )
        apart = np.exp(np.log(own.running / own.offline).abs().median())
        ahead = (own.single / own.offline).median()
        rows.append(
            {
                "network": name,
                "workers": workers,
                "held": held.mean(),
                "apart": apart,
                "ahead": ahead,
            }
        )
    return pd.DataFrame(rows, columns=["network", "workers", "held", "apart", "ahead"])
