"""What this chapter measures besides searches: the spectrum of the loss on the way to the goal, and
the time that gradient flow takes to it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.fields import POSITIVE, SEED, Count, spec
from lib.measuring.experiment import Collection
from lib.records import store
from lib.studies.cells import NUMBER
from lib.workloads.catalogue import WorkloadName, workload

RATE, BATCH = 0.3, 64  # of plain SGD towards the weights at which a spectrum is taken
SPLITS = (101, 102, 103)  # those of the searches
NETWORKS = {"digits-mlp": (0, 30), "digits-cnn": (0, 30), "mnist-fc-128x3-easier": (0, 200)}


class OfWorkload:
    """What a record's name depends on besides the fields."""

    def definition(self) -> dict:
        work = workload(self.workload)
        return {"dataset": work.dataset, "model": work.model}


@spec
class Spectrum(OfWorkload):
    """The largest eigenvalues of the Hessian of the mean loss on training examples, after so many
    steps of SGD (RATE, BATCH).

    count: of eigenvalues, by Lanczos.  examples: on which they are taken, at most.
    """

    workload: WorkloadName
    steps: int
    split: NUMBER = SPLITS[0]
    seed: SEED = 0
    count: Count(1000) = 100
    examples: Count(100_000) = 2000

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

        order = lockstep.batches(len(y), BATCH, self.split)

        def mean(w, rows):
            return losses(w, rows).mean()

        for _ in range(self.steps):
            w = w - RATE * grad(mean)(w, next(order))
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


@spec
class Flow(OfWorkload):
    """Gradient descent on all training examples at a rate so small that it follows the flow; the
    weights are those of a trial of the searches.
    """

    workload: WorkloadName
    split: NUMBER
    seed: SEED
    rate: POSITIVE = 0.02
    steps: Count(10**6) = 1500

    def measure(self) -> pd.DataFrame:
        """goal; time (the rate times the steps to it), a row per goal that was met."""
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


SPECTRA = Collection(
    "spectra",
    "spectra",
    lambda one: f"{store.home(one.workload)}-{one.steps}",
    lambda: tuple(Spectrum(name, steps) for name, own in NETWORKS.items() for steps in own),
    "Measure the spectrum of the loss on three networks, into data/spectra/ (three minutes).",
)
FLOWS = Collection(
    "flows",
    "descents",
    lambda one: f"{store.home(one.workload)}-split-{one.split}-{one.seed}",
    lambda: tuple(
        Flow("digits-mlp", split, 100_000 * split + n) for split in SPLITS for n in range(5)
    ),
    "Follow the gradient flow on the digits, into data/flows/ (two minutes).",
)
EXPERIMENTS = {"spectra": SPECTRA, "flows": FLOWS}
