"""What this chapter measures besides searches."""

from chapters.steps_to_result import folds
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "cross-validation": Experiment(
        "Record which training images networks get wrong that have not seen them, into data/folds/.",
        folds.FOLDS,
        "sets",
    )
}
