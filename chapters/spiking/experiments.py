"""What this chapter measures besides searches of studies."""

from chapters.spiking.searches import SPIKES
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "spiking": Experiment(
        "Train spiking networks and rectifiers on the digits, into data/spikes/.",
        SPIKES,
        "searches",
    )
}
