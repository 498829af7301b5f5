"""Claims on training where the data lie, and the rules that judge them. The page tells what was
predicted before the records.
"""

from chapters.federated.findings import EPOCH, TURNS, WHOLE, beside
from lib.claims.claim import claim


@claim(
    "F1",
    "Local steps save rounds of communication",
    chapter="federated",
    paper="Federated averaging takes fewer rounds of communication than synchronous SGD.",
    source="McMahan et al. 2017, in our words",
    read="summary",
    rule="On shards of one kind, a synchronous step on whole shards takes over 1.25 times the "
    "rounds of averaging after an epoch, which computes as much, at the hardest goal that all "
    "searches of both meet.",
    above=1.25,
    since="2026-11-27",
    fixed=True,
)
def rounds():
    return beside("rounds", WHOLE, EPOCH)


@claim(
    "F2",
    "Split learning asks clients to compute less",
    chapter="federated",
    paper="Split learning asks less computation of a client than federated averaging.",
    source="Vepakomma et al. 2018, in our words",
    read="summary",
    rule="On shards of one kind, averaging after an epoch takes over 1.25 times the multiply-adds "
    "of a client of split learning in turns of an epoch, at the hardest goal that all searches of "
    "both meet.",
    above=1.25,
    since="2026-11-27",
    fixed=True,
)
def computed():
    return beside("adds", EPOCH, TURNS)
