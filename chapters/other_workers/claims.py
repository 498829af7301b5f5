"""Claims about workers that do not share every step, and what this book measured.

We read the abstracts of the papers on parts of a network, and only what others write about the
remaining papers; no full texts.
"""

from chapters.other_workers import federated, late, parts
from chapters.other_workers.federated import EPOCH, TURNS, WHOLE
from chapters.other_workers.late import METHODS, WORK
from lib.claims.claim import finding, ratio, share, unmeasured
from lib.claims.names import title
from lib.wording import named

# --- late gradients -------------------------------------------------------------------------------


@finding(
    "A1",
    "Stale gradients slow every training method",
    paper="Stale gradients slow convergence down; by how much differs between training methods.",
    source="Dai et al. 2018",
    read="summary",
    shown="Steps with gradients seven steps late over those with timely ones, in the mean "
    "over batch sizes.",
)
def late_over_timely():
    return _late(METHODS, ())


@finding(
    "A2",
    "Momentum and Adam suffer more from stale gradients",
    paper="Momentum and Adam suffer more from stale gradients than SGD does.",
    source="Dai et al. 2018",
    read="summary",
    shown="The factor by which seven steps of delay multiply a method's steps, over that "
    "for SGD.",
)
def beside_sgd():
    return _late(METHODS[1:], ((WORK, "sgd", "fixed", late.JUDGED),))


def _late(methods, rivals):
    curves, groups = late.curves(late.measured()), []
    for method in methods:
        if effect := late.slower(curves, (WORK, method, "fixed", late.JUDGED), *rivals):
            groups.append(ratio(f"{named(method)}, {title(WORK)}", effect))
    return groups


# --- where the data lie ---------------------------------------------------------------------------


@finding(
    "F1",
    "Local steps save rounds of communication",
    paper="Federated averaging takes fewer rounds of communication than synchronous SGD.",
    source="McMahan et al. 2017, in our words",
    read="summary",
    shown="Rounds of synchronous steps on whole shards over rounds of averaging after an epoch, "
    "at the hardest goal that all searches of both meet.",
)
def rounds():
    return federated.groups("rounds", WHOLE, EPOCH)


@finding(
    "F2",
    "Split learning asks clients to compute less",
    paper="Split learning asks less computation of a client than federated averaging.",
    source="Vepakomma et al. 2018, in our words",
    read="summary",
    shown="Multiply-adds of averaging after an epoch over those of a client of split learning in "
    "turns of an epoch, at the hardest goal that all searches of both meet.",
)
def computed():
    return federated.groups("adds", EPOCH, TURNS)


# --- parts of a network ---------------------------------------------------------------------------


def met(name, values, note=""):
    """The share of searches that meet a goal; values: NaN for those that do not."""
    return share(name, values.count(), len(values), note=note)


def recovered(size, values):
    """`met` for halves with recovery, with those without it as a note; values: grouped by arm."""
    together, apart = map(values.get_group, (parts.RECOVERED, parts.APART))
    note = f"without recovery: {apart.count()} of {len(apart)} searches"
    return met(f"{parts.RECOVERED}, batches of {size:,}", together, note)


def compared(name, ratios):
    """The whole network's cost over that of its parts, the mean over searches."""
    mean = parts.mean_ratio(1 / ratios)
    return ratio(name, mean) if mean else unmeasured(name, note="a search missed the goal")


def published():
    """Parts with the published number of local steps, beside the whole network."""
    searches = parts.beside_whole(parts.subnetworks(), parts.PARALLEL)
    return searches[searches.arm == parts.PARTS]


@finding(
    "I1",
    "Independent subnetworks communicate less",
    paper="Independent subnetworks communicate less, and less often, than data parallelism.",
    source="Yuan et al. 2022, abstract, in our words",
    shown="Numbers sent per worker by data parallelism over those by subnetworks with 20 "
    "local steps, at the hardest goal that all searches of both meet.",
)
def sent():
    sent = published().query("what == 'sent'")
    met = sent.groupby(["size", "goal"]).filter(lambda rows: rows.ratio.notna().all())
    hard = met[met.goal == met.groupby("size").goal.transform("min")]
    return [compared(f"{n} workers", ratios) for n, ratios in hard.groupby("size").ratio]


@finding(
    "I3",
    "Independent subnetworks leave a bias",
    paper="Independent subnetworks leave a bias: training stops short of where the whole network "
    "gets.",
    source="Shulgin and Richtárik 2023, in our words",
    scale="share",
    shown="Share of searches, with 20 local steps, that meet the hardest goal, which the "
    "whole network always meets.",
)
def bias():
    hard = parts.hardest(published()).query("what == 'steps'")
    return [met(f"{n} workers", steps) for n, steps in hard.groupby("size").value]


@finding(
    "I4",
    "Growing a network saves computation",
    paper="Growing a network saves a substantial part of the computation at the accuracy of the "
    "large one. (Here: to a goal that the small network meets, too.)",
    source="Yuan et al. 2023, abstract",
    shown="Multiply-adds of the large network from the start over those of the growing "
    "one, to the hardest goal.",
)
def grown():
    searches = parts.beside_whole(parts.growing(), parts.LARGE)
    hard = parts.hardest(searches[searches.arm == parts.GROWN])
    sizes = hard[hard.what == "adds"].groupby("size").ratio
    return [compared(f"batches of {size:,}", ratios) for size, ratios in sizes]


@finding(
    "I5",
    "Halves trained apart, then together, are as accurate",
    paper="Halves trained apart, on synthetic intermediate labels, reach about the accuracy of "
    "usual training. (Here: with recovery, in which both are trained together.)",
    source="Karadağ and Topaloğlu 2024, abstract, in our words",
    scale="share",
    shown="Share of searches, with recovery, that meet the hardest goal, which the whole "
    "network always meets.",
)
def halves_apart():
    searches = parts.beside_whole(parts.halves(), parts.UNCUT)
    hard = parts.hardest(searches).query("what == 'steps'")
    return [recovered(size, rows.groupby("arm").value) for size, rows in hard.groupby("size")]
