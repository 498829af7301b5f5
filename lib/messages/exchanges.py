"""Exchanges compressed gradients among the workers of many trials, with error feedback; compressors
choose which entries of a gradient a worker sends.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from lib.messages import Messages, target

BAND = (2 / 3, 4 / 3)  # what Gaussian-k may send, in multiples of k
BLOCK = 2**18  # entries processed together, so that they stay in cache


# --- compressors ----------------------------------------------------------------------------------


# On a CPU, NumPy compares, counts and finds several times faster than PyTorch.


def _exceeds(x: Tensor, y: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() > y.numpy()) if x.device.type == "cpu" else x > y


def counts(chosen: Tensor) -> Tensor:
    """How many are chosen in every row of a mask [R, d]."""
    if chosen.device.type != "cpu":
        return chosen.count_nonzero(1)
    return torch.tensor([np.count_nonzero(row) for row in chosen.numpy()])


def places(chosen: Tensor) -> Tensor:
    """Flat indices at which a mask is true."""
    if chosen.device.type != "cpu":
        return chosen.flatten().nonzero()[:, 0]
    return torch.from_numpy(np.flatnonzero(chosen.numpy()))


def _mask(u: Tensor, indices: Tensor) -> Tensor:
    """A mask of u [d] that is true at these indices."""
    return torch.zeros_like(u, dtype=torch.bool).index_fill_(0, indices, True)


def _by_row(select: Callable[[Tensor, int, np.random.Generator], Tensor]):
    """Turn a compressor of one vector [d] into one of several [R, d], one after another."""
    return lambda u, k, random: torch.stack([select(row, k, random) for row in u])


def dense(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """Select everything."""
    return torch.ones_like(u, dtype=torch.bool)


@_by_row
def top_k(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """The k entries of largest magnitude, exactly.

    Several times faster than selecting from all: with the entries in groups, the k-th largest group
    maximum is at most the k-th largest entry, and hardly more than k entries reach it.
    """
    size = u.abs()
    group = max(len(u) // (4 * k), 1)
    heads = size[: len(u) // group * group].view(group, -1).amax(0)
    threshold = heads.topk(k, sorted=False).values.min()
    above = _exceeds(size, threshold)
    indices = places(above)
    if len(indices) > k:
        indices = indices[size[indices].topk(k, sorted=False).indices]
    if len(indices) < k:  # add the first ones of equal magnitude
        equal = places(~(above | _exceeds(threshold, size)))
        indices = torch.cat([indices, equal[: k - len(indices)]])
    return _mask(u, indices)


def rand_k(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """k entries drawn without replacement, anew in every row; their values are not scaled up."""
    picks = [random.choice(u.shape[1], k, replace=False, shuffle=False) for _ in u]
    indices = torch.from_numpy(np.stack(picks)).to(u.device)
    return torch.zeros_like(u, dtype=torch.bool).scatter_(1, indices, True)


def gaussian_k(u: Tensor, k: int, random: np.random.Generator, tails: int = 2) -> Tensor:
    """Entries above the threshold that k of them would exceed if u were normal with its mean and
    deviation: in two tails, as in the authors' code, or in one, as in the paper.

    Up to three passes halve the threshold if fewer than 2k/3 lie above it and raise it by half if
    more than 4k/3 do; what the last pass counted is sent, be it nothing or far too much.
    """
    size, threshold = u.abs(), _normal(u, k, tails)
    for _ in range(2):
        sent, few, many = _band(size, threshold, k)
        if not (few | many).any():
            return sent
        threshold = threshold * torch.where(few, 0.5, torch.where(many, 1.5, 1.0))
    return _exceeds(size, threshold[:, None])


def _normal(u: Tensor, k: int, tails: int = 2) -> Tensor:
    """Thresholds [R] that k entries exceed in normal vectors with u's means and deviations."""
    d, mean = u.shape[1], u.mean(1)
    variance = (torch.linalg.vector_norm(u, dim=1) ** 2 - d * mean**2) / max(d - 1, 1)
    return mean + variance.clamp(min=0).sqrt() * -ndtri(min(k / d, 1 - 1e-9) / tails)


def _band(size: Tensor, threshold: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which of magnitudes [R, d] lie above thresholds [R], and in which rows they are too few and
    too many for Gaussian-k.
    """
    sent = _exceeds(size, threshold[:, None])
    count = counts(sent)
    return sent, count < BAND[0] * k, count > BAND[1] * k


def gaussian_k_band(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """Gaussian-k that always ends in its band: bisection, from the normal threshold, until 2k/3 to
    4k/3 entries lie above.

    A row without such a threshold (because of equal magnitudes) sends as many as possible up to
    4k/3.
    """
    size = u.abs()
    low, high = torch.zeros_like(size[:, 0]), size.amax(1)
    threshold = _normal(u, k).minimum(high)
    for _ in range(60):
        _, few, many = _band(size, threshold, k)
        if not (few | many).any():
            break
        high, low = torch.where(few, threshold, high), torch.where(many, threshold, low)
        threshold = torch.where(few | many, (low + high) / 2, threshold)
    else:
        threshold = torch.where(many, high, threshold)
    return _exceeds(size, threshold[:, None])


@_by_row
def dgc_k(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """DGC's selection: the threshold is estimated from one entry in a hundred, then adapted (Lin et
    al. 2018).

    Up to ten passes lower the threshold by a fifth while fewer than 0.8 k lie above it; if more
    than 1.3 k do, exactly the k largest among them are sent; never more than k.
    """
    size = u.abs()
    sample = size[int(random.integers(min(100, len(u)))) :: 100]
    share = math.ceil(k / len(u) * len(sample))
    threshold = sample.topk(min(share, len(sample))).values[-1]
    for _ in range(10):
        above = places(~_exceeds(threshold, size))
        if len(above) >= 0.8 * k:
            break
        threshold = threshold * 0.8
    if len(above) > 1.3 * k:
        above = above[size[above].topk(k, sorted=False).indices]
    return _mask(u, above[:k])


@_by_row
def redsync(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """RedSync's bisection between mean and largest magnitude, until k to 2k entries lie above or
    the step is a fifth.
    """
    size = u.abs()
    mean, low, high = size.mean(), 0.0, 1.0
    span = size.max() - mean
    while True:
        middle = (low + high) / 2
        sent = _exceeds(size, mean + middle * span)
        count = int(counts(sent[None]))
        if k < count < 2 * k or high - low <= 0.2:
            return sent
        low, high = (low, middle) if count <= k else (middle, high)


COMPRESSORS = {
    "dense": dense,
    "top-k": top_k,
    "rand-k": rand_k,
    "gaussian-k": gaussian_k,
    "gaussian-k-paper": functools.partial(gaussian_k, tails=1),
    "gaussian-k-band": gaussian_k_band,
    "dgc-k": dgc_k,
    "redsync": redsync,
}


def compress(
    name: str,
    u: Tensor,
    density: float,
    random: np.random.Generator,
    sizes: list[int] | None = None,
) -> Tensor:
    """Which entries of u [R, d] to send, bool [R, d]; with density 1 all of them, whatever the
    compressor.

    sizes: of layers, to compress each layer's stretch of u separately, with its own k.
    """
    if sizes:
        return torch.cat(
            [compress(name, part, density, random) for part in u.split(sizes, 1)], 1
        )
    k = target(density, u.shape[1])
    choose = dense if k == u.shape[1] else COMPRESSORS[name]
    return torch.cat([choose(rows, k, random) for rows in u.split(max(BLOCK // u.shape[1], 1))])


# --- exchange -------------------------------------------------------------------------------------


def published_sum(sent: list[Tensor], chosen: list[Tensor]) -> Tensor:
    """The sum of the workers' messages [R, d] in the authors' code.

    sent: u where it is sent and 0 elsewhere, per worker [R, d].
    chosen: which entries are sent, bool, per worker [R, d].
    """
    result = torch.zeros_like(sent[0])
    workers = len(sent)
    rows = zip(result, torch.stack(sent, 1), torch.stack(chosen, 1), strict=True)
    for out, u, mask in rows:
        index = mask.nonzero()[:, 1]
        length = len(index) // workers
        pairs = (x[: length * workers].view(workers, length) for x in (index, u[mask]))
        for part, values in zip(*pairs, strict=True):
            out[part] = out[part] + values  # only one of several pairs for one entry counts
    return result


class Exchange:
    """P workers of each of T trials, in one process: compresses and averages their gradients, and
    keeps what is not sent.

    w: weights [T, d].
    kept: which of them each trial has, indices [T, d'], or None if all d.
    sizes: parameters per layer, for messages by layer.
    watch: called with the step (from 0) and worker 0's vectors u [T, d'] before compression.
    sent [T]: elements that a worker has sent so far, averaged over workers.
    """

    def __init__(
        self,
        messages: Messages,
        w: Tensor,
        kept: Tensor | None,
        sizes: list[int],
        seed: int,
        watch: Callable[[int, Tensor], None] | None = None,
    ):
        self.messages, self.kept, self.watch, self.step = messages, kept, watch, 0
        self.sizes = sizes if messages.by_layer else None
        self.random = np.random.default_rng([seed, 1])
        shape = (w if kept is None else kept).shape
        # What is kept back, [P, T, d'], or [0, T, d'] without feedback
        self.residual = w.new_zeros(messages.workers * messages.feedback, *shape)
        self.sent = torch.zeros(len(w), dtype=torch.float64)

    def gradients(
        self, executor, w: Tensor, x: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean losses [T], gradients [T, d] and who is alive [T], for w [T, d] and a batch x, y
        that is divided evenly.

        executor: its `gradients_by_worker` returns losses [P, T], gradients [P, T, d] and who is
        alive [P, T], for every worker's part of the batch.

        alive is also True if messages kept back can still move w.  If any worker's gradient is not
        finite, which a compressor might keep back forever, the gradient is NaN, so that the trial
        diverges as it would without messages.
        """
        messages, density = self.messages, self.messages.density_at(self.step)
        losses, gradients, alive = executor.gradients_by_worker(w, x, y, messages.workers)
        total = gradients.new_zeros(self.residual.shape[1:])
        sent, spoilt = [], torch.zeros_like(alive[0])
        for worker, g in enumerate(gradients):
            u = g if self.kept is None else g.gather(1, self.kept)
            if messages.feedback:
                u = self.residual[worker].add_(u)
            spoilt |= ~torch.stack(u.aminmax(dim=1)).isfinite().all(0)
            if worker == 0 and self.watch:
                self.watch(self.step, u)
            chosen = compress(messages.compressor, u, density, self.random, self.sizes)
            count = counts(chosen)
            self.sent += count.cpu() / messages.workers
            if messages.aggregation == "published":
                sent.append((torch.where(chosen, u, 0), chosen))
            if count.sum() == u.numel():  # much faster than by index
                total.add_(u)
                u.zero_()
            else:
                indices = places(chosen)
                total.view(-1).index_add_(0, indices, u.view(-1)[indices])
                u.view(-1)[indices] = 0
        self.step += 1
        g = (published_sum(*zip(*sent, strict=True)) if sent else total) / messages.workers
        g[spoilt] = torch.nan
        g = g if self.kept is None else torch.zeros_like(w).scatter_(1, self.kept, g)
        alive = torch.ones_like(alive[0]) if messages.feedback else alive.any(0)
        return losses.mean(0), g, alive

    def parts(self) -> dict:
        """Everything that the next step depends on: tensors, numbers and strings."""
        random = self.random.bit_generator.state
        state = {"step": self.step, "random": random, "sent": self.sent}
        return state | {"residual": self.residual}

    def restore(self, parts: dict) -> None:
        """Continue from these `parts`."""
        self.step, self.sent = parts["step"], parts["sent"]
        self.random.bit_generator.state = parts["random"]
        self.residual = parts["residual"].to(self.residual)

    def keep(self, rows: Tensor) -> None:
        """Continue with only the trials in `rows` (a boolean mask)."""
        self.kept = None if self.kept is None else self.kept[rows]
        self.residual = self.residual[:, rows]
        self.sent = self.sent[rows.cpu()]
