"""Curves, searches and paths of the noisy quadratic model, in the form of trained networks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lib.analysis.noisy_quadratic import Model, best, steps
from lib.methods import spaces

POINTS = 60  # along a path


def curve(model: Model, batch_sizes: np.ndarray, rates: np.ndarray, **grid: tuple) -> pd.DataFrame:
    """`best` as rows: batch_size, steps, rate, momentum; sizes at which the target is not reached
    are left out.
    """
    found, points = best(model, batch_sizes, rates, **grid)
    rows = pd.DataFrame(points, columns=["rate", "momentum", "average"]).drop(columns="average")
    rows = rows.assign(batch_size=batch_sizes, steps=found)
    return rows[np.isfinite(rows.steps)].reset_index(drop=True)


def searched(
    model: Model, batch_sizes: Iterable[float], trials: int, replicate: int
) -> pd.DataFrame:
    """The result of a search over `trials` learning rates per batch size with SGD, as a table of
    `lib.records.results.read`.

    Rates come from the sequence of every search of this book, doubled so that they reach the edge
    of stability.  batch_sizes: whole numbers.
    """
    tried = 2 * spaces.draw("lee2021", "sgd", trials, replicate=replicate)["learning_rate"]
    found = np.array([steps(model, batch_sizes, rate) for rate in tried])  # [trials, sizes]
    met = np.where(np.isinf(found), np.nan, found).T
    last = np.nanmax(met, axis=1, initial=0)
    table = pd.DataFrame(
        {
            "batch_size": np.repeat(np.asarray(batch_sizes, int), trials),
            "steps": met.ravel(),
            "last_step": np.repeat(last, trials),
        }
    )
    fixed = {"workload": "quadratic", "algorithm": "sgd", "pruning": "none", "status": "complete"}
    fixed |= {
        "sparsity": 0.0,
        "trials": trials,
        "replicate": replicate,
        "split": 0,
        "goal": model.target,
    }
    table = table.assign(**fixed, **{f"steps@{model.target:g}": table.steps})
    return table[table.last_step > 0]


def path(model: Model, batch_size: float, rate: float, count: float) -> pd.DataFrame:
    """Points along SGD up to `count` steps, as rows of `noise_scale.follow`: step, square (expected
    |G|^2), trace (tr Sigma).
    """
    at = np.unique(np.geomspace(1, count, POINTS).round())
    p = (1 - rate * model.curvature) ** 2
    floor = rate**2 * model.noise / batch_size / (1 - p)
    squares = (model.square - floor) * p ** at[:, None] + floor
    square = squares @ model.curvature**2
    about = {"workload": "quadratic", "algorithm": "sgd", "sparsity": 0.0}
    about |= dict.fromkeys(("replicate", "split", "trial"), 0)
    found = {"batch_size": batch_size, "step": at, "square": square, "trace": model.noise.sum()}
    return pd.DataFrame(about | found)
