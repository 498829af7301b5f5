"""Sparse messages: which entries of its gradient a worker sends, what it keeps back, and how the messages are averaged.

Top-k, Rand-k and Gaussian-k as in Shi et al. (2019), DGC-k of Lin et al. (2018), RedSync of Fang et al. (2018).  A
compressor takes vectors u [R, d], a row a worker's, and says which entries of each are sent: bool [R, d].
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from lib.messages import Messages, target
from lib.stacks import Loop, Stack

BAND = (2 / 3, 4 / 3)  # how many times k Gaussian-k may send
BLOCK = 2**18  # entries looked at together, so that they stay in the cache


# --- compressors ------------------------------------------------------------------------------------------------------


# NumPy compares, counts and finds several times faster than PyTorch does on a processor.


def _exceeds(x: Tensor, y: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() > y.numpy()) if x.device.type == "cpu" else x > y


def _counts(chosen: Tensor) -> Tensor:
    """How many are chosen in every row of a mask [R, d]."""
    if chosen.device.type != "cpu":
        return chosen.count_nonzero(1)
    return torch.tensor([np.count_nonzero(row) for row in chosen.numpy()])


def _true(chosen: Tensor) -> Tensor:
    """Places among all its entries at which a mask is true."""
    return (
        torch.from_numpy(np.flatnonzero(chosen.numpy()))
        if chosen.device.type == "cpu"
        else chosen.flatten().nonzero()[:, 0]
    )


def _by_row(select: Callable[[Tensor, int, np.random.Generator], Tensor]):
    def rows(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
        return torch.stack([select(row, k, random) for row in u])

    rows.__doc__ = select.__doc__
    return rows


def dense(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """Everything."""
    return torch.ones_like(u, dtype=torch.bool)


@_by_row
def top_k(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """The k entries of largest magnitude, exactly.

    Several times faster than a selection from all: with the entries in groups, the k-th largest of the groups' maxima
    is at most the k-th largest entry, and hardly more than k entries reach it.
    """
    size = u.abs()
    group = max(len(u) // (4 * k), 1)
    heads = size[: len(u) // group * group].view(group, -1).amax(0)
    least = heads.topk(k, sorted=False).values.min()
    above = _exceeds(size, least)
    sent = _true(above)
    if len(sent) > k:
        sent = sent[size[sent].topk(k, sorted=False).indices]
    if len(sent) < k:  # of equal magnitudes, the first ones
        sent = torch.cat([sent, _true(~(above | _exceeds(least, size)))[: k - len(sent)]])
    return torch.zeros_like(u, dtype=torch.bool).index_fill_(0, sent, True)


def rand_k(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """k entries drawn without replacement, in every row others; their values are not scaled up."""
    picks = [random.choice(u.shape[1], k, replace=False, shuffle=False) for _ in u]
    return torch.zeros_like(u, dtype=torch.bool).scatter_(1, torch.from_numpy(np.stack(picks)).to(u.device), True)


def gaussian_k(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """Above the threshold that a normal distribution with u's mean and deviation puts at k, as in the authors' code.

    Two-sided.  Up to three passes halve the threshold where fewer than 2k/3 lie above it and raise it by half where
    more than 4k/3 do; what is sent is what the last pass counted, be it nothing or far too much.
    """
    return _passes(u, k, _normal(u, k, tails=2))


def gaussian_k_paper(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """Gaussian-k with the threshold as the paper writes it, from one tail of the distribution."""
    return _passes(u, k, _normal(u, k, tails=1))


def _normal(u: Tensor, k: int, tails: int) -> Tensor:
    """Thresholds [R] above which normal vectors with u's means and deviations have k entries."""
    d, mean = u.shape[1], u.mean(1)
    variance = (torch.linalg.vector_norm(u, dim=1) ** 2 - d * mean**2) / max(d - 1, 1)
    return mean + variance.clamp(min=0).sqrt() * -ndtri(min(k / d, 1 - 1e-9) / tails)


def _passes(u: Tensor, k: int, threshold: Tensor) -> Tensor:
    size = u.abs()
    for again in (True, True, False):
        sent = _exceeds(size, threshold[:, None])
        count = _counts(sent)
        few, many = count < BAND[0] * k, count > BAND[1] * k
        if not again or not (few | many).any():
            return sent
        threshold = torch.where(few, threshold / 2, torch.where(many, threshold * 1.5, threshold))


def gaussian_k_band(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """Gaussian-k that ends on its band: bisection, from the normal threshold, until 2k/3 to 4k/3 entries lie above.

    A row that has no threshold with so many above it (equal magnitudes) sends the most that is at most 4k/3.
    """
    size = u.abs()
    low, high = torch.zeros_like(size[:, 0]), size.amax(1)
    threshold = _normal(u, k, tails=2).minimum(high)
    for _ in range(60):
        count = _counts(_exceeds(size, threshold[:, None]))
        few, many = count < BAND[0] * k, count > BAND[1] * k
        if not (few | many).any():
            break
        high, low = torch.where(few, threshold, high), torch.where(many, threshold, low)
        threshold = torch.where(few | many, (low + high) / 2, threshold)
    else:
        threshold = torch.where(many, high, threshold)
    return _exceeds(size, threshold[:, None])


@_by_row
def dgc_k(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """DGC's selection: the threshold is read off one entry in a hundred, then adapted (Lin et al. 2018).

    Up to ten passes lower the threshold by a fifth while fewer than 0.8 k lie above it; where more than 1.3 k do, the
    exact k largest among them are sent; never more than k.
    """
    size = u.abs()
    sample = size[int(random.integers(min(100, len(u)))) :: 100]
    threshold = sample.topk(min(math.ceil(k / len(u) * len(sample)), len(sample))).values[-1]
    for _ in range(10):
        above = _true(~_exceeds(threshold, size))
        if len(above) >= 0.8 * k:
            break
        threshold = threshold * 0.8
    if len(above) > 1.3 * k:
        above = above[size[above].topk(k, sorted=False).indices]
    return torch.zeros_like(u, dtype=torch.bool).index_fill_(0, above[:k], True)


@_by_row
def redsync(u: Tensor, k: int, random: np.random.Generator) -> Tensor:
    """RedSync's bisection between mean and largest magnitude, until k to 2k entries lie above or the step is a fifth."""
    size = u.abs()
    mean, span, low, high = size.mean(), size.max() - size.mean(), 0.0, 1.0
    while True:
        middle = (low + high) / 2
        sent = _exceeds(size, mean + middle * span)
        count = int(_counts(sent[None]))
        if k < count < 2 * k or high - low <= 0.2:
            return sent
        low, high = (low, middle) if count <= k else (middle, high)


COMPRESSORS = {
    "dense": dense,
    "top-k": top_k,
    "rand-k": rand_k,
    "gaussian-k": gaussian_k,
    "gaussian-k-paper": gaussian_k_paper,
    "gaussian-k-band": gaussian_k_band,
    "dgc-k": dgc_k,
    "redsync": redsync,
}


def compress(
    name: str, u: Tensor, density: float, random: np.random.Generator, sizes: list[int] | None = None
) -> Tensor:
    """Which entries of u [R, d] to send, bool [R, d]; at density 1 all of them, whatever the compressor.

    sizes: of the layers, for stretches of u that are treated each by itself and with its own k.
    """
    if sizes:
        return torch.cat([compress(name, part, density, random) for part in u.split(sizes, 1)], 1)
    k = target(density, u.shape[1])
    choose = dense if k == u.shape[1] else COMPRESSORS[name]
    return torch.cat([choose(rows, k, random) for rows in u.split(max(BLOCK // u.shape[1], 1))])


# --- what workers send each other -------------------------------------------------------------------------------------


def published_sum(sent: list[Tensor], chosen: list[Tensor]) -> Tensor:
    """What the authors' code makes of the workers' messages [R, d].

    sent: u where it is sent and 0 elsewhere, per worker [R, d]; chosen: which entries are sent, bool [R, d].
    """
    result = torch.zeros_like(sent[0])
    for row, out in enumerate(result):
        index = torch.cat([c[row].nonzero()[:, 0] for c in chosen])
        value = torch.cat([s[row][c[row]] for s, c in zip(sent, chosen, strict=True)])
        part = len(index) // len(sent)
        for p in range(len(sent)):
            own = slice(p * part, (p + 1) * part)
            out[index[own]] = out[index[own]] + value[own]  # of several pairs for one entry, one counts
    return result


class Exchange:
    """P workers of T trials at once, in one process: their gradients, compressed, averaged, with what they keep back.

    kept: which weights each trial has, indices [T, d'], or None if all d.  sizes: parameters per layer, for messages by
    layer.  sent [T]: elements that a worker has sent so far, on average over workers.  watch: called with the step
    (from 0) and worker 0's vectors u [T, d'] before they are compressed.
    """

    def __init__(self, messages: Messages, trials: int, d: int, kept: Tensor | None, sizes: list[int], seed: int,
                 watch: Callable[[int, Tensor], None] | None = None):  # fmt: skip
        self.messages, self.kept, self.watch, self.step = messages, kept, watch, 0
        self.d, self.sizes = d if kept is None else kept.shape[1], sizes
        self.random = np.random.default_rng([seed, 1])
        self.residual: Tensor | None = None  # [P, T, d'], from the first gradient on, if there is feedback
        self.sent = torch.zeros(trials, dtype=torch.float64)

    def gradients(self, executor: Loop | Stack, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `Loop.gradients`, on a batch shared out evenly; alive is True where messages kept back can still move w."""
        own = self.messages
        density, sizes = own.density_at(self.step), self.sizes if own.by_layer else None
        losses, gradients, alive = executor.shares(w, x, y, own.workers)
        total, messages = gradients.new_zeros(len(w), self.d), []
        for p, g in enumerate(gradients):
            u = g if self.kept is None else g.gather(1, self.kept)
            if own.feedback:
                u = self.tensors(w)["residual"][p].add_(u)
            if p == 0 and self.watch:
                self.watch(self.step, u)
            chosen = compress(own.compressor, u, density, self.random, sizes)
            if own.aggregation == "published":
                messages.append((torch.where(chosen, u, 0), chosen))
            counts = _counts(chosen)
            self.sent += counts.cpu() / own.workers
            if counts.sum() == u.numel():
                total.add_(u)
                u.zero_()
            else:
                at = _true(chosen)
                total.view(-1).index_add_(0, at, u.view(-1)[at])
                u.view(-1)[at] = 0
        self.step += 1
        g = (published_sum(*zip(*messages, strict=True)) if messages else total) / own.workers
        g = g if self.kept is None else torch.zeros_like(w).scatter_(1, self.kept, g)
        alive = torch.ones_like(alive[0]) if own.feedback else alive.any(0)
        return losses.mean(0), g, alive

    def tensors(self, w: Tensor) -> dict[str, Tensor]:
        """What it has counted and kept back, to be saved, or to be overwritten with what was; w: weights [T, d]."""
        if not self.messages.feedback:
            return {"sent": self.sent}
        if self.residual is None:
            self.residual = w.new_zeros(self.messages.workers, len(w), self.d)
        return {"sent": self.sent, "residual": self.residual}

    def numbers(self) -> dict:
        """What else the next step depends on, for JSON."""
        return {"step": self.step, "random": self.random.bit_generator.state}

    def restored(self, rows: Tensor, numbers: dict) -> Exchange:
        """One that goes on from these `numbers` with the trials in `rows` (a boolean mask); its `tensors` are still new.

        Raises ValueError, TypeError or KeyError for what `numbers` cannot have given.
        """
        other = copy.copy(self)
        other.step, other.random = numbers["step"], np.random.default_rng()
        other.random.bit_generator.state = numbers["random"]
        other.keep(rows)
        return other

    def keep(self, rows: Tensor) -> None:
        """Go on with the trials in `rows` (a boolean mask) alone."""
        self.kept = None if self.kept is None else self.kept[rows]
        self.residual = None if self.residual is None else self.residual[:, rows]
        self.sent = self.sent[rows.cpu()]
