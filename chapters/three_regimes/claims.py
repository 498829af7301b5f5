"""What Lee et al. (2021) and Shallue et al. (2019) say about the shape of a curve, its goal, and
momentum.
"""

from lib.analysis import ranges, scaling
from lib.claims import regimes
from lib.claims.claim import claim
from lib.claims.names import REPEATS, is_shallue2019, marked, pooled_images, rows
from lib.methods import WITH_MOMENTUM


def dense(curves):
    return {
        key: c
        for key, c in curves.items()
        if key[3] == 0 and len(c.sizes) >= regimes.LEAST and key[0] not in REPEATS
    }


@claim(
    "L1",
    "Curves show three regimes",
    paper="Across workloads there is one general trend: perfect scaling, then diminishing returns, then maximal data parallelism.",
    source="Lee et al. 2021, abstract",
    rule="On a dense network's curve of five batch sizes or more, steps fall as B to a power of over 3/4 in the first fourfold of "
    "the batch sizes, and of under 1/4 in the last. Shown is the lesser of the two margins; both exponents are beside it.",
    above=0.0,
    scale="number",
    tried=regimes.TRIED,
)
def three_regimes(curves, searches):
    return regimes.judged(dense(curves), searches)


@claim(
    "S2",
    "Another goal leaves the critical batch size in place",
    paper="Another goal error shifts the curve up or down; the transitions between its regimes stay.",
    source="Shallue et al. 2019, figure 2",
    read="figures",
    rule="On a dense network, the critical batch size at the easiest goal of its ladder, over that at the goal at which its curve "
    "is read, is within a factor of 1.25 of one.",
    within=1.25,
)
def critical_by_goal(searches, curves):
    easiest, read = easiest_goals(searches), dense(curves)
    keys = [key for key in read if key in easiest]
    ratios = pooled_images({k: scaling.critical_ratio(easiest[k], read[k]) for k in keys})
    return marked(ratios, rows(ratios, is_shallue2019), ranges.whole_curves(searches))


def easiest_goals(searches):
    """The dense curves of every workload with another goal on its ladder, at the easiest."""
    dense = searches[searches.sparsity == 0]
    easiest = {}
    for error in scaling.goals(dense):  # the easiest last
        met = dense[f"steps@{error:g}"].notna()
        easiest |= dict.fromkeys(dense.workload[met], error)
    wanted = {name: error for name, error in easiest.items() if error > scaling.goal(name)}
    rows = dense[dense.workload.isin(wanted)]
    return scaling.curves(scaling.at_goals(rows, wanted))


@claim(
    "S7",
    "Momentum raises the critical batch size",
    paper="Momentum and Nesterov momentum extend perfect scaling to larger batches than SGD. (Here: the critical "
    "batch size, which more expensive small batches also raise.)",
    source="Shallue et al. 2019, figure 4",
    read="figures",
    rule="On a dense network, the critical batch size with momentum is over 1.25 times that with SGD; momentum over its whole "
    "range where all curves of the network and method have it.",
    above=1.25,
)
def critical_with_momentum(searches, curves, published_curves):
    return _over_sgd(searches, curves, published_curves, scaling.critical_ratio)


@claim(
    "S7b",
    "At the smallest batch, momentum takes the steps of SGD",
    paper="At small batches, SGD, momentum and Nesterov momentum are equal.",
    source="Shallue et al. 2019, figure 4",
    read="figures",
    rule="On a dense network, steps with momentum at the smallest batch size measured are within a factor of 1.25 of SGD's; "
    "momentum over its whole range where all curves of the network and method have it.",
    within=1.25,
)
def steps_at_smallest(searches, curves, published_curves):
    def smallest(above, below):
        return scaling.steps_ratio(above, below).effect[0]

    return _over_sgd(searches, curves, published_curves, smallest)


def _over_sgd(searches, curves, published_curves, compare):
    """A group per network and method, with momentum over its whole range and the result from 0.9 on
    in a note, or else with momentum only from 0.9 on, which decides nothing.
    """
    effects, notes, whole_range = {}, {}, ranges.whole_curves(searches)
    judged = {key for key in dense(curves) if key[1] in WITH_MOMENTUM}
    for key, curve, sgd in scaling.with_partner(curves, lambda key: (key[0], "sgd", *key[2:])):
        if key in judged:
            effects[key] = compare(curve, sgd)
        if key in judged & whole_range:
            high = compare(published_curves[key], sgd).row("r").values()
            notes[key] = "from 0.9 on: {:.2f} ({:.2f} to {:.2f})".format(*high)
    effects = pooled_images(effects)
    groups = rows(effects, is_shallue2019, lambda key, _: notes.get(key, ""))
    return marked(effects, groups, whole_range)
