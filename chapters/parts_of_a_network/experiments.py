"""What this chapter measures besides searches."""

from chapters.parts_of_a_network import growing, halves, subnetworks
from lib.measuring.experiment import Experiment

EXPERIMENTS = {
    "subnetworks": Experiment(
        "Train disjoint parts of a network, a worker each, into data/subnetworks/.",
        subnetworks.SUBNETWORKS,
        "searches",
    ),
    "growing": Experiment(
        "Train networks that grow wider as they go, into data/growing/.",
        growing.GROWING,
        "searches",
    ),
    "halves": Experiment(
        "Train the two halves of a network one after the other, into data/halves/.",
        halves.HALVES,
        "searches",
    ),
}
