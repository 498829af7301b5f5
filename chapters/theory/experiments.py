"""What this chapter measures besides searches."""

from chapters.theory import running_noise
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "noise-scale": Experiment(
        "Train with two worker processes that estimate the gradient's noise as they go, into "
        "data/running/.",
        running_noise.JOBS,
        "jobs",
        alone=True,
    )
}
