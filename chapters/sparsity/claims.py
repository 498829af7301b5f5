"""What Lee et al. (2020, 2021) say of pruned networks, and the rules that judge it."""

import numpy as np

from lib.analysis import scaling
from lib.claims.claim import Change, claim, ratio
from lib.claims.names import curve_title, is_lee2021, rows, tested_form
from lib.methods import WITH_MOMENTUM

LEAST = 5  # batch sizes of a curve whose form is tested
POOLED = "the median over pairs of curves of a data set hid networks that disagree"


def sparsest(curves):
    """The curve of every network, method and way of pruning at its highest sparsity, with its dense
    one: key -> both.
    """
    highest = {}
    for key in curves:
        if (
            key[3] > 0
            and key[2] == "connection-sensitivity"
            and scaling.dense_key(key) in curves
        ):
            highest[key[:2]] = max(highest.get(key[:2], key), key, key=lambda k: k[3])
    return {key: (curves[key], curves[scaling.dense_key(key)]) for key in highest.values()}


@claim(
    "L2",
    "Pruned networks' curves have the dense ones' form",
    chapter="sparsity",
    paper="The trend holds irrespective of the sparsity level.",
    source="Lee et al. 2021, abstract of an earlier version",
    rule="On a network, the root mean square factor by which the sparsest curve lies off its c₁/B + c₂ is less than 1.1 times that "
    "of the dense curve, at the batch sizes of both (five or more; three searches or more).",
    below=1.1,
    history=[
        Change(
            "2026-11-26",
            "curves of eight or more batch sizes lie off their line by less than 1.5, in the median curve",
            "straight power laws passed it on 18 of 23 sparse curves",
        )
    ],
)
def form_over_dense(curves):
    effects = {}
    notes = {}
    for key, both in sparsest(curves).items():
        sparse, dense = scaling.alike(*both)
        if min(sparse.n, dense.n) >= scaling.ENOUGH and len(sparse.sizes) >= LEAST:
            effects[key] = scaling.estimate(_off_the_lines, sparse, dense)
            tested = scaling.tests_of_form({key: sparse}).iterrows()  # none of a short one
            notes[key] = "".join(f"the pruned curve: {tested_form(row)}" for _, row in tested)
    return rows(effects, is_lee2021, lambda key, effect: notes[key])


def _off_the_lines(*curves):
    """ln of how far one curve is off its c1/B + c2 less that of another: root mean squares of
    ln K* [k, m], [k].
    """
    above, below = (np.sqrt(scaling.fit(*own).loss / len(own[0])) for own in curves)
    return above - below


@claim(
    "L3",
    "Pruned networks need more steps at every batch size",
    chapter="sparsity",
    paper="Training is harder under sparsity: more steps to the same goal at every batch size.",
    source="Lee et al. 2021, abstract",
    rule="On a network, steps at the highest sparsity are over 1.25 times the dense network's at every batch size, in the mean of "
    "searches; shown is the batch size at which that is least sure.",
    above=1.25,
    history=[
        Change(
            "2026-11-26",
            "over one, pooled over curves, at every sparsity and batch size",
            POOLED,
        )
    ],
)
def steps_over_dense(curves):
    costs = {key: scaling.steps_ratio(*both) for key, both in sparsest(curves).items()}
    least = {key: own.loc[own.ratio_low.idxmin()] for key, own in costs.items()}

    def note(key, effect):
        return f"batch size {least[key].batch_size:,}{_borrowed(effect)}"

    return rows({key: row.effect for key, row in least.items()}, is_lee2021, note)


@claim(
    "L4",
    "Larger batches help pruned networks no less (here: over 0.8 times)",
    chapter="sparsity",
    paper="Data parallelism in sparse training is no worse than in dense training.",
    source="Lee et al. 2021, abstract of an earlier version; Lee et al. 2020, abstract",
    rule="On a network, the critical batch size at the highest sparsity is over 0.8 times the dense one's.",
    above=0.8,
    history=[
        Change(
            "2026-11-26",
            "over half the dense one's, in the median pair of every data set",
            POOLED,
        ),
        Change(
            "2026-11-23",
            "over half the dense one's at every sparsity, in the median over all pairs",
            "data sets differ",
        ),
    ],
)
def critical_over_dense(curves):
    return rows(
        critical_ratios(curves),
        is_lee2021,
        lambda key, found: _borrowed(found).removeprefix("; "),
    )


@claim(
    "L5",
    "With momentum, pruning makes the critical batch size over twice as large (paper: can be much larger)",
    chapter="sparsity",
    paper="With momentum-based algorithms, perfect scaling can break at a much larger batch size for sparse networks than for "
    "dense ones. (Here: the critical batch size, on each network. That it can happen on another is not refuted.)",
    source="Lee et al. 2020, abstract",
    rule="On a network, with momentum, the critical batch size at the highest sparsity is over twice the dense one's. Nesterov "
    "momentum is shown beside it, without ★, which marks momentum alone; L4 judges the direction.",
    above=2.0,
    history=[
        Change(
            "2026-11-26",
            "over twice, with momentum or Nesterov, in the median pair of every data set",
            POOLED,
        ),
        Change("2026-11-23", "over twice, in the median over all pairs", "data sets differ"),
    ],
)
def critical_with_momentum(curves):
    groups = []
    for key, found in critical_ratios(curves).items():
        if key[1] in WITH_MOMENTUM:
            side = "larger" if found.low > 0 else "smaller" if found.high < 0 else "not decided"
            note = f"direction: {side}{_borrowed(found)}"
            groups.append(
                ratio(
                    curve_title(key), found, is_lee2021(key[0]) and key[1] == "momentum", note
                )
            )
    return groups


def critical_ratios(curves):
    """ln of the critical batch size at the highest sparsity over the dense one's, by key, where
    both have three batch sizes.
    """
    found = {key: scaling.critical_ratio(*both) for key, both in sparsest(curves).items()}
    return {key: effect for key, effect in found.items() if effect is not None}


def _borrowed(effect):
    """A note where few searches borrow their scatter."""
    return (
        "; the scatter of searches is borrowed from digits" if effect.n < scaling.ENOUGH else ""
    )
