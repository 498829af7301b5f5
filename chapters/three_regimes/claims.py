"""What Lee et al. (2021) and Shallue et al. (2019) say of the shape of a curve, of its goal and of
momentum.
"""

from dataclasses import replace

import numpy as np

from lib.analysis import ranges, scaling
from lib.claims.claim import Change, claim, difference
from lib.claims.names import (
    REPEATS,
    bent,
    curve_title,
    is_lee2021,
    is_shallue2019,
    marked,
    pooled_images,
    rows,
)
from lib.methods import WITH_MOMENTUM

LEAST = 5  # batch sizes of a curve of which a claim tells
FOURFOLD = 4  # how far the first and the last stretch of a curve reach
PERFECT, FLOOR = 0.75, 0.25  # elasticities between which returns diminish
STRAIGHT = 0.5  # of a made-up curve without regimes
TODAY = "2026-11-29"
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
    rule="On a dense network's curve of five batch sizes or more, steps fall as B to a power of over 3/4 in the first fourfold of "
    "the batch sizes, and of under 1/4 in the last. Shown is the lesser of the two margins; both powers are beside it.",
    above=0.0,
    scale="number",
    tried=("c₁/B + c₂ with its C", "steps as 1/√B", "steps that do not fall"),
    since=TODAY,
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
            TODAY,
            "95 % of the draws from a curve's searches show perfect scaling over two doublings, then diminishing returns, then "
            "two batch sizes on the floor, each to 20 %; less than 5 % speak against it, unless a regime may lie beyond the sizes",
            "on images it said nothing of flat, rising and straight curves alike, and yes of at most 8 % of exact hyperbolas",
        ),
    ],
)
def three_regimes(curves, searches):
    whole = ranges.whole_curves(searches)
    return [margin(key, curve, key in whole) for key, curve in dense(curves).items()]


def margin(key, curve, whole=True):
    """The group of by how much a curve's elasticities clear PERFECT and FLOOR, the lesser of both.

    Both have to clear them, so that the interval's ends are the lesser ones, too.
    """
    first, last = scaling.estimate(elasticities, curve)
    steep = replace(first, value=first.value - PERFECT)
    flat = replace(last, value=FLOOR - last.value, below=last.above, above=last.below)
    nearer = min(steep, flat, key=lambda effect: effect.value)
    group = difference(curve_title(key), nearer, is_lee2021(key[0]))
    return replace(
        group,
        power=power(curve, first, last),
        low=min(steep.low, flat.low),
        high=min(steep.high, flat.high),
        note="; ".join([elasticity_note(first, last), *bent(key, whole)]),
        decides=not bent(key, whole),
    )


def power(curve, first, last):
    """How often the rule says yes of a curve of these batch sizes and this scatter that is c1/B + c2
    with its C (in the middle of the sizes, where they do not have it between them), that is
    straight on logarithms, and that does not fall.
    """
    random = np.random.default_rng(0)
    ends = np.log(curve.sizes[[0, -1]])
    [bend] = scaling.fit(curve.sizes, curve.means).bend
    bend = bend if ends[0] < bend < ends[1] else ends.mean()
    line = np.log1p(np.exp(bend) / curve.sizes)[None]
    made = [elasticities((curve.sizes, line))[0], np.full(2, STRAIGHT), np.zeros(2)]
    yes = []
    for truth in made:
        clears = True
        for effect, value, edge, side in zip((first, last), truth, (PERFECT, FLOOR), (1, -1)):
            low, _ = scaling.drawn(effect, side * (value - edge), random)
            clears = clears & (low > 0)
        yes.append(float(np.mean(clears)))
    return tuple(yes)


def elasticity_note(first, last):
    words = "power {:.2f} ({:.2f} to {:.2f})"
    ends = (words.format(*effect.row(log=False).values()) for effect in (first, last))
    return "first {}, last {}".format(*ends)


def elasticities(own):
    """-d ln K / d ln B over the first and over the last fourfold of the batch sizes, [k, 2].

    own: sizes [m] and ln K* [k, m].
    """
    sizes, logs = own
    start = np.flatnonzero(sizes <= FOURFOLD * sizes[0])[-1]
    end = np.flatnonzero(sizes >= sizes[-1] / FOURFOLD)[0]
    places = np.log(sizes)
    first = (logs[:, 0] - logs[:, start]) / (places[start] - places[0])
    last = (logs[:, end] - logs[:, -1]) / (places[-1] - places[end])
    return np.stack([first, last], 1)


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
    easiest, whole = easiest_goals(searches), ranges.whole_curves(searches)
    found = {
        key: scaling.critical_ratio(easiest[key], curve)
        for key, curve in dense(curves).items()
        if key in easiest
    }
    groups = rows(pooled_images(found), is_shallue2019)
    return marked(found, groups, whole)


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
    """A group per network and method with momentum over its whole range, or else from 0.9 on, which
    decides nothing; of the former, the latter in a note.
    """
    effects, notes, whole = {}, {}, ranges.whole_curves(searches)
    for key, curve in dense(curves).items():
        below = curves.get((key[0], "sgd", *key[2:]))
        if key[1] in WITH_MOMENTUM and below is not None:
            effects[key] = compare(curve, below)
            if key in whole:
                there = compare(published_curves[key], below).row("r").values()
                notes[key] = "from 0.9 on: {:.2f} ({:.2f} to {:.2f})".format(*there)
    effects = {key: effect for key, effect in effects.items() if effect is not None}
    groups = rows(pooled_images(effects), is_shallue2019, lambda key, _: notes.get(key, ""))
    return marked(effects, groups, whole)
