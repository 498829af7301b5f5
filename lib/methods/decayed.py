"""Decoupled weight decay (Loshchilov and Hutter 2019): any method, its weights drawn to zero by a
share of themselves at every step.

w becomes (1 - rate decay) w before the method's own step, which takes its gradients at the weights
before that, as `torch.optim.AdamW` does.  All weights decay, biases and gains too, by the learning
rate of the method, whatever part of it a layer has.
"""

from __future__ import annotations

import dataclasses

from lib import require
from lib.methods.intervals import Interval
from lib.methods.method import Method

SUFFIX = "+decay"  # of the names of such methods
WEIGHT_DECAY = Interval(1e-3, 10.0)


def decayed(base: Method) -> Method:
    """The method `base` with decoupled weight decay, which is tuned besides.

    Without gradients weights still move, so that no trial is proved dead.  Raises ValueError for a
    method that decays already, and for a class of torch.optim, which has a decay of its own.
    """
    allowed = f"a method of the book's without {SUFFIX}"
    fine = base.optimiser is None and "weight_decay" not in base.space
    require(fine, "method", base.name, allowed)

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
