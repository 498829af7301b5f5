"""What this chapter measures besides a reader's own searches."""

from chapters.own_workload.replays import REPLAYS
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "adaptive-replays": Experiment(
        "Search digits adaptively where exact searches are on record, into data/adaptive/.",
        REPLAYS,
        "replays",
    )
}
