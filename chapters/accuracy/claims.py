"""What Shallue et al. (2019) say of budgets and of errors on unseen examples, and the rules that
judge it.
"""

import functools

import numpy as np

from chapters.accuracy import fixed_budgets
from lib.claims.claim import Change, claim, difference, interval
from lib.claims.names import is_shallue2019, title
from lib.records import results
from lib.studies import plans

# points of test error for every doubling of the batch: one point over a batch 32 times as large
PER_DOUBLING = 0.2
ALONE = "one search: the interval is that of its batch sizes about their line"
ONE_LEVEL = "one level for all intervals; a network and not all of them is judged"


@functools.cache
def with_enough_steps():
    """`fixed_budgets.longest` of the networks with several searches, and of those with one."""
    several = results.read(plans.study("digits-smoothing"))
    return fixed_budgets.longest(several), fixed_budgets.longest(fixed_budgets.whole())


def slopes(found):
    """The groups of `fixed_budgets.risen` or `helped`, of several searches where there are, by
    network and smoothing.
    """
    several, single = map(found, with_enough_steps())
    effects = single | {name: own for name, own in several.items() if own.n > 1}
    groups = []
    for name, own in effects.items():
        work, smoothing = name if isinstance(name, tuple) else (name, 0)
        words = title(work)
        if smoothing:
            words += f", smoothing {smoothing:g}"
        if np.isfinite(own.value):
            theirs = is_shallue2019(work)
            note = ALONE * (own.n == 1)
            group = difference(words, own, theirs, note, times=100)
            groups.append(group)
    return groups


@claim(
    "S9",
    "Label smoothing helps more at large batches",
    chapter="accuracy",
    paper="Label smoothing helps more at large batch sizes.",
    source="Shallue et al. 2019",
    rule="On a network, the test error that label smoothing saves rises by over 0.2 points with every doubling of the batch.",
    above=PER_DOUBLING,
    scale="points",
    read="summary",
    history=[
        Change(
            "2026-11-25",
            "rises at all (95 %), of one search a network",
            "several searches were made",
        ),
        Change(
            "2026-11-26",
            "rises at all (95 %), for every network and smoothing",
            "an effect must exceed what S14 calls none",
        ),
        Change(
            "2026-11-27",
            "On a network, the test error that a smoothing saves rises by over 0.2 points with "
            "every doubling of the batch.",
            "the same rule in plainer words",
        ),
    ],
)
def helped():
    return slopes(fixed_budgets.helped)


@claim(
    "S13",
    "A budget of steps favours large batches, of epochs small",
    chapter="accuracy",
    paper="A budget of steps favours large batches, one of epochs small batches.",
    source="Shallue et al. 2019",
    rule="On a network, at the smallest budget that all batch sizes share, the favoured end's lowest validation error is lower by "
    "over a point.",
    above=1.0,
    scale="points",
    read="summary",
    history=[
        Change(
            "2026-11-26",
            "lower at all, on the network where it is least",
            "an effect must be one that matters",
        )
    ],
)
def favoured():
    groups = []
    for name, (steps, epochs) in fixed_budgets.by_workload(fixed_budgets.whole()).items():
        for kind, best, column, sign in (
            ("few steps", steps, "budget", 1),
            ("few epochs", epochs, "examples", -1),
        ):
            if (found := fixed_budgets.between_ends(best, column, sign)) is not None:
                ends = (100 * end for end in found)
                groups.append(
                    interval(
                        f"{title(name)}, {kind}", *ends, 1, is_shallue2019(name), "one search"
                    )
                )
    return groups


@claim(
    "S14",
    "Larger batches do not cost accuracy",
    chapter="accuracy",
    paper="There is no evidence that larger batch sizes degrade out-of-sample performance.",
    source="Shallue et al. 2019, abstract",
    rule="On a network, where all batch sizes had steps enough, test error rises by less than 0.2 points with every doubling.",
    below=PER_DOUBLING,
    scale="points",
    history=[
        Change(
            "2026-11-25",
            "the same bound (95 %), of one search a network",
            "several searches were made",
        ),
        Change("2026-11-26", "the same bound (95 %), for every network", ONE_LEVEL),
    ],
)
def risen():
    return slopes(fixed_budgets.risen)
