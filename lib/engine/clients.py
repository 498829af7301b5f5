"""Clients that each hold a part of the data, and networks cut in two, as in split learning: a
client computes up to the cut and sends activations, a server computes the rest and returns their
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from lib import require
from lib.engine import lockstep
from lib.engine.flattening import outputs
from lib.workloads.datasets import Split

Batches = Iterator[tuple[Tensor, Tensor]]


def shards(y: Tensor, clients: int, skewed: bool, seed: int) -> Tensor:
    """Indices of the examples that each client holds, [clients, n], for labels y [N]: random ones
    or, if skewed, two runs of examples sorted by label.
    """
    random = torch.Generator().manual_seed(seed)
    size = len(y) // clients
    order = torch.randperm(len(y), generator=random)[: size * clients]
    if not skewed:
        return order.view(clients, size)
    runs = order[y[order].argsort(stable=True)].view(clients, size).tensor_split(2, 1)
    dealt = [run[torch.randperm(clients, generator=random)] for run in runs]
    return torch.cat(dealt, 1)


def streams(data: Split, places: Tensor, batch_size: int, seed: int) -> list[Batches]:
    """Each client's endless batches (x, y) of its examples, indices `places` [clients, n],
    reshuffled every epoch.
    """

    def stream(client: int, rows: Tensor) -> Batches:
        order = lockstep.batches(len(rows), batch_size, 1000 * seed + client)
        return ((data.x[rows[pick]], data.y[rows[pick]]) for pick in order)

    return [stream(client, rows) for client, rows in enumerate(places)]


class Halves:
    """Gradients of many trials of one network that is cut after its first ReLU.

    Attributes:
        client, server: the parts below and above the cut.
        size: parameters of the client's part, which come first in w.
    """

    def __init__(self, module: nn.Sequential):
        """Raises ValueError for a network without a ReLU in its outermost sequence."""
        places = [n for n, layer in enumerate(module.children()) if isinstance(layer, nn.ReLU)]
        require(places, "model", type(module).__name__, "a sequence of layers with a ReLU")
        self.client, self.server = module[: places[0] + 1], module[places[0] + 1 :]
        self.size = sum(p.numel() for p in self.client.parameters())

    def gradients(
        self,
        w: Tensor,
        x: Tensor,
        y: Tensor,
        penalty: Callable[[Tensor], Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Mean cross-entropies [T], and gradients [T, P] of these plus the penalty.

        Args:
            w: parameters [T, P].
            x: examples [B, ...].
            y: their labels [B].
            penalty: maps what the client sends, [T, B, ...], to an additional loss [T].
        """
        parts = [part.detach().requires_grad_() for part in w.tensor_split([self.size], 1)]
        sent = torch.vmap(lambda w: outputs(self.client, w, x))(parts[0])
        logits = torch.vmap(lambda w, h: outputs(self.server, w, h))(parts[1], sent)
        targets = y.expand(len(w), -1)
        losses = functional.cross_entropy(logits.mT, targets, reduction="none").mean(1)
        total = losses.sum() if penalty is None else losses.sum() + penalty(sent).sum()
        return losses.detach(), torch.cat(torch.autograd.grad(total, parts), 1)

    def sent(self, w: Tensor, x: Tensor) -> Tensor:
        """What the client sends for examples x [n, ...] at one trial's w [P]: [n, ...]."""
        return outputs(self.client, w[: self.size], x).detach()
