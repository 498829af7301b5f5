"""What Lee et al. (2020, 2021) say of pruned networks, and the rules that judge it."""

from lib.analysis import scaling
from lib.claims.claim import Change, claim, ratio
from lib.claims.names import curve_title, is_lee2021

WITH_MOMENTUM = ("momentum", "nesterov")
POOLED = "the median over pairs of curves of a data set hid networks that disagree"


def sparsest(curves):
    """The curve of every network, method and way of pruning at its highest sparsity, with its dense one: key -> both."""
    highest = {}
    for key in curves:
        if key[3] > 0 and key[2] == "connection-sensitivity" and scaling.dense_key(key) in curves:
            highest[key[:2]] = max(highest.get(key[:2], key), key, key=lambda k: k[3])
    return {key: (curves[key], curves[scaling.dense_key(key)]) for key in highest.values()}


@claim(
    "L3", "Pruned networks need more steps at every batch size",
    chapter="sparsity",
    paper="Training is harder under sparsity: more steps to the same goal at every batch size.",
    source="Lee et al. 2021, abstract",
    rule="On a network, steps at the highest sparsity are over 1.25 times the dense network's at every batch size, in the mean of "
    "searches; shown is the batch size at which they exceed them least.",
    above=1.25,
    history=[Change("2026-11-26", "over one, pooled over curves, at every sparsity and batch size", POOLED)],
)  # fmt: skip
def steps_over_dense(curves):
    groups = []
    for key, (sparse, dense) in sparsest(curves).items():
        costs = scaling.steps_ratio(sparse, dense)
        least = costs.effect[costs.ratio_low.idxmin()]
        groups.append(ratio(curve_title(key), least, is_lee2021(key[0])))
    return groups


@claim(
    "L4", "Larger batches help pruned networks no less",
    chapter="sparsity",
    paper="Data parallelism in sparse training is no worse than in dense training.",
    source="Lee et al. 2021, abstract of an earlier version; Lee et al. 2020, abstract",
    rule="On a network, the critical batch size at the highest sparsity is over 0.8 times the dense one's.",
    above=0.8,
    history=[Change("2026-11-26", "over half the dense one's, in the median pair of every data set", POOLED)],
)  # fmt: skip
def critical_over_dense(curves):
    return _critical(curves, None)


@claim(
    "L5", "With momentum, pruning raises the critical batch size much",
    chapter="sparsity",
    paper="With momentum-based algorithms, perfect scaling can break at a much larger batch size for sparse networks than for "
    "dense ones.",
    source="Lee et al. 2020, abstract",
    rule="On a network, with momentum, the critical batch size at the highest sparsity is over twice the dense one's.",
    above=2.0,
    history=[Change("2026-11-26", "over twice, in the median pair of every data set", POOLED)],
)  # fmt: skip
def critical_with_momentum(curves):
    return _critical(curves, WITH_MOMENTUM)


def _critical(curves, algorithms):
    groups = []
    for key, (sparse, dense) in sparsest(curves).items():
        if algorithms and key[1] not in algorithms:
            continue
        if (found := scaling.critical_ratio(sparse, dense)) is not None:
            groups.append(ratio(curve_title(key), found, is_lee2021(key[0])))
    return groups
