"""What all searches of this chapter share: the whole network's search, where records lie, what a
step computes, and stages whose length is drawn for every trial beside its learning rate.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.measuring.experiment import Collection, OfCell
from lib.methods.intervals import Interval
from lib.methods.method import Method
from lib.own import folder_name
from lib.studies.cells import Cell

if TYPE_CHECKING:
    from torch import Tensor


class OfWhole(OfCell):
    """A search by parts that is compared with plain SGD on the whole network, `cell`.

    Searches also have the field max_steps.
    """

    def __post_init__(self):
        _ = self.cell  # its checks are ours

    @property
    def hits(self) -> int:
        """Trials that have to meet the hardest goal: all, so that the cheapest one is known."""
        return self.trials

    @property
    def settings(self) -> dict:
        return {"hits": self.hits, "max_steps": self.max_steps}


def collection(
    title: str, named: Callable[[OfWhole], str], planned: Callable[[], Sequence], about: str
) -> Collection:
    """The records of one kind of search, in data/TITLE/WORKLOAD/NAME-DIGEST.csv; named: the
    beginning of a record's name; about: what `python -m lib` says of them.
    """

    def file(one: OfWhole) -> str:
        return f"{folder_name(one.workload)}/{named(one)}"

    return Collection(title, "searches", file, planned, f"{about}, into data/{title}/.")


def with_costs(trials: pd.DataFrame, by: list[str], **costs: Callable) -> pd.DataFrame:
    """The trials with NAME@goal beside each steps@goal.

    Args:
        trials: of a `Collection`.
        by: fields that a cost depends on; it is called for trials that share them.
        **costs: from steps to a goal (NaN where none) and stages [trials], and the fields, to a
            cost [trials].
    """
    goals = [name.partition("@")[2] for name in trials if name.startswith("steps@")]
    for (name, cost), goal in itertools.product(costs.items(), goals):
        trials[f"{name}@{goal}"] = np.nan
        for key, own in trials.groupby(by):
            steps, stage = own[f"steps@{goal}"].to_numpy(), own.stage.to_numpy()
            trials.loc[own.index, f"{name}@{goal}"] = cost(steps, stage, *key)
    return trials


def multiply_adds(sizes: Iterable[int]) -> int:
    """Per example, for layers of these sizes from the inputs to the outputs: forward, backward by
    weights and by activations.

    Derivatives by the inputs are not needed, so the first matrix counts twice and all others three
    times.
    """
    first, *rest = (a * b for a, b in itertools.pairwise(sizes))
    return 2 * first + 3 * sum(rest)


def weights(sizes: Iterable[int]) -> int:
    """Weights and biases of layers of these sizes."""
    return sum(out * (fan_in + 1) for fan_in, out in itertools.pairwise(sizes))


def stages(steps: Interval, trials: int, seed: int) -> np.ndarray:
    """Steps of a stage for every trial [trials]: whole numbers, Sobol points of the interval."""
    from scipy.stats import qmc  # slow to import, and a page that only reads draws nothing

    points = qmc.Sobol(1, seed=seed).random_base2((trials - 1).bit_length())[:trials, 0]
    return steps.at(points).round()


def measured(
    cell: Cell, method: Method, stage: np.ndarray, w: Tensor | None = None
) -> pd.DataFrame:
    """Train a cell's trials by this method, which knows `stage` [trials] as `drawn["stage"]`, from
    w [trials, P] if given.

    A row per trial, as of `lib.measuring.one_cell.table`, with stage.
    """
    import torch  # slow to import, and most chapters only read

    from lib.measuring import one_cell

    trials = one_cell.start(cell)
    trials.w = trials.w if w is None else w
    trials.drawn["stage"] = torch.from_numpy(stage).float()[:, None]
    outcome = one_cell.train_cell(cell, trials=trials, method=method)
    return one_cell.table(cell, outcome).assign(stage=stage)
