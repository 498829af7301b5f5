"""Nesterov momentum: v = momentum v + g; w -= rate (g + momentum v) (TensorFlow's and PyTorch's
form).
"""

from __future__ import annotations

from lib.methods.method import Method
from lib.methods.momentum import SPACE, begin


def _step(w, g, buffers, drawn, k, layers):
    import torch  # slow to import, and reading records does without

    v = torch.addcmul(g, buffers["v"], drawn["momentum"], out=buffers["v"])
    w.addcmul_(g.addcmul(v, drawn["momentum"]), drawn["learning_rate"], value=-1)


def _drift(buffers, drawn):
    """As with momentum, a factor behind."""
    ahead = drawn["momentum"] / (1 - drawn["momentum"]) * drawn["momentum"]
    return -drawn["learning_rate"] * ahead * buffers["v"]


METHOD = Method("nesterov", "Nesterov", SPACE, begin, _step, drift=_drift)
