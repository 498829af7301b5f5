"""What this chapter measures besides searches."""

from lib.measuring.experiment import Experiment
from lib.probes import unseen

EXPERIMENTS = {
    "cross-validation": Experiment(
        "Record which training images networks get wrong that have not seen them, into data/folds/.",
        unseen.FOLDS,
        "sets",
    )
}
