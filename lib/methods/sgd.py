"""Stochastic gradient descent: w -= rate g."""

from __future__ import annotations

from lib.methods.intervals import LEE2021
from lib.methods.method import Method


def _begin(w, layers):
    return {}


def _step(w, g, buffers, drawn, k, layers):
    w.addcmul_(g, drawn["learning_rate"], value=-1)


def _drift(buffers, drawn):
    return 0 * drawn["learning_rate"]


METHOD = Method(
    "sgd", "SGD", {"learning_rate": LEE2021["learning_rate"]}, _begin, _step, drift=_drift
)
