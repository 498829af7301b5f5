"""What this chapter measures besides searches of studies."""

from collections.abc import Sequence

from chapters.spiking.searches import SPIKES
from lib.measuring.experiment import Experiment
from lib.probes import timings


def _times() -> Sequence:
    from chapters.spiking import step_times  # brings PyTorch, which is slow to import

    return (step_times.SpikingTimes(),)


EXPERIMENTS = {
    "spiking": Experiment(
        "Train spiking networks and rectifiers on the digits, into data/spikes/.",
        SPIKES,
        "searches",
    ),
    "timings-spiking": Experiment(
        "Time gradients of spiking networks, into data/timings/; leave the machine alone meanwhile.",
        timings.TIMINGS,
        "sets of timings",
        _times,
        alone=True,
    ),
}
