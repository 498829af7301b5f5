"""The claims of Dai et al. (2018) on late gradients and the rules that judge them.

Of this paper the abstract was at hand; what else it finds is as others summarise it.
"""

from lib.claims.verdicts import Rule

SUMMARY = "Dai et al. 2018, as summarised by others"
MORE = "{times} times as many searches, {cost}"

RULES = (
    Rule("A1", "late_workers",
         "Stale gradients slow convergence down, by how much differs between training methods.",
         "With each method, gradients seven steps late take more steps than timely ones, in the mean over batch sizes.",
         1, True, "ratio",
         "With {group}, gradients seven steps late take {effect} times the steps of timely ones in the mean over batch sizes.",
         MORE, SUMMARY),
    Rule("A2", "late_workers",
         "Momentum and Adam suffer more from stale gradients than SGD does.",
         "For each of the two, seven steps of delay multiply the steps by more than with SGD, in the mean over batch sizes.",
         1, True, "ratio",
         "With {group}, seven steps of delay multiply the steps by {effect} times what they do with SGD.",
         MORE, SUMMARY),
    Rule("A3", "late_workers",
         "Deeper networks suffer more from stale gradients.",
         "Seven steps of delay multiply the steps of SGD by more on four hidden layers than on one, in the mean over batch sizes.",
         1, True, "ratio",
         "On {group}, seven steps of delay multiply SGD’s steps by {effect} times what they do on one.",
         MORE, SUMMARY),
)  # fmt: skip
