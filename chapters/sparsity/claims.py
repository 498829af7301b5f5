"""What Lee et al. (2020, 2021) say about pruned networks, and the rules that judge it."""

from dataclasses import replace

import numpy as np

from lib.analysis import ranges, scaling
from lib.analysis.scaling import sparsest
from lib.claims import regimes
from lib.claims.claim import claim
from lib.claims.names import LADDER, is_lee2021, marked, pooled_images, rows
from lib.methods import WITH_MOMENTUM


@claim(
    "L2",
    "Pruned networks' curves show the same regimes",
    paper="The trend holds irrespective of the sparsity level.",
    source="Lee et al. 2021, abstract of an earlier version",
    rule="On a network, the curve at the highest sparsity shows three regimes by the rule of L1.",
    above=0.0,
    scale="number",
    tried=regimes.TRIED,
)
def regimes_of_pruned(curves, searches):
    pruned = {key: curve for key, (curve, _) in sparsest(curves).items()}
    return regimes.judged(pruned, searches)


@claim(
    "L3",
    "Pruned networks need more steps at every batch size",
    paper="Training is harder under sparsity: more steps to the same goal at every batch size.",
    source="Lee et al. 2021, abstract",
    rule="On a network, steps at the highest sparsity are over 1.25 times the dense network's at every batch size, in the mean of "
    "searches; shown is the batch size at which that is least sure.",
    above=1.25,
    truth=2.0,
)
def steps_over_dense(curves):
    ratios, typical = {}, {}
    for key, pair in sparsest(curves).items():
        ratios[key] = scaling.steps_ratio(*pair).set_index("batch_size").effect
        error = np.mean([effect.error**2 for effect in ratios[key]]) ** 0.5
        typical[key] = replace(ratios[key].iloc[0], error=float(error))
    sizes, least = {}, {}
    for key, effect in pooled_images(typical).items():
        scatter = {"error": effect.error, "freedom": effect.freedom}
        costs = ratios[key]
        if effect is not typical[key]:
            costs = costs.map(lambda cost: replace(cost, **scatter))  # noqa: B023, called at once
        sizes[key], least[key] = min(costs.items(), key=lambda item: item[1].low)
    return rows(least, is_lee2021, lambda key, _: f"batch size {sizes[key]:,}")


@claim(
    "L4",
    "Larger batches help pruned networks no less (here: over 0.8 times)",
    paper="Data parallelism in sparse training is no worse than in dense training.",
    source="Lee et al. 2021, abstract of an earlier version; Lee et al. 2020, abstract",
    rule=f"On a network, the critical batch size at the highest sparsity is over 0.8 times the dense one's. {LADDER}",
    above=0.8,
)
def critical_over_dense(ladders, summary, searches):
    return _compared(critical_ratios(ladders), summary, searches)


@claim(
    "L5",
    "With momentum, pruning raises the critical batch size",
    paper="With momentum-based algorithms, perfect scaling can break at a much larger batch size for sparse networks than for "
    "dense ones. (Here: whether it does, on each network; one where it does not is no proof that none can.)",
    source="Lee et al. 2020, abstract",
    rule="On a network, with momentum, the critical batch size at the highest sparsity is over 1.25 times the dense one's. "
    f"{LADDER}",
    above=1.25,
    truth=2.0,
)
def critical_with_momentum(ladders, summary, searches):
    effects = {k: e for k, e in critical_ratios(ladders).items() if k[1] in WITH_MOMENTUM}
    return _compared(effects, summary, searches)


def _compared(effects, summary, searches):
    """A row per network and method; in its note, both critical batch sizes at the goal."""
    read = summary.set_index(scaling.CURVE)

    def critical(key):
        row = read.loc[key]
        return f"{row.critical:,.0f}" if row.identified else "outside the sizes measured"

    def sizes(key, _):
        pruned, dense = critical(key), critical(scaling.dense_key(key))
        return f"C at {100 * read.goal[key]:g} % error, on all sizes: {pruned}, dense {dense}"

    groups = rows(effects, is_lee2021, sizes)
    return marked(effects, groups, ranges.whole_curves(searches))


def critical_ratios(ladders):
    """ln of the critical batch size at the highest sparsity over the dense one's, by key, if both
    have three batch sizes; the scatter of searches is pooled over networks on images.
    """
    pairs = sparsest(ladders).items()
    return pooled_images({key: scaling.shared_ratio(*pair) for key, pair in pairs})
