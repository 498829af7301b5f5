"""What this chapter measures besides searches."""

from chapters.without_backpropagation import boolean_readout
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "boolean-readouts": Experiment(
        "Train Boolean readouts by flips of their weights, into data/flips/.",
        boolean_readout.READOUTS,
        "sets of runs",
    )
}
