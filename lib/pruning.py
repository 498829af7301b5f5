"""Pruning at initialisation: a score for every parameter, then one global mask with an exact count."""

from __future__ import annotations

import torch
from torch import Tensor

from lib.stacks import Loop

METHODS = ("connection-sensitivity", "random", "magnitude")
PASS_BATCH = 100  # Lee et al. (2021) sum the gradient over the training set in batches of this size


def scores(method: str, w: Tensor, loop: Loop, x: Tensor, y: Tensor, seed: int) -> Tensor:
    """Non-negative scores [P] of the parameters w [P] of one freshly initialised network; the larger, the more kept.

    connection-sensitivity: |sum over batches of dL/dm| at an all-ones mask m, which is |w * sum of dL/dw| (Lee et al.
        2019; accumulated over one pass of the training set x [N, ...], y [N] as in the code of Lee et al. 2021).
        Biases are scored like weights.  They start at zero, so their sensitivity is exactly zero: at any sparsity
        that removes at least as many parameters as there are biases, the network trains without biases.
    random: uniform.   magnitude: |w|, hence biases go first here too.
    """
    if method == "random":
        return torch.rand(len(w), generator=torch.Generator().manual_seed(seed)).to(w.device)
    if method == "magnitude":
        return w.abs()
    if method == "connection-sensitivity":
        total = torch.zeros_like(w)
        for at in range(0, len(y), PASS_BATCH):
            total += loop.gradients(w[None], x[at : at + PASS_BATCH], y[at : at + PASS_BATCH])[1][0]
        return (w * total).abs()
    raise ValueError(f"pruning: {method!r} is unknown; allowed: {', '.join(METHODS)}")


def kept(parameters: int, sparsity: float) -> int:
    """How many of `parameters` a sparsity in [0, 1) leaves: round(parameters (1 - sparsity)), at least one."""
    if not 0 <= sparsity < 1:
        raise ValueError(f"sparsity: {sparsity!r} is not allowed; it must be in [0, 1)")
    return max(1, round(parameters * (1 - sparsity)))


def global_mask(scores: Tensor, sparsity: float) -> Tensor:
    """Mask [..., P] of zeros and ones that keeps exactly `kept(P, sparsity)` largest scores of each row.

    Ties are broken by position, so the count is exact whatever the scores.
    """
    count = kept(scores.shape[-1], sparsity)
    order = scores.argsort(dim=-1, descending=True, stable=True)[..., :count]
    return torch.zeros_like(scores).scatter_(-1, order, 1.0)
