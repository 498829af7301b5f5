"""What this chapter measures besides searches."""

from chapters.leakage import leakage
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "leakage": Experiment(
        "Train split networks whose messages reveal less of the images, into data/leakage/.",
        leakage.LEAKAGE,
        "searches",
    )
}
