"""What this chapter measures besides searches of cells."""

from chapters.local_steps import local
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "local-steps": Experiment(
        "Train replicas by local steps and outer steps, into data/local-steps/.",
        local.LOCAL,
        "searches",
    )
}
