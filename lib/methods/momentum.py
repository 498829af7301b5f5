"""Stochastic gradient descent, plain, with momentum (Lee et al. 2021, Shallue et al. 2019; in the
form of TensorFlow and PyTorch), and with averaged weights (Zhang et al. 2019).

SGD         w -= rate g
momentum    v = momentum v + g; w -= rate v
Nesterov    v = momentum v + g; w -= rate (g + momentum v)
averaged    average = decay average + (1 - decay) w after every step, decay = 2^(-1 / half_life),
            starting from the initial weights
"""

from __future__ import annotations

import dataclasses

from lib.methods.intervals import LEE2021, Interval
from lib.methods.method import Method


def plain_step(w, g, buffers, drawn, k, layers):
    """w -= rate g."""
    w.addcmul_(g, drawn["learning_rate"], value=-1)


def begin(w, layers):
    """Velocities, initially zero."""
    return {"v": w.new_zeros(w.shape)}


def _velocity(g, buffers, drawn):
    import torch  # slow to import, and not needed to read records

    return torch.addcmul(g, buffers["v"], drawn["momentum"], out=buffers["v"])


def _step(w, g, buffers, drawn, k, layers):
    w.addcmul_(_velocity(g, buffers, drawn), drawn["learning_rate"], value=-1)


def _nesterov_step(w, g, buffers, drawn, k, layers):
    v = _velocity(g, buffers, drawn)
    w.addcmul_(g.addcmul(v, drawn["momentum"]), drawn["learning_rate"], value=-1)


def _drift(buffers, drawn):
    """v only shrinks, so all later steps go in one direction: the sum of a geometric series."""
    ahead = drawn["momentum"] / (1 - drawn["momentum"])
    return -drawn["learning_rate"] * ahead * buffers["v"]


def _nesterov_drift(buffers, drawn):
    """As `_drift`, times one more factor of momentum."""
    ahead = drawn["momentum"] / (1 - drawn["momentum"]) * drawn["momentum"]
    return -drawn["learning_rate"] * ahead * buffers["v"]


SPACE = {name: LEE2021[name] for name in ("learning_rate", "momentum")}
RATE = {"learning_rate": LEE2021["learning_rate"]}
SGD = Method(
    "sgd",
    "SGD",
    RATE,
    begin=lambda w, layers: {},
    step=plain_step,
    drift=lambda buffers, drawn: 0 * drawn["learning_rate"],
)
METHOD = Method("momentum", "momentum", SPACE, begin, _step, drift=_drift)
NESTEROV = Method("nesterov", "Nesterov", SPACE, begin, _nesterov_step, drift=_nesterov_drift)

HALF_LIFE = Interval(1.0, 1000.0)  # in steps; towards 0 the average becomes the last iterate


def _averaging_step(w, g, buffers, drawn, k, layers):
    _step(w, g, buffers, drawn, k, layers)
    buffers["average"].lerp_(w, 1 - 2 ** -(1 / drawn["averaging_half_life"]))


# No trial is dropped as dead, since the average keeps moving
AVERAGED = dataclasses.replace(
    METHOD,
    name="momentum-ema",
    title="averaged momentum",
    space={**SPACE, "averaging_half_life": HALF_LIFE},
    begin=lambda w, layers: begin(w, layers) | {"average": w.clone()},
    step=_averaging_step,
    drift=None,
    evaluated=lambda w, buffers: buffers["average"],
)
