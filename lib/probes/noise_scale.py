"""The simple noise scale tr(Sigma) / |G|^2 of a training set, from gradients of chunks of it; and
trials trained again to measure it, and the loss's smoothness, along their paths.

Sigma is the covariance of single-example gradients and G their mean (McCandlish et al. 2018,
equation 2.9).  All is computed from the Gram matrix of the chunks' gradients, so intervals need no
further gradients.

The loss's smoothness is estimated in two ways.  `path_lipschitz` is that of Lee et al. (2021):
gradients at nine points between consecutive iterates.  `spectral_norm` needs only a few
Hessian-vector products, and bounds the former where the Hessian changes little.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from lib.engine.flattening import outputs
from lib.engine.sequential import SequentialExecutor
from lib.measuring.rerun import Rerun
from lib.workers.noise_meter import ratio, trace_and_square
from lib.workloads.catalogue import workload
from lib.workloads.tasks import TASKS

FRACTIONS = tuple(i / 10 for i in range(1, 10))  # of the way from one iterate to the next
SAMPLE = 1000  # training examples for the Hessian products


class Chunks:
    """The training examples of a trial that is trained again, in chunks.

    again: a `lib.probes.tracks.Again` with `examples` (0: the whole training set) and `chunk`.
    """

    def __init__(self, again):
        work = workload(again.workload)
        data = work.train(again.cell.split)
        self.module = work.network()
        self.executor = SequentialExecutor(work.network(), task=TASKS[work.task])
        self.x, self.y, self.size = self.executor.inputs(data.x), data.y, again.chunk
        self.count = (again.examples or len(data)) // again.chunk * again.chunk

    def drawn(self, seed: int) -> Tensor:
        """Indices of the examples used, int64 [count]."""
        random = torch.Generator().manual_seed(seed)
        return torch.randperm(len(self.y), generator=random)[: self.count]

    def gradients(self, w: Tensor, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Mean loss and gradient of every chunk at weights w [P]: [n], [n, P]."""
        rows = self.drawn(seed).split(self.size)
        chunks = [self.executor.gradients(w[None], self.x[row], self.y[row]) for row in rows]
        losses, gradients, _ = map(torch.cat, zip(*chunks, strict=True))
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
    """Unbiased estimates of tr(Sigma) and |G|^2, where G is the mean gradient of the training set.

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

    Resampling adds noise of tr(Sigma) / (n chunk) to the mean gradient, which is subtracted again.
    """
    n, random = len(products), np.random.default_rng(seed)
    counts = random.multinomial(n, np.full(n, 1 / n), size=draws)
    trace, square = estimate(products, chunk, total, counts)
    square = square - trace / (n * chunk)
    hidden = np.full(draws, np.inf)
    scales = np.divide(trace, square, out=hidden, where=square > 0)
    low, high = np.quantile(scales, [0.05, 0.95], method="nearest")
    return low, high


# --- along a path ---------------------------------------------------------------------------------


def follow(track, last: int) -> pd.DataFrame:
    """Train the trial of a `tracks.Track` again for `last` steps and measure at each of its points;
    a row per point.  Up to rounding, if the engine has changed.

    step: the update measured, from w to w'.
    error: validation error, or whatever the task counts, at w' or the weights that the method
    evaluates.
    loss, square (|G|^2), trace (tr Sigma), noise_scale with noise_low and noise_high: on training
    examples at w.
    distance: |w' - w|.
    lipschitz: between w and w'.
    along, spectral: the Hessian at w on a sample, along the step, and its largest |eigenvalue|.

    A track without smoothness lacks the last three.  Measurements are in single precision, training
    in the search's.
    """
    rerun, chunks, rows = Rerun(track.cell, [track.trial]), Chunks(track), []
    points = np.geomspace(1, last, track.points).round().astype(int)
    mask = rerun.trials.mask
    left = torch.ones_like(rerun.w[0]) if mask is None else mask[0]
    for step in range(1, last + 1):
        before = rerun.w[0].clone()
        rerun.update()
        if step in points:
            error = rerun.costs(rerun.validation).float().mean().item()
            row = {"step": step, "error": error, **_noise(chunks, before, left)}
            row["distance"] = (rerun.w[0] - before).norm().item()
            if track.smoothness:
                row |= _smoothness(chunks, before, rerun.w[0], left)
            rows.append(row)
    return pd.DataFrame(rows)


def _noise(chunks: Chunks, w: Tensor, left: Tensor) -> dict[str, float]:
    """Loss and gradient noise at weights w [P]; left [P]: 1 for weights that are kept, else 0."""
    losses, gradients = chunks.gradients(w)
    products = gram(gradients * left)
    trace, square = estimate(products, chunks.size, len(chunks.y))
    low, high = interval(products, chunks.size, len(chunks.y))
    return {
        "loss": losses.mean().item(),
        "square": square,
        "trace": trace,
        "noise_scale": ratio(trace, square),
        "noise_low": low,
        "noise_high": high,
    }


def _smoothness(
    chunks: Chunks, before: Tensor, after: Tensor, left: Tensor
) -> dict[str, float]:
    """How smooth the loss is between two iterates [P]."""
    sample = chunks.drawn(0)[:SAMPLE]
    x, y = chunks.x[sample], chunks.y[sample]
    product = hessian_product(chunks.module, before, x, y, left)
    along, spectral = spectral_norm(product, after - before)
    lipschitz = path_lipschitz(lambda w: (chunks.gradients(w)[1] * left).mean(0), before, after)
    return {"along": along, "spectral": spectral, "lipschitz": lipschitz}


def path_lipschitz(
    gradient: Callable[[Tensor], Tensor], before: Tensor, after: Tensor
) -> float:
    """Largest |gradient(w) - gradient(before)| / |w - before| over nine points w between two
    iterates [P].

    From the code of Lee et al. (2021).  NaN if the iterates are equal.
    """
    step, base = after - before, gradient(before)
    length = step.norm()
    if length == 0:
        return float("nan")
    changes = [(gradient(before + f * step) - base).norm() / (f * length) for f in FRACTIONS]
    return max(change.item() for change in changes)


def hessian_product(
    module: nn.Module, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """v [P] -> H v [P] for the mean cross-entropy of `module` at w [P] on x [N, ...], y [N];
    of texts at every token.

    With a mask [P], the Hessian of the weights that it keeps.
    """
    w, left = w.detach().clone().requires_grad_(), 1 if mask is None else mask
    with sdpa_kernel(SDPBackend.MATH):  # which has second derivatives
        scores = outputs(module, w, x).flatten(0, -2)
    (g,) = torch.autograd.grad(F.cross_entropy(scores, y.flatten()), w, create_graph=True)
    return lambda v: torch.autograd.grad(g, w, v * left, retain_graph=True)[0] * left


def spectral_norm(
    product: Callable[[Tensor], Tensor], start: Tensor, iterations: int = 20
) -> tuple[float, float]:
    """|H v| / |v| for v = start [P], and after `iterations` power iterations: along the start, and
    the largest |eigenvalue|.

    Power iteration approaches the largest absolute eigenvalue from below.
    """
    v, norms = start, []
    for _ in range(iterations):
        v = product(v / v.norm().clamp(min=torch.finfo(v.dtype).tiny))
        norms.append(v.norm().item())
    return norms[0], norms[-1]
