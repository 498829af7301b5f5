"""Low-rank adapters: a network whose matrices are W + (ALPHA / rank) B A, of which only the factors
B and A are trained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from lib.engine.batched import BatchedExecutor
from lib.engine.flattening import layers, masked
from lib.engine.sequential import Gradients
from lib.methods.method import Layer

ALPHA = 32.0


def matrices(module: nn.Module) -> list[Layer]:
    """The matrices of the attention and feed-forward layers: all except the last layer's."""
    return [layer for layer in layers(module) if layer.kind == "linear"]


def trained(module: nn.Module) -> Tensor:
    """A mask [P]: one for each weight in `matrices`, else zero."""
    mask = torch.zeros(layers(module)[-1].where.stop)
    for matrix in matrices(module):
        mask[matrix.where] = 1
    return mask


class Adapted(BatchedExecutor):
    """Many trials of one network with adapters.  The methods of `BatchedExecutor` take the factors
    [T, Q] as weights: B of each matrix, directly followed by A.

    base: frozen weights of the network [P].  scale: factor on each product B A.
    """

    def __init__(self, module: nn.Module, base: Tensor, rank: int, **named):
        super().__init__(module, **named)
        self.base, self.rank, self.scale = base, rank, ALPHA / rank
        self.matrices = matrices(module)
        self.sizes = [rank * side for matrix in self.matrices for side in matrix.shape]

    def pairs(self, w: Tensor) -> Iterator[tuple[Layer, Tensor, Tensor]]:
        """Each matrix with its B [T, outputs, rank] and A [T, rank, inputs], views of w [T, Q]."""
        parts = iter(w.split(self.sizes, 1))
        for matrix, b, a in zip(self.matrices, parts, parts):
            yield matrix, b.unflatten(1, (-1, self.rank)), a.unflatten(1, (self.rank, -1))

    def start(self, seeds: list[int]) -> Tensor:
        """Initial factors [T, Q], a row per seed: B is zero, A uniform within ± 1/√inputs."""
        w = torch.zeros(len(seeds), sum(self.sizes))
        for row, seed in zip(w.split(1), seeds):
            random = torch.Generator().manual_seed(seed)
            for matrix, _, a in self.pairs(row):
                reach = 1 / math.sqrt(matrix.shape[1])
                a.uniform_(-reach, reach, generator=random)
        return w

    def whole(self, w: Tensor) -> Tensor:
        """Weights [T, P] of the full network for factors w [T, Q]."""
        weights = self.base.repeat(len(w), 1)
        for matrix, b, a in self.pairs(w):
            weights[:, matrix.where] += self.scale * (b @ a).flatten(1)
        return weights

    def gradients(
        self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> Gradients:
        losses, full, alive = super().gradients(self.whole(w), x, y)
        g = torch.empty_like(w)
        for (matrix, b, a), (_, by_b, by_a) in zip(self.pairs(w), self.pairs(g)):
            slopes = self.scale * full[:, matrix.where].unflatten(1, matrix.shape)
            by_b.copy_(slopes @ a.mT)
            by_a.copy_(b.mT @ slopes)
        return losses, masked(g, mask), alive

    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        return super().logits(self.whole(w), x)
