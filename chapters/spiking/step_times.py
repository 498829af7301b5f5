"""How long a gradient of a spiking network takes beside one of rectifiers."""

from __future__ import annotations

import functools

import pandas as pd
import torch

from chapters.spiking import neurons
from chapters.spiking.searches import BATCH_SIZES, LONGER, TIME
from lib.engine import batched, flattening
from lib.fields import spec
from lib.probes import timings
from lib.workloads import datasets, models

NETWORKS = (0, TIME, LONGER)


@spec
class SpikingTimes:
    """Times of one MLP's gradient on one core, at every batch size of the searches.

    Raises ValueError naming the field, its value and what is allowed.
    """

    repeats: timings.REPEATS = 9

    def definition(self) -> dict:
        return {"networks": NETWORKS, "batch_sizes": BATCH_SIZES}

    def measure(self) -> pd.DataFrame:
        """time (steps of the neurons, 0: rectifiers), batch_size, seconds (median), low, high."""
        data, rows = datasets.load("digits", 1).train, []
        modules = [models.initialise(neurons.network(time), 0) for time in NETWORKS]
        for size in BATCH_SIZES:
            batch = data.x[:size], data.y[:size]
            calls = [_gradient(module, *batch) for module in modules]
            # In turns, so that other work on the machine slows all networks alike
            for time, told in zip(NETWORKS, timings.alternately(calls, self.repeats), strict=True):
                rows.append({"time": time, "batch_size": size, **told})
        return pd.DataFrame(rows)


def _gradient(module: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> functools.partial:
    w = flattening.flatten(module)[None]
    return functools.partial(batched.BatchedExecutor(module).gradients, w, x, y)
