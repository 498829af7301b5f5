"""What this chapter measures besides searches of cells."""

from chapters.batch_ramps import searches
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "batch-ramps": Experiment(
        "Train with batch sizes and learning rates that change on the way, into data/ramps/.",
        searches.RAMPS,
        "searches",
    )
}
