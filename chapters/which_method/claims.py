"""Claims about training methods made for, or compared at, large batches, and the rules that judge
them.

We read the abstracts of these papers, not the texts, so no network counts as one of the papers'
networks.
"""

import functools

from lib.analysis import method_results, ranges, scaling
from lib.claims import judging
from lib.claims.claim import claim, ratio
from lib.claims.names import LADDER, pooled_images, title
from lib.studies import plans
from lib.wording import named

SOAPS = ("soap", "soap-10")
LARGE, SMALL, ALL = (method_results.at_end(end) for end in (1, -1, 0))


@functools.cache
def searched(whole=True):
    """Every dense search of the networks searched with many methods; whole: whether momentum is
    over its whole range, where that is measured.
    """
    rows = method_results.compared(plans.study("digits-soap"))
    if whole:
        rows = scaling.at_goals(ranges.whole(rows, judging.low()))
    return rows[rows.sparsity == 0]


def curves(whole=True):
    """The curves of `searched`, by key."""
    return scaling.curves(searched(whole))


def ladders():
    """The curves of `searched` at several goals, by key."""
    return scaling.ladders(searched(), judging.orders())


def groups(quantity, *pairs, measured=None, name="{network}"):
    """A row per pair of methods and network.

    Args:
        quantity: function that computes the effect from what was measured with both methods.
        *pairs: (method above, method below).
        measured: curves or ladders by key; None: `curves`.
        name: format string for a row's name.
    """
    measured = curves() if measured is None else measured
    effects = {
        (network, *pair): effect
        for pair in pairs
        for network, effect in method_results.between(measured, *pair, quantity).items()
    }
    rows = []
    for (network, *pair), effect in pooled_images(effects).items():
        words = dict(zip(("above", "below"), map(named, pair)), network=title(network))
        rows.append(ratio(name.format(**words), effect))
    return rows


def critical_groups(*pairs, **options):
    """`groups` of ratios of critical batch sizes, the mean over several goals."""
    return groups(scaling.shared_ratio, *pairs, measured=ladders(), **options)


@claim(
    "O1",
    "CLARS does far better than LARS with a warm-up",
    paper="Complete layer-wise adaptive rates (CLARS) outperform warm-up by a large margin. (Here: in steps, by over 1.25 times.)",
    source="Huo et al. 2020, abstract",
    rule="On a network, at the two largest batch sizes, LARS with a tuned warm-up takes over 1.25 times the steps of CLARS.",
    above=1.25,
)
def warm_up():
    return groups(LARGE, ("lars-warmup", "clars"))


@claim(
    "O2",
    "Tuned Nesterov and Adam match LARS and LAMB",
    paper="Nesterov momentum and Adam match or exceed LARS and LAMB at large batch sizes.",
    source="Nado et al. 2021, abstract",
    rule="On a network, at the two largest batch sizes, each takes less than 1.25 times the steps of its rival.",
    below=1.25,
)
def standard_methods():
    pairs = (("nesterov", "lars"), ("adam", "lamb"))
    return groups(LARGE, *pairs, name="{above} over {below}, {network}")


@claim(
    "O3",
    "Adam and K-FAC make much larger batches useful than momentum",
    paper="Preconditioning, as by Adam and K-FAC, gives much larger critical batch sizes than momentum. (Here: over twice.)",
    source="Zhang et al. 2019, abstract",
    rule="On a network, the critical batch size is over twice that with momentum, searched over its whole range where measured. "
    f"{LADDER} With K-FAC, curves on digits flatten at a few steps, and whole steps are coarse.",
    above=2.0,
)
def preconditioning():
    pairs = [(method, "momentum") for method in ("adam", "kfac", "kfac-unclipped")]
    return critical_groups(*pairs, name="{above}, {network}")


@claim(
    "O4",
    "Averaged weights save steps at small batches",
    paper="An exponential average of the weights takes fewer steps, above all at small batch sizes. (Here: at the smallest.)",
    source="Zhang et al. 2019, abstract",
    rule="On a network, at the two smallest batch sizes, momentum takes over 1.25 times the steps of momentum with averaged "
    "weights, both drawn from the published range.",
    above=1.25,
)
def averages():
    return groups(SMALL, ("momentum", "momentum-ema"), measured=curves(whole=False))


@claim(
    "O5",
    "K-FAC needs fewer steps than momentum",
    paper="K-FAC needs fewer steps than SGD with momentum.",
    source="Pauloski et al. 2020, abstract, in our words",
    rule="On a network, momentum, searched over its whole range where measured, takes over 1.25 times the steps of K-FAC, in the "
    "mean over batch sizes.",
    above=1.25,
)
def second_order():
    return groups(ALL, ("momentum", "kfac"))


@claim(
    "O6",
    "Muon stays efficient at larger batches than Adam (here: over 1.25 times)",
    paper="Muon retains data efficiency better than AdamW at large batch sizes. (Here: a critical one over 1.25 times Adam's.)",
    source="Essential AI 2025, abstract, in our words",
    rule=f"On a network, the critical batch size with Muon is over 1.25 times that with Adam. {LADDER}",
    above=1.25,
)
def muon():
    return critical_groups(("muon", "adam"))


@claim(
    "O7",
    "At the smallest batches, no gap between training methods is left",
    paper="As the batch gets smaller, the gap between training methods shrinks. (Here: whether it is gone at the smallest.)",
    source="Marek et al. 2025, abstract and notes to their code",
    rule="On a network, steps of SGD, of Muon, and of momentum over its whole range where measured, at the two smallest batch "
    "sizes are within a factor of 1.25 of Adam's.",
    within=1.25,
)
def small_batches():
    pairs = (("sgd", "adam"), ("momentum", "adam"), ("muon", "adam"))
    return groups(SMALL, *pairs, name="{above} over {below}, {network}")


@claim(
    "O8",
    "SOAP needs fewer steps than Adam at large batches",
    paper="At large batches, SOAP takes over 40 % fewer iterations than AdamW. (Here: over 20 % fewer than Adam.)",
    source="Vyas et al. 2024, abstract, in our words",
    rule="On a network, at the two largest batch sizes searched with SOAP, Adam takes over 1.25 times the steps of SOAP; eight "
    "searches.",
    above=1.25,
)
def fewer_than_adam():
    pairs = [("adam", soap) for soap in SOAPS]
    return groups(LARGE, *pairs, name="{below}, {network}")


@claim(
    "O9",
    "SOAP gains more, the larger the batch (here: over 1.25 times)",
    paper="SOAP’s advantage is larger at larger batches. (Here: a critical one over 1.25 times Adam’s.)",
    source="Vyas et al. 2024, notes to their code, in our words",
    rule=f"On a network, the critical batch size with SOAP is over 1.25 times that with Adam; eight searches. {LADDER}",
    above=1.25,
)
def larger_useful_batches():
    pairs = [(soap, "adam") for soap in SOAPS]
    return critical_groups(*pairs, name="{above}, {network}")
