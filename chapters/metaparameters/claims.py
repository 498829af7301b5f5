"""What Shallue et al. (2019) and Marek et al. (2025) say of tuning, and the rules that judge it."""

import math
from dataclasses import replace

import numpy as np

from chapters.metaparameters import fixed_budgets
from lib.analysis import ranges
from lib.analysis.fixed_budgets import whole
from lib.analysis.ranges import POWERS, growth
from lib.analysis.scaling import Effect
from lib.claims.claim import Change, claim, interval
from lib.claims.names import REPEATS, is_shallue2019, rows, title

SUMMARISED = "Shallue et al. 2019"
EFFECTIVE = ("sgd", "momentum", "nesterov")  # methods with an effective learning rate
PER_DOUBLING = 1.05  # 1.25, what counts as an effect, over a batch 32 times as large
LONG = 5  # batch sizes from which on a slope is judged
ALONE = "one search: the interval is that of its fast trials about their line"
ARTEFACT = "effective rates of trials too short for their momentum bent the slope; two digits networks stood for all"

TWICE = Change(
    "2026-11-27",
    "the same rule, searches of FC-128×3 on all of MNIST counted under two names",
    "they are the same searches",
)


def slopes(trials):
    """`growth` of every dense curve of methods with an effective learning rate at LONG
    batch sizes or more.
    """
    once = ~trials.workload.isin(REPEATS)
    dense = trials[(trials.sparsity == 0) & trials.algorithm.isin(EFFECTIVE) & once]
    found = growth(dense)
    return [row for row in found.itertuples() if row.sizes >= LONG]


@claim(
    "S10",
    "The best learning rate rises with the batch size",
    chapter="metaparameters",
    paper="The best effective learning rate rises with the batch size.",
    source=SUMMARISED,
    rule="On a network, the effective learning rate of fast trials grows by over 1.05 times with every doubling of the batch, "
    "which is 1.25 over five doublings.",
    above=PER_DOUBLING,
    read="summary",
    history=[
        Change(
            "2026-11-26",
            "grows by a factor above one, on both digits networks, over trials of one search",
            ARTEFACT,
        ),
        TWICE,
    ],
)
def best_rate(trials):
    return _rates(trials, slopes(trials))


def _rates(trials, growth):
    """A group per network and method of these rows of `slopes`."""
    crowded = ranges.marks(ranges.at_edges(trials[trials.sparsity == 0]))
    found = {(row.workload, row.algorithm): row for row in growth}

    def note(key, effect):
        mark = crowded.get((*key, "connection-sensitivity", 0.0))
        words = [ALONE] if found[key].searches == 1 else []
        if mark:
            words.append(f"of winners, {mark}")
        return "; ".join(words)

    return rows({key: row.effect for key, row in found.items()}, is_shallue2019, note)


@claim(
    "S10b",
    "No simple rule gives the best learning rate",
    chapter="metaparameters",
    paper="The best effective learning rate follows neither the linear nor the square-root rule consistently.",
    source=SUMMARISED,
    rule="On a network, its growth with every doubling differs from that of the nearer rule, 2 or √2, by a factor of over 1.05.",
    above=PER_DOUBLING,
    read="summary",
    history=[
        Change(
            "2026-11-26",
            "either rule takes over twice the tuned steps at more than half of the batch sizes, on digits",
            "nearly any smooth rule passed, from one winner",
        ),
        TWICE,
        Change(
            "2026-11-27",
            "the same rule, curves whose winners lie at the upper edge of the rate counted with both ends",
            "such a growth is a bound from below",
        ),
        Change(
            "2026-11-27",
            "On a network, its growth with every doubling lies off that of the nearer rule, 2 or "
            "√2, by over 1.05 times.",
            "the same rule in plainer words",
        ),
        Change(
            "2026-11-28",
            "the same, curves whose winners lie at the upper edge open above alone",
            "their growth may be that of the rule above it, so that they may lie off it by nothing",
        ),
    ],
)
def off_the_rules(trials):
    groups, growth = [], slopes(trials)
    for group, row in zip(_rates(trials, growth), growth, strict=True):
        effect, low, high = np.exp(_from_rules(row.effect))
        if "upper edge of learning rate" in group.note:
            # Such winners bound the growth from below: it may be that of a rule above it
            low = np.exp(max(row.effect.low - np.log(2), 0.0))
            high = math.inf
        groups.append(replace(group, effect=float(effect), low=float(low), high=float(high)))
    return groups


def _from_rules(rate: Effect) -> tuple[float, float, float]:
    """How far a growth per doubling, as a logarithm, lies from that of the nearer rule, linear or
    square root; low, high.
    """
    rules = np.log(2) * np.array([POWERS["linear rule"], POWERS["square-root rule"]])
    tried = np.append(np.linspace(rate.low, rate.high, 1001), rate.value)
    *inside, here = np.abs(tried[:, None] - rules).min(1).tolist()
    return here, min(inside), max(inside)


@claim(
    "S12",
    "Good hyperparameters: more at fixed steps, fewer at fixed epochs",
    chapter="metaparameters",
    paper="The region of metaparameters that reach the goal grows with the batch size at fixed steps and shrinks at fixed epochs.",
    source=SUMMARISED,
    rule="On a network, from the smallest batch to the largest, over 5 % of the trials are gained at fixed steps, and lost at "
    "fixed epochs; shown is the lesser of the two.",
    above=0.05,
    scale="share",
    read="summary",
    history=[
        Change(
            "2026-11-26",
            "any share (95 %), on every workload",
            "an effect must be one that matters",
        )
    ],
)
def region_moved():
    return _of_trials(
        lambda own: fixed_budgets.moved(fixed_budgets.shares(fixed_budgets.maps(own)))
    )


@claim(
    "S15",
    "In broad searches, more trials fail at small batches",
    chapter="metaparameters",
    paper="In a broad search space more trials fail at small batches than at large ones: with Nesterov momentum on CIFAR-10, "
    "108 of 273 at batch size 2 and 31 of 190 at 4,096, in spaces that vary with the batch size.",
    source="Shallue et al. 2019, counts of trials in the notes to the released data, in our words",
    rule="On a network, the share of trials that fail at the smallest batch exceeds that at the largest by over 5 %, within "
    "equal steps.",
    above=0.05,
    scale="share",
    read="notes",
    history=[
        Change(
            "2026-11-26",
            "exceeds it at all, on every workload",
            "an effect must be one that matters",
        )
    ],
)
def lost():
    return _of_trials(fixed_budgets.lost)


def _of_trials(measure):
    """A group per network on which a share and its interval are known, of trials run to budgets."""
    trials, groups = whole(), []
    for name, own in trials[trials.label_smoothing == 0].groupby("workload", sort=False):
        note = (
            f"one search: the interval is that of {int(own.trials.max())} trials a batch size"
        )
        if (found := measure(own)) is not None:
            groups.append(interval(title(name), *found, 1, is_shallue2019(name), note))
    return groups
