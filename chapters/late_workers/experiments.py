"""What this chapter measures besides searches."""

from chapters.late_workers import delays
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "async-delays": Experiment(
        "Train with worker processes that do not wait for each other; record how late gradients are, into data/delays/.",
        delays.DELAYS,
        "jobs",
        alone=True,
    )
}
