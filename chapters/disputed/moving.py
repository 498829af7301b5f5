"""Masks that move: any training method, with a mask among its named state, so that whatever keeps,
resumes or drops a trial does so with its mask.  A rule says at every step which weights are there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import torch
from torch import Tensor

from lib.methods.method import Method

MASK = "moving.mask"
BEGIN, END = 0.25, 0.75  # of the horizon: where density begins to fall, and where a mask rests
Rule = Callable[..., Tensor]


def moving(base: Method, rule: Rule, last: float = 1.0) -> Method:
    """The method `base` on networks whose mask moves.

    A weight that is zero at first is taken for removed.  One that is removed later becomes zero,
    and so does what the method remembers of it; one that is added begins at zero.  Gradients of
    removed weights are computed, too, so that no trial is proved dead.

    Args:
        rule(mask, w, g, drawn, k, layers): the mask [T, P] of step k (from 1), of zeros and ones.
        last: the share of weights above which a trial is validated at zero weights, which meet no
            goal.

    Raises ValueError for a method that takes gradients of its own.
    """
    if base.gradient is not None:
        raise ValueError(f"{base.name} takes gradients of its own, which is not allowed here")

    def begin(w, layers):
        return base.begin(w, layers) | {MASK: (w != 0).to(w.dtype)}

    def step(w, g, buffers, drawn, k, layers):
        mask = buffers[MASK]
        mask.copy_(rule(mask, w, g, drawn, k, layers))
        for values in (w, g, *(own for own in buffers.values() if own.shape == w.shape)):
            values.mul_(mask)
        base.step(w, g, buffers, drawn, k, layers)

    def evaluated(w, buffers):
        there = buffers[MASK].sum(1, keepdim=True)
        return w * (there <= round(last * w.shape[1]))

    return dataclasses.replace(
        base,
        begin=begin,
        step=step,
        gradient=lambda executor, w, batch, mask, buffers: executor.gradients(w, *batch),
        drift=None,
        evaluated=evaluated,
    )


def rewired(every: int, drop: float) -> Rule:
    """Every so many steps a share of each layer's weights, those of the smallest size, make room
    for as many of those that are not there and have the largest gradients (Evci et al. 2020).

    drop: the share at first; it falls to zero on half a cosine at END of the horizon.  At 0 the
    mask stays as it is.
    """

    def rule(mask, w, g, drawn, k, layers):
        if k % every:
            return mask
        done = (k / (END * drawn["horizon"])).clamp(max=1)
        share = drop * (1 + torch.cos(math.pi * done)) / 2
        places = (layer.where for layer in layers)
        return torch.cat([_swapped(mask[:, at], w[:, at], g[:, at], share) for at in places], 1)

    return rule


def _swapped(mask: Tensor, w: Tensor, g: Tensor, share: Tensor) -> Tensor:
    """The mask [T, n] of a layer after a share [T, 1] of its weights was exchanged."""
    there, count = mask > 0, mask.sum(1, keepdim=True)
    number = torch.minimum((share * count).floor(), mask.shape[1] - count)
    dropped = _rank(w.abs().where(there, math.inf)) < number
    grown = _rank(-g.abs().where(~there, -math.inf)) < number
    return (there & ~dropped | grown).to(mask.dtype)


def _rank(values: Tensor) -> Tensor:
    """The place [T, n] of every value in its row's order, from 0 for the least."""
    return values.argsort(dim=1, stable=True).argsort(dim=1)


def density(done: Tensor, first: float, last: float) -> Tensor:
    """The share of weights that are there when this part of the horizon is over: `first` up to
    BEGIN, then falling as a cube, `last` from END on.
    """
    gone = ((done - BEGIN) / (END - BEGIN)).clamp(0, 1)
    return last + (first - last) * (1 - gone) ** 3


def average(steps: float, horizon: float, every: int, first: float, last: float) -> float:
    """The mean `density` over so many steps, of a mask that changes every so many."""
    changes = torch.arange(1, int(steps) + 1).double() // every * every
    return float(density(changes / horizon, first, last).mean())


def thinned(every: int, first: float, last: float) -> Rule:
    """Every so many steps the smallest of all weights are removed, until the share is left that
    `density` allows.
    """

    def rule(mask, w, g, drawn, k, layers):
        if k % every:
            return mask
        kept = (mask.shape[1] * density(k / drawn["horizon"], first, last)).round()
        return mask * (_rank(-w.abs().where(mask > 0, -math.inf)) < kept)

    return rule
