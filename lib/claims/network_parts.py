"""Claims on training parts of a network, and the rules that judge them.

Of these papers the abstracts were at hand, not the texts.
"""

from lib.claims.verdicts import Rule

MORE = "{times} times as many searches, {cost}"

RULES = (
    Rule("I1", "parts_of_a_network",
         "Independent subnetworks communicate less, and less often, than data parallelism.",
         "With each number of workers, and 20 local steps, data parallelism sends more numbers per worker until the goal.",
         1, True, "ratio",
         "With {group}, data parallelism sends {effect} times as many numbers per worker until the goal.",
         MORE, "Yuan et al. 2022, abstract, in our words"),
    Rule("I2", "parts_of_a_network",
         "Independent subnetworks train in much less time than data parallelism. (Here: whether they compute less, which decides "
         "where links are fast.)",
         "With each number of workers, and 20 local steps, data parallelism computes more per worker until the goal.",
         1, True, "ratio",
         "With {group}, data parallelism computes {effect} times as much per worker until the goal.",
         MORE, "Yuan et al. 2022, abstract, in our words"),
    Rule("I3", "parts_of_a_network",
         "Independent subnetworks leave a bias: training stops short of where the whole network gets.",
         "With each number of workers, fewer than half of searches meet the hardest goal, which the whole network always meets.",
         0.5, False, "share",
         "With {group}, {effect} of searches meet the hardest goal.",
         MORE, "Shulgin and Richtárik 2023, in our words"),
    Rule("I4", "parts_of_a_network",
         "Growing a network saves a substantial part of the computation at the accuracy of the large one.",
         "At every batch size, the large network from the start takes more multiply-adds to the goal than the growing one.",
         1, True, "ratio",
         "With {group}, the large network from the start takes {effect} times the multiply-adds of the growing one.",
         MORE, "Yuan et al. 2023, abstract"),
    Rule("I5", "parts_of_a_network",
         "Halves trained apart, on synthetic intermediate labels, reach about the accuracy of usual training.",
         "With recovery and without, more than half of searches meet the hardest goal, which the whole network always meets.",
         0.5, True, "share",
         "Of {group}, {effect} of searches meet the hardest goal.",
         MORE, "Karadağ and Topaloğlu 2024, abstract, in our words"),
    Rule("I6", "parts_of_a_network",
         "Synthetic intermediate labels minimise the communication between devices. (Here: with recovery, against two stages.)",
         "At every batch size, two stages of the whole network exchange more numbers until the goal.",
         1, True, "ratio",
         "With {group}, two stages exchange {effect} times as many numbers until the goal.",
         MORE, "Karadağ and Topaloğlu 2024, abstract, in our words"),
)  # fmt: skip
