"""What Shallue et al. (2019) say about budgets and about errors on unseen examples, and the rules
that judge these claims.
"""

import functools

import numpy as np
import pandas as pd

from chapters.accuracy import fixed_budgets
from lib.analysis.fixed_budgets import whole
from lib.claims.claim import claim, difference, finding, interval
from lib.claims.names import is_shallue2019, title
from lib.records import results
from lib.studies import plans

# points of test error for every doubling of the batch: one point over a batch 32 times as large
PER_DOUBLING = 0.2
HUNDRED = -1  # replicate of the search of a hundred trials, on the split of another
ALONE = "one search: the interval is that of its batch sizes about their line"


@functools.cache
def with_enough_steps():
    """`fixed_budgets.longest` for every search: several on the digits, and the single search of a
    hundred trials per network.
    """
    several = fixed_budgets.longest(results.read(plans.study("digits-smoothing")))
    single = fixed_budgets.longest(whole())
    return pd.concat([several, single.assign(replicate=HUNDRED)], ignore_index=True)


def slopes(trends):
    """A group per network and smoothing; trends: `fixed_budgets.risen` or `helped`."""
    groups = []
    for key, effect in trends(with_enough_steps()).items():
        network, smoothing = key if isinstance(key, tuple) else (key, 0)
        name = title(network) + f", smoothing {smoothing:g}" * bool(smoothing)
        if np.isfinite(effect.value):
            note = ALONE * (effect.n == 1)
            theirs = is_shallue2019(network)
            groups.append(difference(name, effect, theirs, note, 100, decides=effect.n > 1))
    return groups


@claim(
    "S9",
    "Label smoothing helps more at large batches",
    paper="Label smoothing helps more at large batch sizes.",
    source="Shallue et al. 2019, figure 7",
    rule="On a network, the test error that label smoothing saves rises by over 0.2 points with every doubling of the batch.",
    above=PER_DOUBLING,
    scale="points a doubling",
    read="figures",
)
def helped():
    return slopes(fixed_budgets.helped)


@finding(
    "S13",
    "A budget of steps favours large batches, of epochs small",
    paper="A budget of steps favours large batches, one of epochs small batches.",
    source="Shallue et al. 2019",
    scale="points a doubling",
    read="summary",
    shown="How much lower the favoured end's lowest validation error is, at the smallest "
    "budget that all batch sizes share, in points. At a budget small enough this "
    "holds by construction.",
)
def favoured():
    groups = []
    kinds = ("few steps", "budget", 1), ("few epochs", "examples", -1)
    for name, ladders in fixed_budgets.by_workload().items():
        for best, (kind, column, sign) in zip(ladders, kinds):
            ends = fixed_budgets.between_ends(best, column, sign)
            if ends is not None:
                points = [100 * end for end in ends]
                network, theirs = f"{title(name)}, {kind}", is_shallue2019(name)
                groups.append(interval(network, points, 1, theirs, "one search"))
    return groups


@claim(
    "S14",
    "Larger batches do not cost accuracy (here: 0.2 points a doubling)",
    paper="There is no evidence that larger batch sizes degrade out-of-sample performance.",
    source="Shallue et al. 2019, abstract",
    rule="On a network, where all batch sizes had enough steps, test error rises by less than 0.2 points with every doubling.",
    below=PER_DOUBLING,
    scale="points a doubling",
)
def risen():
    return slopes(fixed_budgets.risen)
