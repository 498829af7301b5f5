"""What this chapter measures besides searches: the noise scale of a running job, estimated from its
workers' gradients and from other gradients at the same weights; and the spectrum of the loss.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import pandas as pd

from lib.fields import SEED, Count, Number, Whole, spec
from lib.measuring.experiment import Collection
from lib.probes import tracks
from lib.probes.tracks import Again
from lib.records import store
from lib.studies.search import NUMBER, Search
from lib.workloads.catalogue import WorkloadName, workload

METHODS = ("sgd", "momentum")  # torch.optim.SGD has these, too
MOST_WORKERS, MOST_STEPS = 64, 10**6
ROWS = 120  # of a record at most
TIMEOUT = 7200.0  # seconds that a job may take


@spec
class Job(Again):
    """A trial of a recorded search, trained again for `steps` steps by `workers` processes that
    estimate the noise scale from their gradients.

    batch_size: over all workers.
    span: of the running averages, in steps.
    examples: of the training set, drawn anew at every step, from which its noise scale is estimated
    offline, by gradients of `chunk` examples; 0: all of them.

    Raises ValueError naming the field, its value and what is allowed.
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

    def measure(self) -> pd.DataFrame:
        """A row for each of up to ROWS steps: step, and noise scales in examples at the weights
        before it.

        running, low, high: the estimate of `lib.workers.noise_hook` for the window of steps that
        ends here, with its 5 to 95 % interval.
        offline: `lib.probes.noise_scale` at every step, its tr(Sigma) and |G|^2 averaged over the
        same window.
        single: the offline value for this step alone.

        Infinite values become NaN.
        """
        from lib.workers import processes  # imports PyTorch, which is slow

        rows = processes.launch(_listen, self.workers, TIMEOUT, self)
        return pd.DataFrame(rows).replace(np.inf, np.nan)


def _listen(rank: int, job: Job) -> list[dict]:
    """Train as worker `rank`; returns worker 0's rows."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    from lib.engine import flattening, lockstep
    from lib.probes.noise_scale import Chunks
    from lib.workers.noise_hook import NoiseState, noise_hook
    from lib.workers.noise_meter import Averages, ratio

    work = workload(job.workload)
    chunks = Chunks(job)
    drawn = {name: float(values[job.trial]) for name, values in job.cell.draw().items()}
    data = work.train()
    network = work.network(job.trial)
    ddp = DistributedDataParallel(network)
    examples = job.batch_size // job.workers
    state = NoiseState(ddp, examples, total=len(data), span=job.span)
    ddp.register_comm_hook(state, noise_hook)
    rates = {"lr": drawn["learning_rate"], "momentum": drawn.get("momentum", 0.0)}
    optimizer = torch.optim.SGD(ddp.parameters(), **rates)
    reported = set(np.linspace(1, job.steps, min(job.steps, ROWS)).round().astype(int).tolist())
    rows = []
    window = Averages(job.span)
    order = lockstep.batches(len(data), job.batch_size, 0)
    for step in range(1, job.steps + 1):
        share = next(order).chunk(job.workers)[rank]
        optimizer.zero_grad()
        cross_entropy(ddp(data.x[share]), data.y[share]).backward()
        if rank == 0:
            w = flattening.flatten(network).detach()
            single = chunks.noise(chunks.gradients(w, seed=step)[1])
            window = window.after(*map(float, single))
        if rank == 0 and step in reported:
            now = state.estimate()
            offline = window.estimate().noise_scale
            row = {"step": step, "running": now.noise_scale, "low": now.low, "high": now.high}
            rows.append(row | {"offline": offline, "single": float(ratio(*single))})
        optimizer.step()
    return rows


def planned() -> tuple[Job, ...]:
    """The fastest trials at batch size 64 with SGD: on MNIST to the step at which it met its goal,
    on digits for longer.
    """
    images = Search("mnist-fc-128x3", 64, "sgd", trials=32, hits=2)
    digits = Search("digits-mlp", 64, "sgd")
    to_goal = tracks.fastest(Job, images, 1, steps=1, examples=2000)
    return (
        *(dataclasses.replace(job, steps=tracks.met_at(job)) for job in to_goal),
        *tracks.fastest(Job, digits, 1, steps=200, span=50.0, chunk=10),
    )


JOBS = Collection(
    "running",
    "jobs",
    lambda job: f"{store.home(job.workload)}/{job.algorithm}-{job.batch_size}",
    planned,
    "Train with two worker processes that estimate the gradient's noise as they go, into "
    "data/running/.",
    precision="float32",
    alone=True,
)

# --- the spectrum of the loss ---------------------------------------------------------------------

SPECTRUM_RATE, SPECTRUM_BATCH = 0.3, 64  # of plain SGD towards the weights where it is taken
SPECTRA_OF = {"digits-mlp": (0, 30), "digits-cnn": (0, 30), "mnist-fc-128x3-easier": (0, 200)}


@spec
class Spectrum:
    """The largest eigenvalues of the Hessian of the mean loss on training examples, after so many
    steps of SGD (SPECTRUM_RATE, SPECTRUM_BATCH).

    count: of eigenvalues, by Lanczos.  examples: on which they are taken, at most.
    """

    workload: WorkloadName
    steps: int
    split: NUMBER = 101
    seed: SEED = 0
    count: Count(1000) = 100
    examples: Count(100_000) = 2000

    def definition(self) -> dict:
        """What the record's name depends on besides the fields."""
        work = workload(self.workload)
        return {"dataset": work.dataset, "model": work.model}

    def measure(self) -> pd.DataFrame:
        """A row per direction, the steepest first: curvature; noise (variance of one example's
        slope along it); slope of the mean loss.
        """
        import torch
        from scipy.sparse.linalg import LinearOperator, eigsh
        from torch.func import grad, jvp

        from lib.engine import flattening, lockstep
        from lib.workloads import models

        work = workload(self.workload)
        data, module = work.train(self.split), models.build(work.model)
        x, y = flattening.cast(data.x, torch.float32), data.y
        w = flattening.flatten(models.fresh(work.model, self.seed))

        def losses(w, rows):
            outputs = flattening.outputs(module, w, x[rows])
            return torch.nn.functional.cross_entropy(outputs, y[rows], reduction="none")

        order = lockstep.batches(len(y), SPECTRUM_BATCH, self.split)

        def mean(w, rows):
            return losses(w, rows).mean()

        for _ in range(self.steps):
            w = w - SPECTRUM_RATE * grad(mean)(w, next(order))
        seen = slice(0, self.examples)

        def product(v):
            along = torch.as_tensor(v.ravel(), dtype=torch.float32)
            return jvp(lambda v: grad(mean)(v, seen), (w,), (along,))[1].double().numpy()

        square = LinearOperator((len(w), len(w)), matvec=product, dtype=np.float64)
        first = np.random.default_rng(self.seed).standard_normal(len(w))
        values, vectors = eigsh(square, self.count, which="LA", v0=first, tol=1e-4)
        rows = []
        for value, vector in zip(values[::-1], vectors.T[::-1]):
            along = torch.as_tensor(vector.copy(), dtype=torch.float32)
            single = jvp(lambda v: losses(v, seen), (w,), (along,))[1].double()
            rows.append((value, float(single.var()), float(single.mean())))
        return pd.DataFrame(rows, columns=["curvature", "noise", "slope"])


SPECTRA = Collection(
    "spectra",
    "spectra",
    lambda spectrum: f"{store.home(spectrum.workload)}-{spectrum.steps}",
    lambda: tuple(Spectrum(name, n) for name, steps in SPECTRA_OF.items() for n in steps),
    "Measure the spectrum of the loss on three networks, into data/spectra/ (three minutes).",
)
EXPERIMENTS = {"noise-scale": JOBS, "spectra": SPECTRA}
