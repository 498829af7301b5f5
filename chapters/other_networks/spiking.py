"""Searches of spiking and of ReLU networks on the digits, and times of their gradients."""

from __future__ import annotations

import functools
import itertools
from typing import Literal

import pandas as pd

from lib.fields import PART, Count, Whole, spec
from lib.measuring.experiment import Collection
from lib.probes import timings

EXAMPLES = 1350  # in the training set
GOALS = (0.04, 0.08)  # validation errors, the harder first
TIME, LONGER = 8, 25
BATCH_SIZES, FEW, MORE, CNN_SIZES = (4, 16, 64, 256, 1024), (16, 256), (64,), (4, 64, 256)
JUDGED = {"mlp": GOALS[0], "cnn": GOALS[1]}
REPLICATES = (2, 3, 4, 5, 6)  # the pilot used the draws of replicate 1


@spec
class Search:
    """Trials of momentum in lock step, until one meets the harder goal.

    time: steps of spiking neurons per example; 0: rectifiers.  sparsity: share of the parameters
    that connection sensitivity removes at the start.  replicate: sets the draws, seeds, and the
    order and split of the digits.
    """

    time: Whole(0, 1000)
    batch_size: Count(EXAMPLES)
    sparsity: PART = 0.0
    replicate: Whole(0, 9999) = 1
    trials: Count(4096) = 32
    max_steps: Count(10**6) = 2000
    model: Literal["mlp", "cnn"] = "mlp"

    def definition(self) -> dict:
        return {"dataset": "digits", "goals": GOALS}

    def measure(self) -> pd.DataFrame:
        """A row per goal: the columns of `winners`, and the winner's `neurons.activity`."""
        from chapters.other_networks import neurons
        from lib.measuring import rerun
        from lib.workloads import datasets

        digits = datasets.load("digits", self.replicate)
        search = rerun.MomentumSearch(
            network=lambda: neurons.network(self.time, self.model),
            training=digits.train,
            validation=digits.validation,
            goals=GOALS,
            search=self,
            # Even if no unit in the last layer fires, surrogate gradients pass its spikes
            drop_dead=not self.time,
        )
        x, winners = digits.validation.x, rerun.winners(search)
        return pd.DataFrame([row | neurons.activity(module, x) for row, module in winners])


def planned() -> list[Search]:
    """Rectifiers and spikes at every batch size; then pruned, longer and convolutional ones."""
    three, kinds = REPLICATES[:3], (0, TIME)
    dense = [Search(t, b, replicate=n) for n in REPLICATES for b in BATCH_SIZES for t in kinds]
    pruned = [
        Search(t, 16, 0.9, replicate=n, max_steps=1000)
        for n, t in itertools.product(three, kinds)
    ]
    longer = [Search(LONGER, b, replicate=n) for n in three for b in FEW + MORE]
    cnns = itertools.product(CNN_SIZES, three, kinds)
    return [
        *(dense + pruned + longer),
        *(Search(t, b, replicate=n, model="cnn", trials=16) for b, n, t in cnns),
    ]


def _file(search: Search) -> str:
    name = f"time-{search.time}-sparsity-{search.sparsity:g}-batch-{search.batch_size}"
    return name if search.model == "mlp" else f"{search.model}-{name}"


@spec
class SpikingTimes:
    """Times of one MLP's gradient on one core, at every batch size of the searches."""

    repeats: timings.REPEATS = 9

    def definition(self) -> dict:
        return {"networks": (0, TIME, LONGER), "batch_sizes": BATCH_SIZES}

    def measure(self) -> pd.DataFrame:
        """time (steps of the neurons, 0: rectifiers), batch_size, seconds (median), low, high."""
        from chapters.other_networks import neurons
        from lib.engine import batched, flattening
        from lib.workloads import datasets, models

        data, rows, gradients = datasets.load("digits", 1).train, [], {}
        for time in (0, TIME, LONGER):
            module = models.initialise(neurons.network(time), 0)
            w = flattening.flatten(module)[None]
            gradients[time] = functools.partial(batched.BatchedExecutor(module).gradients, w)
        for size in BATCH_SIZES:
            batch = data.x[:size], data.y[:size]
            calls = [functools.partial(gradient, *batch) for gradient in gradients.values()]
            # Alternate, so that other work on the machine slows all networks equally
            for time, seconds in zip(gradients, timings.alternately(calls, self.repeats)):
                rows.append({"time": time, "batch_size": size, **seconds})
        return pd.DataFrame(rows)


ABOUT = "Train spiking networks and rectifiers on the digits, into data/spikes/."
SPIKES = Collection("spikes", "searches", _file, planned, ABOUT)
TIMED = "gradients of spiking networks"
EXPERIMENTS = {
    "spiking": SPIKES,
    "timings-spiking": timings.experiment(TIMED, lambda: (SpikingTimes(),)),
}
