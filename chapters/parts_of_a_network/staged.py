"""Systems that train in stages: how long a stage takes is drawn for every trial, beside its
learning rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lib.methods.intervals import Interval
from lib.methods.method import Method
from lib.studies.cells import Cell

if TYPE_CHECKING:
    from torch import Tensor


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

    from lib.engine import lockstep
    from lib.measuring import one_cell
    from lib.workloads import datasets

    work, trials = cell.work, one_cell.start(cell)
    trials.w = trials.w if w is None else w
    trials.drawn["stage"] = torch.from_numpy(stage).float()[:, None]
    outcome = lockstep.train(
        one_cell.executor(cell),
        trials,
        work.train(cell.split),
        datasets.load(work.dataset, cell.split).validation,
        method=method,
        batch_size=cell.batch_size,
        goals=work.goals,
        max_steps=cell.max_steps,
        order_seed=cell.replicate,
        hits=cell.hits,
    )
    return one_cell.table(cell, outcome).assign(stage=stage)
