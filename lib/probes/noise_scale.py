"""The simple noise scale tr(Sigma) / |G|^2 of a training set, from gradients of chunks of it.

Sigma is the covariance of single-example gradients and G their mean (McCandlish et al. 2018,
equation 2.9).  All is computed from the Gram matrix of the chunks' gradients, so that an interval
costs no further gradients.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lib.engine.sequential import SequentialExecutor
from lib.workers.noise_meter import trace_and_square
from lib.workloads import models
from lib.workloads.catalogue import workload
from lib.workloads.tasks import TASKS


class Chunks:
    """The training examples of a trial that is trained again, in chunks of so many.

    again: a `lib.probes.tracks.Again` that has `examples` (0: all of the training set) and `chunk`.
    """

    def __init__(self, again):
        work = workload(again.workload)
        data = work.train(again.cell.split)
        self.module = models.build(work.model)
        self.executor = SequentialExecutor(models.build(work.model), task=TASKS[work.task])
        self.x, self.y, self.size = self.executor.inputs(data.x), data.y, again.chunk
        self.count = (again.examples or len(data)) // again.chunk * again.chunk

    def drawn(self, seed: int) -> Tensor:
        """Which examples are looked at, int64 [count]."""
        random = torch.Generator().manual_seed(seed)
        return torch.randperm(len(self.y), generator=random)[: self.count]

    def gradients(self, w: Tensor, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Mean loss and gradient of every chunk at weights w [P]: [n], [n, P]."""
        rows = self.drawn(seed).split(self.size)
        found = [self.executor.gradients(w[None], self.x[row], self.y[row]) for row in rows]
        losses, gradients, _ = map(torch.cat, zip(*found, strict=True))
        return losses, gradients

    def noise(self, gradients: Tensor) -> tuple[float, float]:
        """tr(Sigma) and |G|^2 from the chunks' gradients [n, P]."""
        return estimate(gram(gradients), self.size, len(self.y))


def gram(gradients: Tensor) -> np.ndarray:
    """Inner products [n, n] of chunk gradients [n, P]."""
    return (gradients @ gradients.T).double().numpy()


def estimate(
    products: np.ndarray, chunk: int, total: int | None = None, counts: np.ndarray | None = None
) -> tuple:
    """Unbiased estimates of tr(Sigma) and |G|^2, G being the mean gradient of the training set.

    products: inner products [n, n] of the mean gradients of n chunks.
    chunk: examples in each.
    total: size of the training set, from which they are drawn without replacement; None: so large
    that it does not matter.
    counts: how often each chunk counts, for resampling, [..., n].
    """
    n = len(products)
    shares = np.full(n, 1 / n) if counts is None else counts / counts.sum(-1, keepdims=True)
    small, big = shares @ np.diag(products), ((shares @ products) * shares).sum(-1)
    return trace_and_square(small, big, n, chunk, total)


def interval(
    products: np.ndarray, chunk: int, total: int | None = None, draws: int = 400, seed: int = 0
) -> tuple[float, float]:
    """5 to 95 % range of the simple noise scale over bootstrap resamples of the chunks.

    Resampled chunks add their own noise to the mean gradient, tr(Sigma) / (n chunk), which is taken
    off again.
    """
    n, random = len(products), np.random.default_rng(seed)
    counts = random.multinomial(n, np.full(n, 1 / n), size=draws)
    trace, square = estimate(products, chunk, total, counts)
    square = square - trace / (n * chunk)
    hidden = np.full(draws, np.inf)
    scales = np.divide(trace, square, out=hidden, where=square > 0)
    low, high = np.quantile(scales, [0.05, 0.95], method="nearest")
    return low, high
