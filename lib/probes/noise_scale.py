"""The simple noise scale tr(Sigma) / |G|^2, which predicts the batch size at which returns
diminish.

Sigma is the covariance of single-example gradients and G their mean (McCandlish et al. 2018,
equation 2.9).  Everything is computed from the Gram matrix of chunk gradients, so that an interval
costs no further gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class NoiseScale:
    """trace: tr(Sigma); square: |G|^2, of the mean gradient over the whole training set; both
    estimates unbiased.

    square may be negative where noise hides the gradient; the ratio is then infinite.
    """

    trace: float
    square: float

    @property
    def simple(self) -> float:
        """tr(Sigma) / |G|^2 in examples."""
        return self.trace / self.square if self.square > 0 else float("inf")


def gram(gradients: Tensor) -> np.ndarray:
    """Inner products [n, n] of chunk gradients [n, P]."""
    return (gradients @ gradients.T).double().numpy()


def estimate(
    products: np.ndarray, chunk: int, total: int | None = None, counts: np.ndarray | None = None
) -> NoiseScale:
    """The noise scale from the inner products [n, n] of the mean gradients of n chunks of `chunk`
    examples each.

    The chunks are drawn without replacement from a training set of `total` examples (None: so large
    that it does not matter), whose own mean gradient is G: E|mean of the chunks|^2 = |G|^2 +
    tr(Sigma) (1 / (n chunk) - 1 / total). tr(Sigma) comes from the spread between chunks.  counts
    [n]: how often each chunk counts (for resampling). Raises ValueError for fewer than two chunks.
    """
    n = len(products)
    if n < 2:
        raise ValueError(f"products: {n} chunks are not enough; at least 2 are needed")
    c = np.ones(n) if counts is None else np.asarray(counts, float)
    mean = c @ products @ c / c.sum() ** 2
    trace = chunk * (c @ np.diag(products) / c.sum() - mean) * n / (n - 1)
    beyond = 1 / (n * chunk) - (1 / total if total else 0)
    return NoiseScale(trace, mean - trace * beyond)


def interval(
    products: np.ndarray, chunk: int, total: int | None = None, draws: int = 400, seed: int = 0
) -> tuple:
    """5 to 95 % range of the simple noise scale over bootstrap resamples of the chunks.

    Resampled chunks add their own noise to the mean gradient, tr(Sigma) / (n chunk), which is taken
    off again.
    """
    random, n = np.random.default_rng(seed), len(products)
    found = []
    for counts in random.multinomial(n, np.full(n, 1 / n), size=draws):
        drawn = estimate(products, chunk, total, counts)
        found.append(NoiseScale(drawn.trace, drawn.square - drawn.trace / (n * chunk)).simple)
    return tuple(np.quantile(found, [0.05, 0.95], method="nearest"))
