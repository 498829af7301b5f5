"""What this chapter measures besides searches of studies."""

from chapters.decay_and_batch.searches import DECAYED
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "decay": Experiment(
        "Tune learning rate and weight decay together at several batch sizes, into data/decay/.",
        DECAYED,
        "searches",
    )
}
