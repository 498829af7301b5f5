"""What Shallue et al. (2019) say about what sets the critical batch size, and the judging rules."""

from chapters.limits import families
from lib.analysis import ranges, scaling
from lib.claims.claim import claim, finding, interval, ratio
from lib.claims.names import is_shallue2019, marked, pooled_images
from lib.wording import named

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
    paper="The largest useful batch size varies a great deal between workloads.",
    source="Shallue et al. 2019, abstract",
    rule="With SGD, the largest critical batch size of dense networks is over four times the smallest, by intervals that all "
    "hold at once; of five networks or more, each counted once.",
    above=4,
    either=True,
)
def extremes(published_curves):
    curves = {k: c for k, c in families.once(published_curves).items() if k[1] == "sgd"}
    theirs = [curve for key, curve in curves.items() if is_shallue2019(key[0])]
    several = [curve for curve in curves.values() if curve.n >= scaling.ENOUGH]
    kinds = {"the paper's own networks": theirs, "networks of three searches or more": several}
    for whose, networks in kinds.items():
        if len(networks) >= SEVERAL:
            searches, ends = min(curve.n for curve in networks), families.spread(networks)
            note = f"{len(networks)} networks and amounts of data"
            yield interval(f"{whose}, SGD", ends, searches, networks is theirs, note, log=True)


@finding(
    "S5",
    "The kind of network changes the critical batch size",
    paper="The kind of network changes the largest useful batch size at equal data and goal.",
    source="Shallue et al. 2019, figure 3",
    read="figures",
    shown="At one method and goal, the critical batch size of a convolutional network over a fully connected one's.",
)
def kinds(searches):
    return _compared(searches, KINDS)


@finding(
    "S6",
    "Width and depth move the critical batch size",
    paper="Width and depth change the largest useful batch size, but not in the same direction in all families.",
    source="Shallue et al. 2019, figure 3",
    read="figures",
    shown="At one method and goal, the critical batch size of a family's largest network over its smallest's.",
)
def sizes(published):
    return _compared(published, SIZES)


@claim(
    "S8",
    "The amount of data hardly moves the critical batch size",
    paper="The size of the data set hardly changes the largest useful batch size: fractions of MNIST have nearly the same curve.",
    source="Shallue et al. 2019, figure 6",
    read="figures",
    rule="At one method and goal, critical batch sizes with all of the data and with an eighth are within a factor of 1.25.",
    within=1.25,
)
def amounts(published):
    return _compared(published, AMOUNTS)


def _compared(searches, names):
    """A group per family of these names."""
    wanted = {family: families.FAMILIES[family] for family in names}
    whole_range = {key[:2] for key in ranges.whole_curves(searches)}
    effects, about, whole = {}, {}, set()
    for row in families.effects(searches, wanted).itertuples():
        algorithm, works = wanted[row.family].algorithm, [*wanted[row.family].members.values()]
        key = (works[-1], algorithm, row.family)
        note = f"{row.last} over {row.first} at {100 * row.goal:g} % error"
        note += ", a bound" * (not row.inside)
        if whole_range.issuperset((work, algorithm) for work in works):
            whole.add(key)
        effects[key] = row.effect
        name = f"{names[row.family]}, {named(algorithm)}"
        about[key] = name, all(map(is_shallue2019, works)), note
    pooled = pooled_images(effects)
    groups = [ratio(name, pooled[key], *rest) for key, (name, *rest) in about.items()]
    return marked(effects, groups, whole)
