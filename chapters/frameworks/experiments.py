"""What this chapter measures besides searches."""

from __future__ import annotations

from collections.abc import Sequence

from lib.measuring.experiment import Experiment
from lib.probes import timings


def _frameworks() -> Sequence:
    from chapters.frameworks import framework_times  # brings PyTorch, which is slow to import

    return framework_times.PLANNED


EXPERIMENTS = {
    "timings-frameworks": Experiment(
        "Time PyTorch's own ways to train with two processes, into data/timings/; leave the machine alone meanwhile.",
        timings.TIMINGS,
        "sets of timings",
        _frameworks,
        alone=True,
    )
}
