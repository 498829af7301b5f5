"""The learning rates of winners: the usual rules for them, and the rate with momentum."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.scaling import SEARCH, mean_over, slope

POWERS = {"linear rule": 1.0, "square-root rule": 0.5, "no change": 0.0}
NEAR = 3  # times the fastest trial's steps
SIZES = 4  # batch sizes of a search whose slope counts
GROWTH = """
workload algorithm least most sizes searches growth growth_low growth_high effect
""".split()


def winners(trials: pd.DataFrame) -> pd.DataFrame:
    """The trial that first met the goal, per batch size where one did."""
    met = trials.dropna(subset="steps")
    return met.loc[met.groupby("batch_size").steps.idxmin()]


def builds_up_in(trials: pd.DataFrame) -> pd.Series:
    """The steps in which every trial's momentum builds up, 1 / (1 - momentum); one without
    momentum.
    """
    momentum = trials.momentum.fillna(0) if "momentum" in trials else pd.Series(0.0, trials.index)
    return 1 / (1 - momentum)


def effective(trials: pd.DataFrame) -> pd.Series:
    """The learning rate over one minus the momentum: what a step amounts to once the momentum has
    built up.
    """
    return trials.learning_rate * builds_up_in(trials)


def built_up(trials: pd.DataFrame) -> pd.DataFrame:
    """Trials whose momentum built up in less than a tenth of their steps: in others the `effective`
    rate says nothing.
    """
    return trials[builds_up_in(trials) < trials.steps / 10]


def fast(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials that met the goal within NEAR times the steps of the fastest of their search, and
    are `built_up`.
    """
    met = trials.dropna(subset="steps").reset_index(drop=True)
    point = ["workload", "algorithm", "batch_size", *SEARCH]
    return built_up(met[met.steps <= NEAR * met.groupby(point).steps.transform("min")])


def growth(trials: pd.DataFrame) -> pd.DataFrame:
    """How fast the best effective learning rate grows, a row per network and training method.

    trials: at their goals; of those NEAR the fastest of their search, the ones that are `built_up`
    count. Columns: workload, algorithm, least, most, sizes (batch sizes that count, how many),
    searches; growth, growth_low and growth_high (a factor per doubling) and effect (its `Effect`).
    The slope of a search of SIZES batch sizes or more is one value, Student's t over searches; of a
    single search the interval is that of the scatter of its trials.
    """
    if trials.empty:
        return pd.DataFrame(columns=GROWTH)
    rows = []
    for key, own in fast(trials).groupby(["workload", "algorithm"], sort=False):
        found = [
            slope(np.log2(search.batch_size), np.log(effective(search)))
            for _, search in own.groupby([*SEARCH])
            if search.batch_size.nunique() >= SIZES
        ]
        if found:
            effect, sizes = mean_over(found), own.batch_size
            counts = sizes.min(), sizes.max(), sizes.nunique(), len(found)
            rows.append((*key, *counts, *effect.row().values(), effect))
    return pd.DataFrame(rows, columns=GROWTH)
