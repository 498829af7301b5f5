"""What searches of this chapter share: stages of a length that is drawn for every trial, what a
step computes, and where a part's weights are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from lib.measuring.experiment import OfCell
from lib.methods.intervals import Interval
from lib.methods.method import Method

if TYPE_CHECKING:
    from torch import Tensor

REPLICATES, TRIALS = (1, 2, 3), 32
INPUTS, CLASSES = 64, 10  # of the digits


class InStages(OfCell):
    """A search by SGD in stages, all of one length, which is tuned beside the learning rate.

    Searches also have max_steps, lengths (interval of a stage's steps, rounded), seed (of their
    draws, plus the replicate), and `begin` and `step` of their `method`.
    """

    gradient = None  # of `method`

    def __post_init__(self):
        _ = self.cell  # its checks are ours

    @property
    def settings(self) -> dict:
        """All trials have to meet the hardest goal, so that the cheapest one is known."""
        return {"hits": self.trials, "max_steps": self.max_steps}

    @property
    def method(self) -> Method:
        """How weights follow from gradients; `drawn["stage"]` [T, 1] is the steps of a stage."""
        space = {"learning_rate": Interval(1e-4, 1.0), "stage": self.lengths}
        return Method(*2 * [type(self).__module__], space, self.begin, self.step, self.gradient)

    def first_weights(self, w: Tensor) -> Tensor:
        """From which trials start [T, P], for the whole network's w [T, P]."""
        return w

    def measure(self) -> pd.DataFrame:
        """A row per trial, as of `lib.measuring.one_cell.table`, with stage: its steps, a Sobol
        point of the interval.
        """
        import torch  # slow to import, and most chapters only read
        from scipy.stats import qmc

        from lib.measuring import one_cell

        sobol = qmc.Sobol(1, seed=self.seed + self.replicate)
        points = sobol.random_base2((self.trials - 1).bit_length())[: self.trials, 0]
        stage = self.lengths.at(points).round()
        trials = one_cell.start(self.cell)
        trials.w = self.first_weights(trials.w)
        trials.drawn["stage"] = torch.from_numpy(stage).float()[:, None]
        outcome = one_cell.train_cell(self.cell, trials=trials, method=self.method)
        return one_cell.table(self.cell, outcome).assign(stage=stage)


def multiply_adds(width: int | pd.Series) -> int | pd.Series:
    """Per example of the digits' MLP with two hidden layers of this width: forward, backward by
    weights and by activations; derivatives by the inputs are not needed.
    """
    return 2 * INPUTS * width + 3 * (width * width + width * CLASSES)


def with_costs(trials: pd.DataFrame, **costs: pd.DataFrame) -> pd.DataFrame:
    """The trials with COST@goal beside their steps@goal.

    costs: by name, a row for each of the steps@goal and a column for each of the trials.
    """
    names = trials.filter(like="steps@")
    each = {name.replace("steps", what): costs[what].loc[name] for name in names for what in costs}
    return trials.assign(**each)


def weights(sizes: Sequence[int]) -> int:
    """Weights and biases of layers of these sizes."""
    return sum(out * (fan_in + 1) for fan_in, out in itertools.pairwise(sizes))


def places(sizes: Sequence[int], *units: Tensor) -> Tensor:
    """Where the parameters of a part lie in the vector of layers of these sizes, in the order of
    the part's own; units: of every hidden layer, those that it has.
    """
    import torch

    kept = [torch.arange(sizes[0]), *units, torch.arange(sizes[-1])]
    found, at = [], 0
    for (fan_in, columns), (out, rows) in itertools.pairwise(zip(sizes, kept)):
        found += [(at + rows[:, None] * fan_in + columns).flatten(), at + out * fan_in + rows]
        at += out * (fan_in + 1)
    return torch.cat(found)
