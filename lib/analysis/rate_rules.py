"""The learning rates of winners: the usual rules for them, and the rate with momentum."""

from __future__ import annotations

import pandas as pd

POWERS = {"linear rule": 1.0, "square-root rule": 0.5, "no change": 0.0}


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
