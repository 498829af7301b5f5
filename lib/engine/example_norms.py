"""Norms of single examples' gradients, layer by layer, from a layer's inputs and the derivatives by
its outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

TOGETHER = 2**18  # entries of examples' own gradients computed at once: what fits a core's cache


def of_layer(
    inputs: Tensor, deltas: Tensor, weights: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Norms [T, B] of the examples' gradients of a layer's weights and of its bias.

    inputs [1 or T, B, S, K], deltas [T, B, S, O]: as of `lib.engine.stacked.Stack.signals`.
    weights [T, O, K], bias [T, O]: masks of zeros and ones, or None; what is removed does not
    count.
    """
    precise = torch.promote_types(deltas.dtype, torch.float32)
    inputs, deltas = inputs.to(precise), deltas.to(precise)
    own = deltas.sum(2) if bias is None else deltas.sum(2) * bias[:, None]
    return _of_weights(inputs, deltas, weights), own.norm(dim=2)


def _of_weights(inputs: Tensor, deltas: Tensor, mask: Tensor | None) -> Tensor:
    """The cheapest way there is: an example's gradient is a sum of S outer products, and seldom
    needed itself.
    """
    _, _, places, outputs = deltas.shape
    if places == 1:
        h, d = inputs[:, :, 0].square(), deltas[:, :, 0].square()
        squares = h.sum(2) * d.sum(2) if mask is None else ((d @ mask) * h).sum(2)
        return squares.sqrt()
    if mask is None and places * (outputs + inputs.shape[3]) < outputs * inputs.shape[3]:
        squares = (inputs @ inputs.transpose(2, 3) * (deltas @ deltas.transpose(2, 3))).sum((2, 3))
        return squares.clamp(
            min=0
        ).sqrt()  # of a sum of products that rounding may leave below zero
    return torch.stack(
        [
            _of_trial(inputs[t % len(inputs)], d, None if mask is None else mask[t])
            for t, d in enumerate(deltas)
        ]
    )


def _of_trial(inputs: Tensor, deltas: Tensor, mask: Tensor | None) -> Tensor:
    """Norms [B] for inputs [B, S, K], deltas [B, S, O], mask [O, K], by way of the gradients
    themselves.
    """
    size, norms = max(1, TOGETHER // (deltas.shape[2] * inputs.shape[2])), []
    for h, d in zip(inputs.split(size), deltas.split(size), strict=True):
        g = d.transpose(1, 2).bmm(h)
        norms.append((g if mask is None else g.mul_(mask)).flatten(1).norm(dim=1))
    return torch.cat(norms)
