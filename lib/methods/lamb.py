"""LAMB (You et al. 2020): Adam's direction u, scaled to a layer's weights: w -= rate ||w|| / ||u||
u, without weight decay.

Every tensor is scaled, biases too, and epsilon is Adam's, as in public code
(mlcommons/algorithmic-efficiency), whence the space.
"""

from __future__ import annotations

from lib.methods import adam, lars
from lib.methods.intervals import Interval
from lib.methods.method import Method


def _step(w, g, buffers, drawn, k, layers):
    rate, beta1 = (drawn[name] for name in SPACE)
    u = adam.change(g, buffers, 1, beta1, adam.fixed(beta1), k)
    for layer in layers:
        part = u[:, layer.where]
        part.mul_(lars.ratio(w[:, layer.where], part.norm(dim=1, keepdim=True)))
    w.addcmul_(u, rate, value=-1)


SPACE = {"learning_rate": Interval(1e-4, 0.1), "beta1": Interval(1 - 0.3, 1 - 0.05, "reverse-log")}
METHOD = Method("lamb", "LAMB", SPACE, adam.begin, _step)
