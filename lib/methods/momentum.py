"""SGD with momentum: v = momentum v + g; w -= rate v (Lee et al. 2021, Shallue et al. 2019;
TensorFlow's and PyTorch's form).
"""

from __future__ import annotations

from lib.methods.intervals import LEE2021
from lib.methods.method import Method


def begin(w, layers):
    """Velocities, zero at first."""
    return {"v": w.new_zeros(w.shape)}


def _step(w, g, buffers, drawn, k, layers):
    import torch  # slow to import, and reading records does without

    v = torch.addcmul(g, buffers["v"], drawn["momentum"], out=buffers["v"])
    w.addcmul_(v, drawn["learning_rate"], value=-1)


def _drift(buffers, drawn):
    """v only shrinks by its factor: a straight line walked in one direction."""
    ahead = drawn["momentum"] / (1 - drawn["momentum"])
    return -drawn["learning_rate"] * ahead * buffers["v"]


SPACE = {name: LEE2021[name] for name in ("learning_rate", "momentum")}
METHOD = Method("momentum", "momentum", SPACE, begin, _step, drift=_drift)
