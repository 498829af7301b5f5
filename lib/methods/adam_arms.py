"""Adam with beta2 held: at 0.999, or at a half-life counted in examples, beta2 = 2^(-B / half-life)
(Marek et al. 2025).
"""

from __future__ import annotations

from lib.methods import adam
from lib.methods.intervals import Interval
from lib.methods.method import Method

BETA2 = 0.999  # of Kingma and Ba (2015)
SHARED = {name: adam.SPACE[name] for name in ("learning_rate", "beta1")}
HALF_LIFE = Interval(100.0, 1e5)  # examples; as many decades as Adam's own 1 - beta2 has


def _fixed(drawn):
    return drawn | {"beta2": drawn["beta1"].new_full((), BETA2).expand_as(drawn["beta1"])}


def _lasting(drawn):
    """So that of an average of squares half is left after so many examples, whatever the batch
    size.
    """
    return drawn | {"beta2": 2 ** -(drawn["batch_size"] / drawn["half_life"])}


def _arm(name, title, space, complete):
    """Adam in which complete(drawn) says what beta2 is."""

    def step(w, g, buffers, drawn, k, layers):
        adam.step(w, g, buffers, complete(drawn), k, layers)

    def drift(buffers, drawn):
        return adam.drift(buffers, complete(drawn))

    return Method(name, title, space, adam.begin, step, drift=drift)


FIXED = _arm("adam-fixed", "Adam, β₂ = 0.999", SHARED, _fixed)
LASTING = _arm(
    "adam-half-life", "Adam, half-life in examples", {**SHARED, "half_life": HALF_LIFE}, _lasting
)
