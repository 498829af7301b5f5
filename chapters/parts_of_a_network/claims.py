"""Claims on training parts of a network, and the rules that judge them.

Of these papers the abstracts were at hand, not the texts.
"""

from chapters.parts_of_a_network import network_parts
from lib.claims.claim import Change, claim, ratio, share, unmeasured

EFFECT = "an effect has to exceed the bound within which there is none"
ALL_STEPS = "the same, searches with 1, 5, 20 and 80 local steps counted as independent"
ALL_SIZES = "the same, searches at all batch sizes counted as independent"
ANOTHER = "halves without recovery are another way, which notes tell"


def met(name, values, note=""):
    """The share of searches that meet a goal."""
    return share(name, values.count(), len(values), note=note)


def recovered(size, values):
    """That of halves with recovery, and without it as a note; values: of searches, by arm."""
    together = values.get_group(network_parts.RECOVERED)
    apart = values.get_group(network_parts.APART)
    note = f"without recovery: {apart.count()} of {len(apart)} searches"
    return met(f"{network_parts.RECOVERED}, batches of {size:,}", together, note)


def compared(name, ratios):
    """The mean over searches of the whole network's cost over that of its parts."""
    found = network_parts.mean_ratio(1 / ratios)
    return ratio(name, found) if found else unmeasured(name, note="a search missed the goal")


def published():
    """Parts, with as many local steps as published, beside the whole network."""
    searches = network_parts.beside(network_parts.subnetworks(), network_parts.PARALLEL)
    return searches[searches.arm == network_parts.PARTS]


@claim(
    "I1",
    "Independent subnetworks communicate less",
    chapter="parts_of_a_network",
    paper="Independent subnetworks communicate less, and less often, than data parallelism.",
    source="Yuan et al. 2022, abstract, in our words",
    rule="Among so many workers, with 20 local steps, data parallelism sends over 1.25 times the numbers per worker, at the "
    "hardest goal that all searches of both meet.",
    above=1.25,
    history=[Change("2026-11-26", "more numbers, with each number of workers", EFFECT)],
)
def sent():
    own = published().query("what == 'sent'")
    met = own.groupby(["size", "goal"]).filter(lambda some: some.ratio.notna().all())
    hard = met[met.goal == met.groupby("size").goal.transform("min")]
    return [compared(f"{n} workers", some) for n, some in hard.groupby("size").ratio]


@claim(
    "I3",
    "Independent subnetworks leave a bias",
    chapter="parts_of_a_network",
    paper="Independent subnetworks leave a bias: training stops short of where the whole network gets.",
    source="Shulgin and Richtárik 2023, in our words",
    rule="Among so many workers, with 20 local steps, fewer than half of searches meet the hardest goal, which the whole network "
    "always meets.",
    below=0.5,
    scale="share",
    history=[Change("2026-11-26", ALL_STEPS, "they share their splits and orders")],
)
def bias():
    hard = network_parts.hardest(published()).query("what == 'steps'")
    return [met(f"{n} workers", steps) for n, steps in hard.groupby("size").value]


@claim(
    "I4",
    "Growing a network saves computation",
    chapter="parts_of_a_network",
    paper="Growing a network saves a substantial part of the computation at the accuracy of the large one. "
    "(Here: to a goal that the small network meets, too.)",
    source="Yuan et al. 2023, abstract",
    rule="At a batch size, the large network from the start takes over 1.25 times the multiply-adds of the growing one to the "
    "hardest goal.",
    above=1.25,
    history=[Change("2026-11-26", "more multiply-adds, at every batch size", EFFECT)],
)
def grown():
    searches = network_parts.beside(network_parts.growing(), network_parts.LARGE)
    hard = network_parts.hardest(searches[searches.arm == network_parts.GROWN])
    sizes = hard[hard.what == "adds"].groupby("size").ratio
    return [compared(f"batches of {size:,}", some) for size, some in sizes]


@claim(
    "I5",
    "Halves trained apart, then together, are as accurate",
    chapter="parts_of_a_network",
    paper="Halves trained apart, on synthetic intermediate labels, reach about the accuracy of usual training. "
    "(Here: with recovery, in which both are trained together.)",
    source="Karadağ and Topaloğlu 2024, abstract, in our words",
    rule="At a batch size, with recovery, more than half of searches meet the hardest goal, which the whole network "
    "always meets.",
    above=0.5,
    scale="share",
    since="2026-11-28",
    history=[
        Change("2026-11-26", ALL_SIZES, "they share their splits"),
        Change("2026-11-28", "the same, with recovery or without", ANOTHER),
    ],
)
def halves_apart():
    searches = network_parts.beside(network_parts.halves(), network_parts.UNCUT)
    hard = network_parts.hardest(searches).query("what == 'steps'")
    return [recovered(size, own.groupby("arm").value) for size, own in hard.groupby("size")]
