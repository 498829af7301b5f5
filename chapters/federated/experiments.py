"""What this chapter measures besides searches."""

from chapters.federated import federated
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "federated": Experiment(
        "Train on clients' shards by averaging and by split networks, into data/federated/.",
        federated.FEDERATED,
        "searches",
    )
}
