"""Low-rank adapters: a network whose matrices are W + (ALPHA / rank) B A, of which only the factors
B and A are trained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib.engine.batched import BatchedExecutor
from lib.engine.flattening import layers, masked
from lib.engine.sequential import Gradients
from lib.methods.method import Layer

ALPHA = 32.0


def matrices(module: nn.Module) -> list[Layer]:
    """The matrices of attention and feed-forward layers: all but the last layer's."""
    return [layer for layer in layers(module) if layer.kind == "linear"]


def trained(module: nn.Module) -> Tensor:
    """One for each weight [P] of `matrices`, else zero."""
    mask = torch.zeros(layers(module)[-1].where.stop)
    for matrix in matrices(module):
        mask[matrix.where] = 1
    return mask


@dataclass(frozen=True)
class Factors:
    """Where the factors of a matrix lie among those of all: B [outputs, rank], and A [rank, inputs]
    right after it.
    """

    matrix: Layer
    first: int
    rank: int

    @property
    def middle(self) -> int:
        """The first number of A."""
        return self.first + self.matrix.shape[0] * self.rank

    @property
    def last(self) -> int:
        """One past the last number of A."""
        return self.middle + self.rank * self.matrix.shape[1]

    def of(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """B [T, outputs, rank] and A [T, rank, inputs], views of w [T, Q]."""
        b, a = w[:, self.first : self.middle], w[:, self.middle : self.last]
        return b.unflatten(1, (-1, self.rank)), a.unflatten(1, (self.rank, -1))


class Adapted(BatchedExecutor):
    """Many trials of one network with adapters; their weights are the factors [T, Q].

    Attributes:
        base: weights of the network [P], which stay.
        scale: of the product of two factors.
        factors: of every matrix that is adapted.
    """

    def __init__(self, module: nn.Module, base: Tensor, rank: int, **named):
        """named: as of `BatchedExecutor`."""
        super().__init__(module, **named)
        self.base, self.scale, self.factors = base, ALPHA / rank, []
        end = 0
        for matrix in matrices(module):
            self.factors.append(Factors(matrix, end, rank))
            end = self.factors[-1].last

    def start(self, seeds: list[int]) -> Tensor:
        """First factors [T, Q], a row per seed: B is zero, A uniform within ± 1/√inputs."""
        w = torch.zeros(len(seeds), self.factors[-1].last)
        for row, seed in enumerate(seeds):
            random = torch.Generator().manual_seed(seed)
            for each in self.factors:
                a = each.of(w)[1][row]
                reach = 1 / math.sqrt(a.shape[1])
                a.uniform_(-reach, reach, generator=random)
        return w

    def whole(self, w: Tensor) -> Tensor:
        """Weights [T, P] of the network with factors w [T, Q]."""
        found = self.base.repeat(len(w), 1)
        for each in self.factors:
            b, a = each.of(w)
            found[:, each.matrix.where] += self.scale * (b @ a).flatten(1)
        return found

    def gradients(self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor | None = None) -> Gradients:
        """As of `BatchedExecutor`, by the factors."""
        losses, full, alive = super().gradients(self.whole(w), x, y)
        g = torch.empty_like(w)
        for each in self.factors:
            own = self.scale * full[:, each.matrix.where].unflatten(1, each.matrix.shape)
            (b, a), (by_b, by_a) = each.of(w), each.of(g)
            by_b.copy_(own @ a.mT)
            by_a.copy_(b.mT @ own)
        return losses, masked(g, mask), alive

    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """As of `BatchedExecutor`."""
        return super().logits(self.whole(w), x)
