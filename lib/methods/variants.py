"""Variants of any method: with weight decay, or with late gradients.

Decoupled weight decay (Loshchilov and Hutter 2019): w becomes (1 - rate decay) w before the
method's step, whose gradients were computed before the decay, as in `torch.optim.AdamW`.  All
weights decay, also biases and gains, by the method's learning rate, even where a layer's rate is
only a fraction of it.

Late gradients, as from workers that do not wait for each other: w_{t+1} = w_t - u(g(w_{t - tau})),
with tau = s at every step, or drawn for every step from 0 ... s (after the simulation of Dai et al.
2018, where each worker keeps separate weights; here all share them).  Before step tau, the initial
weights stand in for older ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from lib import require
from lib.methods.intervals import Interval
from lib.methods.method import Method

SUFFIX = "+decay"  # of the names of methods with weight decay
WEIGHT_DECAY = Interval(1e-3, 10.0)
DELAYS = ("fixed", "uniform")
MOST = 256  # steps of a delay, each of which keeps a copy of the weights
COUNT = "late.steps"


def decayed(base: Method) -> Method:
    """The method `base` with decoupled weight decay, which is tuned, too.

    Weights move even without gradients, so no trial is proved dead.  Raises ValueError for a method
    that already decays weights, and for a class of torch.optim, which has its own weight decay.
    """
    fine = base.optimiser is None and "weight_decay" not in base.space
    require(fine, "method", base.name, f"a method of the book, without {SUFFIX}")

    def step(w, g, buffers, drawn, k, layers):
        w.mul_(1 - drawn["learning_rate"] * drawn["weight_decay"])
        base.step(w, g, buffers, drawn, k, layers)

    return dataclasses.replace(
        base,
        name=base.name + SUFFIX,
        title=f"{base.title} with weight decay",
        space={**base.space, "weight_decay": WEIGHT_DECAY},
        step=step,
        drift=None,
    )


def delay(staleness: int, delays: str, seed: int, step: int) -> int:
    """tau in this step (from 0), the same for all trials of a search: `staleness`, or uniform on
    0 ... staleness.
    """
    if delays == "fixed":
        return staleness
    return int(np.random.default_rng((seed, step)).integers(staleness + 1))


def late(base: Method, staleness: int, delays: str = "fixed", seed: int = 0) -> Method:
    """The method `base` with gradients at weights up to `staleness` steps old; seed: of random
    delays.

    The copies of the weights are buffers: a ring of staleness + 1.  A zero gradient at old weights
    says nothing about later ones, so no trial is proved dead.  base: a method that takes its
    gradients at the current weights.
    """
    copies = [f"late.{place}" for place in range(staleness + 1)]

    def begin(w, layers):
        count = w.new_zeros(len(w)).long()
        return base.begin(w, layers) | {name: w.clone() for name in copies} | {COUNT: count}

    def gradient(executor, w, batch, mask, buffers):
        step = int(buffers[COUNT][0])
        buffers[copies[step % len(copies)]].copy_(w)
        old = step - min(delay(staleness, delays, seed, step), step)
        buffers[COUNT] += 1
        return executor.gradients(buffers[copies[old % len(copies)]], *batch, mask)

    return dataclasses.replace(base, begin=begin, gradient=gradient, drift=None)
