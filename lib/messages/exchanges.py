"""The exchange of compressed gradients among the workers of many trials, with error feedback."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lib.messages.compressors import compress, counts, places
from lib.messages.settings import Messages


def published_sum(sent: list[Tensor], chosen: list[Tensor]) -> Tensor:
    """What the authors' code makes of the workers' messages [R, d].

    sent: u where it is sent and 0 elsewhere, per worker [R, d]; chosen: which entries are sent,
    bool [R, d].
    """
    result = torch.zeros_like(sent[0])
    for row, out in enumerate(result):
        masks = [mask[row] for mask in chosen]
        own = [u[row] for u in sent]
        index = torch.cat([mask.nonzero()[:, 0] for mask in masks])
        value = torch.cat([u[mask] for u, mask in zip(own, masks, strict=True)])
        part = len(index) // len(sent)
        for start in range(0, part * len(sent), part) if part else ():
            worker = slice(start, start + part)
            turn = index[worker]
            # Of several pairs for one entry, one counts
            out[turn] = out[turn] + value[worker]
    return result


class Exchange:
    """P workers of T trials at once, in one process: their gradients, compressed, averaged, with
    what they keep back.

    kept: which weights each trial has, indices [T, d'], or None if all d.
    sizes: parameters per layer, for messages by layer.
    watch: called with the step (from 0) and worker 0's vectors u [T, d'] before compression.
    sent [T]: elements that a worker has sent so far, on average over workers.
    """

    def __init__(
        self,
        messages: Messages,
        trials: int,
        d: int,
        kept: Tensor | None,
        sizes: list[int],
        seed: int,
        watch: Callable[[int, Tensor], None] | None = None,
    ):
        self.messages, self.kept, self.watch, self.step = messages, kept, watch, 0
        self.d, self.sizes = d if kept is None else kept.shape[1], sizes
        self.random = np.random.default_rng([seed, 1])
        self.residual: Tensor | None = (
            None  # [P, T, d'], from the first gradient on, if there is feedback
        )
        self.sent = torch.zeros(trials, dtype=torch.float64)

    def gradients(self, executor, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean losses [T], gradients [T, P] and who is alive [T], for w [T, P] and a batch x, y
        that is shared out evenly.

        executor: whose `gradients_by_worker` returns losses [P, T], gradients [P, T, d] and who is
        alive [P, T], for every worker's part of the batch.

        alive is True where messages kept back can still move w.  Where any worker's gradient is not
        finite, which a compressor might keep back for good, the gradient is NaN, so that the trial
        diverges as it would without messages.
        """
        messages = self.messages
        density, sizes = messages.density_at(self.step), self.sizes if messages.by_layer else None
        losses, gradients, alive = executor.gradients_by_worker(w, x, y, messages.workers)
        total, sent, spoilt = gradients.new_zeros(len(w), self.d), [], torch.zeros_like(alive[0])
        for p, g in enumerate(gradients):
            u = g if self.kept is None else g.gather(1, self.kept)
            if messages.feedback:
                u = self.tensors(w)["residual"][p].add_(u)
            spoilt |= ~torch.stack(u.aminmax(dim=1)).isfinite().all(0)
            if p == 0 and self.watch:
                self.watch(self.step, u)
            chosen = compress(messages.compressor, u, density, self.random, sizes)
            if messages.aggregation == "published":
                sent.append((torch.where(chosen, u, 0), chosen))
            count = counts(chosen)
            self.sent += count.cpu() / messages.workers
            if count.sum() == u.numel():
                total.add_(u)
                u.zero_()
            else:
                at = places(chosen)
                total.view(-1).index_add_(0, at, u.view(-1)[at])
                u.view(-1)[at] = 0
        self.step += 1
        g = (published_sum(*zip(*sent, strict=True)) if sent else total) / messages.workers
        g[spoilt] = torch.nan
        g = g if self.kept is None else torch.zeros_like(w).scatter_(1, self.kept, g)
        alive = torch.ones_like(alive[0]) if messages.feedback else alive.any(0)
        return losses.mean(0), g, alive

    def tensors(self, w: Tensor) -> dict[str, Tensor]:
        """What it has counted and kept back, to be saved, or to be overwritten with what was; w:
        weights [T, d].
        """
        if not self.messages.feedback:
            return {"sent": self.sent}
        if self.residual is None:
            self.residual = w.new_zeros(self.messages.workers, len(w), self.d)
        return {"sent": self.sent, "residual": self.residual}

    def numbers(self) -> dict:
        """What else the next step depends on, for JSON."""
        return {"step": self.step, "random": self.random.bit_generator.state}

    def resume(self, numbers: dict) -> Exchange:
        """A copy that goes on from these `numbers`; its `tensors` are still new.

        Raises ValueError, TypeError or KeyError for what `numbers` cannot have given.
        """
        other = copy.copy(self)
        other.step, other.random = numbers["step"], np.random.default_rng()
        other.random.bit_generator.state = numbers["random"]
        return other

    def keep(self, rows: Tensor) -> None:
        """Go on with the trials in `rows` (a boolean mask) alone."""
        self.kept = None if self.kept is None else self.kept[rows]
        self.residual = None if self.residual is None else self.residual[:, rows]
        self.sent = self.sent[rows.cpu()]
