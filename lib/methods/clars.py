"""CLARS (Huo et al. 2020): LARS in which the mean over the batch of examples' own gradient norms
stands for ||g||.

v = momentum v + rate ||w|| / (mean of ||grad f_i||) g, layer by layer; w -= v.  At batch size 1 it
is LARS. No public code was found to compare it with.
"""

from __future__ import annotations

from lib.methods import lars, momentum
from lib.methods.method import Method


def _begin(w, layers):
    """Velocities, and of every parameter tensor the mean norm of the last batch's examples."""
    return momentum.begin(w, layers) | {"norms": w.new_zeros(len(w), len(layers))}


def _gradient(executor, w, batch, mask, buffers):
    losses, g, alive, norms = executor.gradients_with_norms(w, *batch, mask)
    buffers["norms"].copy_(norms)
    return losses, g, alive


def _step(w, g, buffers, drawn, k, layers):
    for n, layer in enumerate(layers):
        if len(layer.shape) > 1:
            g[:, layer.where].mul_(lars.ratio(w[:, layer.where], buffers["norms"][:, n : n + 1]))
    lars.advance(w, g, buffers, drawn)


METHOD = Method("clars", "CLARS", lars.SPACE, _begin, _step, _gradient)
