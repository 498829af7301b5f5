"""A trial trained again, with smoothness and gradient noise measured along its path.

How smooth the loss is there has two estimates.  `path_lipschitz` is that of Lee et al. (2021):
gradients at nine points between consecutive iterates. `spectral_norm` needs a few Hessian-vector
products instead, and bounds it where the Hessian changes little.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.engine.flattening import outputs
from lib.measuring.rerun import Rerun
from lib.probes import noise_scale
from lib.workers.noise_meter import ratio

FRACTIONS = tuple(i / 10 for i in range(1, 10))  # of the way from one iterate to the next
SAMPLE = 1000  # training examples for the Hessian products
POWER_ITERATIONS = 20


def follow(track, last: int) -> pd.DataFrame:
    """Train the trial of a `tracks.Track` again for `last` steps and measure at each of its points;
    a row per point.  Up to rounding, if the engine has changed.

    step: the update looked at, from w to w'.
    error: validation error, or what else the task counts, at w', or at what the method evaluates.
    loss, square (|G|^2), trace (tr Sigma), noise_scale with noise_low and noise_high: of training
    examples at w.
    distance: |w' - w|.
    lipschitz: between w and w'.
    along, spectral: the Hessian at w on a sample, along the step and its largest absolute
    eigenvalue.

    A track without smoothness lacks the last three.  What is measured is in single precision; the
    training is in the cell's own.
    """
    rerun, chunks, rows = Rerun(track.cell, [track.trial]), noise_scale.Chunks(track), []
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


def _noise(chunks: noise_scale.Chunks, w: Tensor, left: Tensor) -> dict[str, float]:
    """Loss and gradient noise at weights w [P]; left [P]: 1 where these are not pruned, else 0."""
    losses, gradients = chunks.gradients(w)
    products = noise_scale.gram(gradients * left)
    trace, square = noise_scale.estimate(products, chunks.size, len(chunks.y))
    low, high = noise_scale.interval(products, chunks.size, len(chunks.y))
    return {
        "loss": losses.mean().item(),
        "square": square,
        "trace": trace,
        "noise_scale": ratio(trace, square),
        "noise_low": low,
        "noise_high": high,
    }


def _smoothness(
    chunks: noise_scale.Chunks, before: Tensor, after: Tensor, left: Tensor
) -> dict[str, float]:
    """How smooth the loss is between two iterates [P]."""
    sample = chunks.drawn(0)[:SAMPLE]
    x, y = chunks.x[sample], chunks.y[sample]
    product = hessian_product(chunks.module, before, x, y, left)
    along, spectral = spectral_norm(product, after - before, POWER_ITERATIONS)

    def gradient(w: Tensor) -> Tensor:
        return (chunks.gradients(w)[1] * left).mean(0)

    lipschitz = path_lipschitz(gradient, before, after)
    return {"along": along, "spectral": spectral, "lipschitz": lipschitz}


def path_lipschitz(gradient: Callable[[Tensor], Tensor], before: Tensor, after: Tensor) -> float:
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
    """v [P] -> H v [P] for the mean cross-entropy of `module` at w [P] on x [N, ...], y [N].

    With a mask [P], the Hessian of the weights that are left.
    """
    w = w.detach().clone().requires_grad_()
    (g,) = torch.autograd.grad(F.cross_entropy(outputs(module, w, x), y), w, create_graph=True)
    left = torch.ones_like(w) if mask is None else mask

    def product(v: Tensor) -> Tensor:
        return torch.autograd.grad(g, w, v * left, retain_graph=True)[0] * left

    return product


def spectral_norm(
    product: Callable[[Tensor], Tensor], start: Tensor, iterations: int = 20
) -> tuple[float, float]:
    """|H v| / |v| for v = start [P], and after so many power iterations: along the start, and the
    largest |eigenvalue|.

    Power iteration approaches the largest absolute eigenvalue from below.
    """
    v, norms = start, []
    for _ in range(iterations):
        v = product(v / v.norm().clamp(min=torch.finfo(v.dtype).tiny))
        norms.append(v.norm().item())
    return norms[0], norms[-1]
