"""Claims on training parts of a network, and the rules that judge them.

Of these papers the abstracts were at hand, not the texts.  They are on networks too large for a
worker, which none here is.
"""

from chapters.parts_of_a_network import growing, halves, network_parts, subnetworks
from lib.claims.claim import Change, claim, ratio, share, unmeasured

LOCAL = subnetworks.PUBLISHED
EFFECT = "an effect has to exceed the bound within which there is none"


def met(name, steps):
    """The share of searches that meet a goal."""
    return share(name, steps.count(), len(steps))


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
    beside = network_parts.subnetworks(subnetworks.results(subnetworks.planned()))
    own = beside[beside.local_steps == LOCAL]
    both = own.assign(steps=own.steps + own.steps_whole)
    rows = []
    for workers, goal in network_parts.hardest(both).items():
        some = own[(own.workers == workers) & (own.goal == goal)]
        found = network_parts.mean_ratio(some.sent_whole / some.sent)
        name = f"{workers} workers"
        rows.append(ratio(name, found) if found else unmeasured(name))
    return rows


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
    history=[
        Change(
            "2026-11-26",
            "the same, searches with 1, 5, 20 and 80 local steps counted as independent",
            "they share their splits and orders",
        )
    ],
)
def bias():
    beside = network_parts.subnetworks(subnetworks.results(subnetworks.planned()))
    own = beside[(beside.goal == beside.goal.min()) & (beside.local_steps == LOCAL)]
    return [met(f"{n} workers", some.steps) for n, some in own.groupby("workers")]


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
    trials = growing.results(growing.planned())
    found = network_parts.by_search(trials)
    own = found[found.goal == network_parts.goals(trials)[0]].pivot(
        index=["batch_size", "replicate"], columns="arm", values="adds"
    )
    rows = []
    for size, some in own.groupby("batch_size"):
        effect = network_parts.mean_ratio(some[network_parts.WHOLE] / some[network_parts.GROWN])
        name = f"batches of {size:,}"
        rows.append(
            ratio(name, effect) if effect else unmeasured(name, note="a search missed the goal")
        )
    return rows


@claim(
    "I5",
    "Halves trained apart are as accurate",
    chapter="parts_of_a_network",
    paper="Halves trained apart, on synthetic intermediate labels, reach about the accuracy of usual training.",
    source="Karadağ and Topaloğlu 2024, abstract, in our words",
    rule="At a batch size, with recovery or without, more than half of searches meet the hardest goal, which the whole network "
    "always meets.",
    above=0.5,
    scale="share",
    history=[
        Change(
            "2026-11-26",
            "the same, searches at all batch sizes counted as independent",
            "they share their splits",
        )
    ],
)
def halves_apart():
    trials = halves.results(halves.planned())
    found = network_parts.by_search(trials)
    hard = found[
        (found.goal == network_parts.goals(trials)[0]) & (found.arm != network_parts.TOGETHER)
    ]
    return [
        met(f"{arm}, batches of {size:,}", own.steps)
        for (arm, size), own in hard.groupby(["arm", "batch_size"])
    ]
