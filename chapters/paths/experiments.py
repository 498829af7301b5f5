"""What this chapter measures besides searches."""

from chapters.paths import walks
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "trajectories": Experiment(
        "Train the fastest trials again and record where their gradients point, into data/paths/.",
        walks.WALKS,
        "trajectories",
    )
}
