"""Cross-entropy: as autograd takes it, by hand for many trials at once, and in double precision for
validation.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def smooth(one_hot: Tensor, smoothing: float) -> Tensor:
    """Targets [B, classes] of which a share is spread evenly over all classes."""
    return one_hot * (1 - smoothing) + smoothing / one_hot.shape[1] if smoothing else one_hot


def mean_cross_entropy(logits: Tensor, y: Tensor, smoothing: float) -> Tensor:
    """The mean (a scalar, in nats) for one trial's logits [B, ..., classes] and y [B, ...], for
    autograd.
    """
    return F.cross_entropy(logits.flatten(0, -2), y.flatten(), label_smoothing=smoothing)


def cross_entropy(
    logits: Tensor, y: Tensor, smoothing: float, parts: int = 1
) -> tuple[Tensor, Tensor]:
    """Means over each part of the batch [parts, T] for logits [T, B, ..., classes], y [B, ...], and
    their derivatives.

    The derivatives have the shape of the logits.  By hand: on rows this short the library's kernels
    cost a fifth of a step.
    """
    shape, y = logits.shape, y.flatten()
    shifted = logits.float().flatten(1, -2)
    shifted = shifted - shifted.amax(2, keepdim=True)
    powers = shifted.exp()
    total = powers.sum(2, keepdim=True)
    target = smooth(F.one_hot(y, shape[-1]), smoothing)
    right = (
        (shifted * target).sum(2)
        if smoothing
        else shifted[:, torch.arange(len(y), device=y.device), y]
    )
    losses = (total.log()[..., 0] - right).unflatten(1, (parts, -1)).mean(2)
    return losses.T, powers.div_(total).sub_(target).div_(len(y) // parts).view(shape)


def nats(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of every answer [T, B, ...], float64 and never below zero, for logits [T, B,
    ..., classes], y [B, ...].
    """
    log = logits.double().log_softmax(-1)
    return -log.gather(-1, y.expand(log.shape[:-1])[..., None])[..., 0]
