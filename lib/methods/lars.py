"""LARS (You et al. 2017): a layer's step in proportion to its weights, with and without a warm-up
of the rate.

v = momentum v + rate ||w|| / ||g|| g, layer by layer; w -= v.  Biases and gains, of one dimension,
are plain momentum, as in public code (facebookresearch/moco-v3).  The rate stands for the product
of the paper's global rate and trust coefficient; there is no weight decay.
"""

from __future__ import annotations

from lib.methods.intervals import LEE2021, Interval
from lib.methods.method import Method
from lib.methods.momentum import begin


def ratio(w, length):
    """||w|| / length [T, 1] for a layer's weights w [T, n]; 1 where either is zero.  Removed
    weights, zero, do not count.
    """
    size = w.norm(dim=1, keepdim=True)
    return (size / length).where((size > 0) & (length > 0), 1)


def advance(w, g, buffers, drawn):
    """The step of a scaled gradient g, with the rate inside the velocity as in the paper."""
    v = buffers["v"].mul_(drawn["momentum"]).addcmul_(g, drawn["learning_rate"])
    w.sub_(v)


def _step(w, g, buffers, drawn, k, layers):
    for layer in layers:
        if len(layer.shape) > 1:
            part = g[:, layer.where]
            part.mul_(ratio(w[:, layer.where], part.norm(dim=1, keepdim=True)))
    advance(w, g, buffers, drawn)


def _warming_step(w, g, buffers, drawn, k, layers):
    """The rate rises linearly from rate / warmup_steps, and stays from step warmup_steps on; 0 and
    1 are none.
    """
    warmth = (k / drawn["warmup_steps"]).clamp(max=1)
    _step(w, g, buffers, drawn | {"learning_rate": drawn["learning_rate"] * warmth}, k, layers)


# Equal to the rates of Lee et al. (2021), and so drawn from a workload's named space as those are.
SPACE = {"learning_rate": Interval(1e-4, 1.0), "momentum": LEE2021["momentum"]}
WARMUP = Interval(1.0, 1000.0)  # steps
METHOD = Method("lars", "LARS", SPACE, begin, _step)
WARMED_UP = Method(
    "lars-warmup", "LARS with warm-up", {**SPACE, "warmup_steps": WARMUP}, begin, _warming_step
)
