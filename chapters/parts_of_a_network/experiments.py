"""What this chapter measures besides searches."""

from chapters.parts_of_a_network import growing, halves, subnetworks

EXPERIMENTS = {
    "subnetworks": subnetworks.SUBNETWORKS,
    "growing": growing.GROWING,
    "halves": halves.HALVES,
}
