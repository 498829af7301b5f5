"""Late gradients, as of workers that do not wait for each other: any method, its gradients taken at
weights some steps old.

w_{t+1} = w_t - u(g(w_{t - tau})), with tau = s at every step, or drawn for every step from 0 ... s
(after the simulation of Dai et al. 2018, whose workers each keep weights of their own; here all
share them).  The first weights stand in for older ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from lib.methods.method import Method

DELAYS = ("fixed", "uniform")
MOST = 256  # steps, each of which keeps a copy of the weights
COUNT = "late.steps"


def delay(staleness: int, delays: str, seed: int, step: int) -> int:
    """tau of this step (from 0), the same for all trials of a search: `staleness`, or uniform on 0
    ... staleness.
    """
    if delays == "fixed":
        return staleness
    return int(np.random.default_rng((seed, step)).integers(staleness + 1))


def late(base: Method, staleness: int, delays: str = "fixed", seed: int = 0) -> Method:
    """The method `base` with gradients of weights that are up to `staleness` steps old; seed: of
    delays that are drawn.

    The copies of the weights are buffers: a ring of staleness + 1.  A gradient that is zero at old
    weights says nothing of those to come, so that no trial is proved dead.  base: one that takes
    its gradients at the weights.
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
