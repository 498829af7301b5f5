"""What Shallue et al. (2019) say about what sets the critical batch size, and the judging rules."""

from dataclasses import replace

import numpy as np

from chapters.limits import families
from lib.analysis import ranges, scaling
from lib.claims.claim import claim, interval, ratio
from lib.claims.names import bent, is_shallue2019, pooled_images
from lib.wording import named

PAPER = "Shallue et al. 2019"
EACH = "one word for all of them depended on how many were measured"
SEVERAL = 5  # networks that a statement on all of them needs
SIZES = {
    families.WIDTH: "width of the MLP on digits",
    families.DEPTH: "depth of the MLP on digits",
    families.LADDER: "width of FC on MNIST",
    families.MNIST_DEPTH: "depth of FC-1024 on MNIST",
    families.MNIST_WIDTH: "width of the Simple-CNN on MNIST",
}
KINDS = {
    families.MODEL: "digits",
    families.MNIST_MODEL: "MNIST",
    families.MNIST_MODEL_EASIER: "MNIST, easier goal",
}
AMOUNTS = {families.FRACTION: "digits", families.MNIST_FRACTION: "MNIST"}


@claim(
    "S4",
    "Critical batch sizes vary a great deal between workloads",
    chapter="limits",
    paper="The largest useful batch size varies a great deal between workloads.",
    source=f"{PAPER}, abstract",
    rule="With SGD, the largest critical batch size of dense networks is over four times the smallest, by intervals that all "
    "hold at once; of five networks or more, each counted once.",
    above=4,
    either=True,
)
def extremes(published_curves):
    curves = {k: c for k, c in families.once(published_curves).items() if k[1] == "sgd"}
    kinds = {
        "the paper's own networks": [c for k, c in curves.items() if is_shallue2019(k[0])],
        "networks of three searches or more": [
            c for c in curves.values() if c.n >= scaling.ENOUGH
        ],
    }
    groups = []
    for whose, networks in kinds.items():
        if len(networks) >= SEVERAL:
            searches, ends = min(curve.n for curve in networks), families.spread(networks)
            note = f"{len(networks)} networks and amounts of data"
            theirs = whose.startswith("the paper")
            groups.append(interval(f"{whose}, SGD", *ends, searches, theirs, note, log=True))
    return groups


@claim(
    "S5",
    "The kind of network changes the critical batch size",
    chapter="limits",
    paper="The kind of network changes the largest useful batch size at equal data and goal.",
    source=PAPER,
    read="summary",
    rule="At one method and goal, critical batch sizes of a convolutional and a fully connected network differ by a factor of "
    "over 1.25, in either direction.",
    above=1.25,
    either=True,
)
def kinds(searches):
    return _compared(searches, KINDS, apart=True)


@claim(
    "S6",
    "Width and depth move the critical batch size",
    chapter="limits",
    paper="Width and depth change the largest useful batch size, but not in the same direction in all families. (Here: whether "
    "they change it.)",
    source=PAPER,
    read="summary",
    rule="At one method and goal, critical batch sizes of the largest and the smallest network of a family differ by a factor "
    "of over 1.25, in either direction.",
    above=1.25,
    either=True,
)
def sizes(published):
    return _compared(published, SIZES, apart=True)


@claim(
    "S8",
    "The amount of data hardly moves the critical batch size",
    chapter="limits",
    paper="The size of the data set hardly changes the largest useful batch size: fractions of MNIST have nearly the same curve.",
    source=PAPER,
    read="summary",
    rule="At one method and goal, critical batch sizes with all of the data and with an eighth are within a factor of 1.25.",
    within=1.25,
)
def amounts(published):
    return _compared(published, AMOUNTS, apart=False)


def _compared(searches, names, apart):
    """A group per family of these names; apart: whether ratios count alike either way."""
    wanted = {family: families.FAMILIES[family] for family in names}
    whole_range = {key[:2] for key in ranges.whole_curves(searches)}
    effects, about = {}, {}
    for row in families.effects(searches, wanted).itertuples():
        algorithm, works = wanted[row.family].algorithm, [*wanted[row.family].members.values()]
        key = (works[-1], algorithm, row.family)
        note = f"{row.last} over {row.first} at {100 * row.goal:g} % error: {row.ratio:.2g}"
        note += ", a bound" * (not row.inside)
        why = bent(key, all((work, algorithm) in whole_range for work in works))
        effects[key] = row.effect
        about[key] = {
            "name": f"{names[row.family]}, {named(algorithm)}",
            "own": apart and all(map(is_shallue2019, works)),
            "note": "; ".join([note, *why]),
            "decides": not why,
        }
    groups = [ratio(effect=e, **about[key]) for key, e in pooled_images(effects).items()]
    return [_folded(group) if apart else group for group in groups]


@np.errstate(divide="ignore")  # without a bound
def _folded(group):
    """A ratio's distance from one in either direction; an interval that contains one begins there.

    The rule says yes on either side, and so does its power.
    """
    ends = np.array([group.effect, group.low, group.high])
    value, low, high = np.maximum(ends, 1 / ends[[0, 2, 1]]).tolist()
    return replace(group, effect=value, low=max(low, 1.0), high=high)
