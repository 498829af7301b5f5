"""What Lee et al. (2021) and Shallue et al. (2019) say of the shape of a curve, of its goal and of
momentum.
"""

import numpy as np

from lib.analysis import ranges, scaling
from lib.claims.claim import Change, Group, claim, ratio
from lib.claims.names import REPEATS, curve_title, is_lee2021, is_shallue2019, rows
from lib.methods import WITH_MOMENTUM
from lib.workloads.catalogue import WORKLOADS

# Times its first batch size, at least, perfect scaling goes on where it shows: two doublings
SPANNED = 4
LEAST = 5  # batch sizes of a curve of which a claim tells
POOLED = "a median over curves hid networks that disagree"


def dense(curves):
    return {
        key: c
        for key, c in curves.items()
        if key[3] == 0 and len(c.sizes) >= LEAST and key[0] not in REPEATS
    }


@claim(
    "L1",
    "Curves show three regimes",
    chapter="three_regimes",
    paper="Across workloads there is one general trend: perfect scaling, then diminishing returns, then maximal data parallelism.",
    source="Lee et al. 2021, abstract",
    rule="Of a dense network's curve of five batch sizes or more, 95 % of the draws from its searches show all three regimes. "
    "These are perfect scaling over two doublings, then diminishing returns, then two batch sizes on the floor, each to 20 %. "
    "Less than 5 % speak against it, but not where the missing regime may lie beyond the batch sizes measured.",
    above=0.5,
    scale="share",
    history=[
        Change(
            "2026-11-23",
            "more than half of the curves of eight or more sizes show all three by the definitions of the page",
            "judged by groups of data",
        ),
        Change(
            "2026-11-26",
            "the critical batch size lies over five times inside the batch sizes measured, in each group's median "
            "curve",
            "a property of the batch sizes chosen, and no test of three regimes",
        ),
        Change(
            "2026-11-27",
            "Of a dense network's curve of five batch sizes or more, 95 % of the draws from its "
            "searches show all three regimes. These are perfect scaling over two doublings, then "
            "diminishing returns, then two batch sizes on the floor, each to 20 %. Less than 5 % "
            "speak against it, but not where the regime that lacks may lie beyond the batch sizes "
            "measured.",
            "the same rule in plainer words",
        ),
    ],
)
def three_regimes(curves):
    return [shown(curve_title(key), curve, key[0]) for key, curve in dense(curves).items()]


def shown(name, curve, workload):
    """Whether a curve shows all three regimes, 1 or 0, and what 90 % of the curves drawn from its
    searches leave open.
    """
    sizes = curve.sizes[curve.met]
    points = curve.points()
    size = WORKLOADS[workload].train_size if workload in WORKLOADS else np.inf
    room = {"below": sizes[0] > 1, "above": 2 * sizes[-1] < size}
    drawn = scaling.draws(curve)[sizes.astype(int)]
    sees, may = all_three(sizes, drawn.to_numpy(), **room)
    [here], _ = all_three(sizes, points.steps.to_numpy()[None], **room)
    found = scaling.regimes(points)
    floor = (
        f"floor from {found.useful_end:,.0f}" if found.reaches_plateau else "no floor reached"
    )
    note = f"perfect scaling from {found.start:,.0f} to {found.perfect_end:,.0f}, {floor}"
    return Group(
        name,
        float(here),
        float(sees.mean() >= 0.95),
        float(may.mean() > 0.05),
        curve.n,
        is_lee2021(workload),
        note=note,
    )


def all_three(b, k, below, above):
    """Whether curves show all three regimes, and whether they may, if measured at more batch sizes:
    two of [draws].

    Shown are perfect scaling over a factor of SPANNED, diminishing returns, and at least two sizes
    on the floor. b, k: as of `scaling.regime_ends`.  below, above: whether there are batch sizes below and
    above those measured.
    """
    start, end, useful = scaling.regime_ends(b, k)
    scales, flattens, apart = end >= SPANNED * start, useful < b[-1], useful > end
    may_scale, may_flatten = scales | (below & (start == b[0])), flattens | above
    may_be_apart = apart | ~(scales & flattens)
    return scales & flattens & apart, may_scale & may_flatten & may_be_apart


@claim(
    "S2",
    "Another goal leaves the critical batch size in place",
    chapter="three_regimes",
    paper="Another goal error shifts the curve up or down; the transitions between its regimes stay.",
    source="Shallue et al. 2019",
    read="summary",
    rule="On a dense network, the critical batch size at the easiest goal of its ladder, over that at the goal at which its curve "
    "is read, is within a factor of 1.25 of one.",
    within=1.25,
    history=[
        Change(
            "2026-11-26",
            "within a factor of two, in the median over curves",
            "a factor of 1.25 counts as an effect everywhere; " + POOLED,
        )
    ],
)
def critical_by_goal(searches, curves):
    easiest = easiest_goals(searches)
    both = {
        key: (easiest[key], curve) for key, curve in dense(curves).items() if key in easiest
    }
    return rows(
        {key: scaling.critical_ratio(*pair) for key, pair in both.items()}, is_shallue2019
    )


def easiest_goals(searches):
    """The dense curves of every workload with another goal on its ladder, at the easiest."""
    dense = searches[searches.sparsity == 0]
    easiest = {}
    for error in scaling.goals(dense):  # the easiest last
        met = dense.workload[dense[f"steps@{error:g}"].notna()]
        easiest |= dict.fromkeys(met.unique(), error)
    wanted = {name: error for name, error in easiest.items() if error > scaling.goal(name)}
    rows = dense[dense.workload.isin(list(wanted))]
    return scaling.curves(scaling.at_goals(rows, wanted))


WHERE = Change(
    "2026-11-27",
    "the same, said to be over momentum's whole range wherever that is measured",
    "a network's curves are read so together or not at all",
)
NOT_SEPARATE = "any effect was enough; 1.25 counts as one everywhere; " + POOLED


@claim(
    "S7",
    "Momentum raises the critical batch size",
    chapter="three_regimes",
    paper="Momentum and Nesterov momentum extend perfect scaling to larger batches than SGD. (Here: the critical "
    "batch size, which more expensive small batches also raise.)",
    source="Shallue et al. 2019",
    read="summary",
    rule="On a dense network, the critical batch size with momentum is over 1.25 times that with SGD; momentum over its whole "
    "range where all curves of the network and method have it.",
    above=1.25,
    history=[
        Change(
            "2026-11-23",
            "exceeds that of SGD, in the median over all pairs of curves",
            "judged by data set",
        ),
        Change(
            "2026-11-26",
            "exceeds that of SGD, in the median over pairs of a data set, momentum at 0.9 or more",
            NOT_SEPARATE,
        ),
        WHERE,
    ],
)
def critical_with_momentum(searches, curves, published_curves):
    return _beside_sgd(searches, curves, published_curves, scaling.critical_ratio)


@claim(
    "S7b",
    "At the smallest batch, momentum takes the steps of SGD",
    chapter="three_regimes",
    paper="At small batches, SGD, momentum and Nesterov momentum are equal.",
    source="Shallue et al. 2019",
    read="summary",
    rule="On a dense network, steps with momentum at the smallest batch size measured are within a factor of 1.25 of SGD's; "
    "momentum over its whole range where all curves of the network and method have it.",
    within=1.25,
    history=[
        Change(
            "2026-11-26",
            "the same of the median over pairs of curves of a workload, momentum at 0.9 or more",
            POOLED,
        ),
        WHERE,
    ],
)
def steps_at_smallest(searches, curves, published_curves):
    def compare(above, below):
        return scaling.steps_ratio(above, below).effect[0]

    return _beside_sgd(searches, curves, published_curves, compare)


def _beside_sgd(searches, curves, published_curves, compare):
    """A group per network and method with momentum; where that is over the whole range, the
    published one in a note.
    """
    groups = []
    whole = ranges.whole_curves(searches)
    for key, curve in dense(curves).items():
        below = curves.get((key[0], "sgd", *key[2:]))
        if (
            key[1] not in WITH_MOMENTUM
            or below is None
            or (found := compare(curve, below)) is None
        ):
            continue
        name, note = curve_title(key), "momentum from 0.9 on alone"
        if key in whole:
            there = compare(published_curves[key], below).row("r").values()
            name, note = (
                f"{name} (whole range)",
                "from 0.9 on: {:.2f} ({:.2f} to {:.2f})".format(*there),
            )
        groups.append(ratio(name, found, is_shallue2019(key[0]), note))
    return groups
