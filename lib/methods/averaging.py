"""Averages of the weights: any method, judged by an exponential average of its iterates (Zhang et
al. 2019).

average = decay average + (1 - decay) w after every step, decay = 2^(-1 / half_life), from the first
weights on.
"""

from __future__ import annotations

import dataclasses

from lib.methods import momentum
from lib.methods.intervals import Interval
from lib.methods.method import Method

HALF_LIFE = Interval(1.0, 1000.0)  # steps; at 0 the average is the last iterate


def averaged(base: Method, name: str, title: str) -> Method:
    """The method `base`, validated at the average.  None of its trials is dropped as dead: the
    average goes on moving.
    """

    def begin(w, layers):
        return base.begin(w, layers) | {"average": w.clone()}

    def step(w, g, buffers, drawn, k, layers):
        base.step(w, g, buffers, drawn, k, layers)
        buffers["average"].lerp_(w, 1 - 2 ** -(1 / drawn["averaging_half_life"]))

    return dataclasses.replace(
        base,
        name=name,
        title=title,
        space={**base.space, "averaging_half_life": HALF_LIFE},
        begin=begin,
        step=step,
        drift=None,
        evaluated=lambda w, buffers: buffers["average"],
    )


METHOD = averaged(momentum.METHOD, "momentum-ema", "averaged momentum")
