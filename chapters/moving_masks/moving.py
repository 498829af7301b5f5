"""Masks that move: any training method, with a mask among its named state.

`moving` adds the mask to the method's buffers, so that whatever keeps, resumes or drops a trial does
so with its mask.  A rule says at every step which weights are there: `rewired` or `thinned`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import torch
from torch import Tensor

from lib.methods.method import Layer, Method

MASK, THERE = "moving.mask", "moving.there"
BEGIN, END = 0.25, 0.75  # of the horizon: where density begins to fall, and where a mask rests
Rule = Callable[..., tuple[Tensor, Tensor]]


def moving(base: Method, rule: Rule) -> Method:
    """The method `base` on networks whose mask moves.

    A weight that is zero at first is taken for removed.  One that is removed later becomes zero, and
    so does what the method remembers of it; one that is added begins at zero.  Gradients of removed
    weights are computed, too, so that no trial is proved dead.  Until its mask is what it is to be,
    a trial is validated at zero weights, which meet no goal.

    Args:
        rule(mask, w, g, drawn, k, layers): the mask [T, P] of step k (from 1), of zeros and ones,
            and whether it may be validated from then on [T, 1].

    Raises ValueError for a method that takes gradients of its own.
    """
    if base.gradient is not None:
        raise ValueError(f"{base.name} takes gradients of its own, which is not allowed here")

    def begin(w, layers):
        mask = (w != 0).to(w.dtype)
        return base.begin(w, layers) | {MASK: mask, THERE: w.new_zeros(len(w), 1)}

    def step(w, g, buffers, drawn, k, layers):
        mask, there = rule(buffers[MASK], w, g, drawn, k, layers)
        buffers[MASK].copy_(mask)
        buffers[THERE].copy_(there)
        for values in (w, g, *(own for own in buffers.values() if own.shape == w.shape)):
            values.mul_(buffers[MASK])
        base.step(w, g, buffers, drawn, k, layers)

    return dataclasses.replace(
        base,
        begin=begin,
        step=step,
        gradient=lambda executor, w, batch, mask, buffers: executor.gradients(w, *batch),
        drift=None,
        evaluated=lambda w, buffers: w * buffers[THERE],
    )


def rewired(every: int, drop: float) -> Rule:
    """Every so many steps a share of each layer's weights, those of the smallest size, make room
    for as many of those that are not there and have the largest gradients (Evci et al. 2020).

    drop: the share at first; it falls to zero on half a cosine at END of the horizon.  At 0 the
    mask stays as it is.
    """

    def rule(mask, w, g, drawn, k, layers):
        if k % every == 0:
            done = (k / (END * drawn["horizon"])).clamp(max=1)
            share = drop * (1 + torch.cos(math.pi * done)) / 2
            parts = [(mask[:, own], w[:, own], g[:, own]) for own in _places(layers)]
            mask = torch.cat([_swapped(*part, share) for part in parts], 1)
        return mask, torch.ones_like(drawn["horizon"])

    return rule


def _places(layers: tuple[Layer, ...]) -> list[slice]:
    return [layer.where for layer in layers]


def _swapped(mask: Tensor, w: Tensor, g: Tensor, share: Tensor) -> Tensor:
    """The mask [T, n] of a layer after a share [T, 1] of its weights was exchanged."""
    there, count = mask > 0, mask.sum(1, keepdim=True)
    number = torch.minimum((share * count).floor(), mask.shape[1] - count)
    dropped = _rank(w.abs().where(there, math.inf)) < number
    grown = _rank(-g.abs().where(~there, -math.inf)) < number
    return (there & ~dropped | grown).to(mask.dtype)


def _rank(values: Tensor) -> Tensor:
    """The place [T, n] of every value in its row's order, from 0 for the least."""
    order = values.argsort(dim=1, stable=True)
    places = torch.arange(values.shape[1], device=values.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def density(done: Tensor | float, first: float, last: float):
    """The share of weights that are there when this part of the horizon is over: `first` up to
    BEGIN, then falling as a cube, `last` from END on.
    """
    gone = (done - BEGIN) / (END - BEGIN)
    gone = gone.clamp(0, 1) if isinstance(gone, Tensor) else min(max(gone, 0.0), 1.0)
    return last + (first - last) * (1 - gone) ** 3


def thinned(every: int, first: float, last: float) -> Rule:
    """Every so many steps the smallest of all weights are removed, until the share is left that
    `density` allows; a trial is validated once the last share is reached.
    """

    def rule(mask, w, g, drawn, k, layers):
        done = k / drawn["horizon"]
        kept = (mask.shape[1] * density(done, first, last)).round()
        if k % every == 0:
            size = w.abs().where(mask > 0, -math.inf)
            mask = mask * (_rank(-size) < kept)
        least = round(mask.shape[1] * last)
        return mask, (mask.sum(1, keepdim=True) <= least).to(w.dtype)

    return rule
