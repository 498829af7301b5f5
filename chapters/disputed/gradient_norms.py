"""A gradient and the spread of its examples, each measured in the norm in which a method takes the
steepest step: Euclidean (SGD), l1 (signs), nuclear (orthogonal matrices).

The noise scales of the last two are those of Naganuma et al. (2026).  The gradient is that of the
whole training set: of a part, its lengths would be too large in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import grad, vmap

from lib.engine.flattening import outputs
from lib.methods.method import Layer
from lib.methods.muon import HIDDEN
from lib.probes.noise_scale import Chunks


def look(chunks: Chunks, w: Tensor, layers: Sequence[Layer]) -> dict[str, float]:
    """What `parts` says of the network's gradient at weights w [P].

    chunks: the training set; the spread is that of the examples drawn from it.
    layers: the parameters in w.
    """
    g = chunks.executor.gradients(w[None], chunks.x, chunks.y)[1][0]
    task, module = chunks.executor.task, chunks.module

    def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return task.loss(outputs(module, w, x[None]), y[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))
    rows = chunks.drawn(0).split(chunks.size)
    return parts(g, (each(w, chunks.x[row], chunks.y[row]) for row in rows), layers)


def parts(g: Tensor, examples: Sequence[Tensor], layers: Sequence[Layer]) -> dict[str, float]:
    """The lengths of a gradient g [P] and of its noise, of which noise scales are made.

    trace, square: sum of sigma_i^2 and of g_i^2, where sigma_i is the standard deviation of one
    example's derivative by weight i.
    sigmas, slopes: sums of sigma_i and of |g_i|.
    roots, nuclear: tr(C^(1/2)) and the nuclear norm of g, summed over the matrices that Muon makes
    orthogonal; C [rows, rows] is the mean of D D^T, D an example's matrix less that of g.

    examples: gradients of single examples in chunks, each [n, P].
    layers: the parameters in g.
    """
    hidden = [layer for layer in layers if layer.kind in HIDDEN]
    squares, count, spread = 0, 0, [0] * len(hidden)
    for own in examples:
        away = own - g
        count += len(away)
        squares = squares + away.square().sum(0)
        for place, layer in enumerate(hidden):
            rows = matrix(away, layer).transpose(0, 1).flatten(1)
            spread[place] = spread[place] + rows @ rows.mT
    variances = squares.double() / count
    # What rounding leaves below zero is zero
    roots = [torch.linalg.eigvalsh(c.double() / count).clamp(min=0).sqrt() for c in spread]
    singular = [torch.linalg.svdvals(matrix(g[None], layer)[0].double()) for layer in hidden]
    return {
        "trace": variances.sum().item(),
        "square": g.double().square().sum().item(),
        "sigmas": variances.sqrt().sum().item(),
        "slopes": g.double().abs().sum().item(),
        "roots": sum(one.sum().item() for one in roots),
        "nuclear": sum(one.sum().item() for one in singular),
    }


def matrix(g: Tensor, layer: Layer) -> Tensor:
    """The layer's part of g [n, P], as Muon sees it: [n, outputs, the rest]."""
    return g[:, layer.where].unflatten(1, (layer.shape[0], -1))
