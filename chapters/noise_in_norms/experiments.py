"""What this chapter measures besides searches."""

from chapters.noise_in_norms import paths
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "noise-in-norms": Experiment(
        "Train the fastest trials of several methods again and record the gradient's noise in "
        "three norms, into data/norms/.",
        paths.PATHS,
        "paths",
    )
}
