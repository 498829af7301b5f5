"""Branches of a run (`branches`): the examples that each batch size takes to the next goal, and its
critical batch size.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling

RULE, KEPT = "the square-root rule", "one learning rate"  # by which branches are trained


def to_goal(checks: pd.DataFrame) -> pd.DataFrame:
    """Examples to the goal, a row per branch: way, at, goal, size, order and took (not a number if
    the goal was missed).

    way: how the learning rate is set, by the RULE or KEPT at the run's own; both are the same at
    the batch size of the run.
    """
    met = checks.assign(took=checks.seen.where(checks.cost <= checks.goal).astype(float))
    branch = ["at", "goal", "size", "order", "power", "batch_size"]
    took = met.groupby(branch).took.min().reset_index()
    kept = (took.power == 0) | (took["size"] == took.batch_size)
    return pd.concat([took[took.power > 0].assign(way=RULE), took[kept].assign(way=KEPT)])


def critical(branches: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes, a row per way and point, in the order of steps: way, at, goal,
    critical, low, high (90 %), orders, decided.

    Examples to the goal are fitted as c1 + c2 B in each order of the examples, at the sizes that
    every point has; their ratio c1 / c2 is the batch that takes twice the fewest.  critical: the
    geometric mean over orders.  decided: whether examples grow with every batch size, in the mean,
    as that line does; if not, the line is no model of them. Orders in which a size missed the goal
    are left out, and so is all of fewer than three sizes.
    """
    points = branches.groupby(["way", "size"])["at"].transform("nunique")
    every = branches.groupby("way")["at"].transform("nunique")
    found = []
    for point, own in branches[points == every].groupby(["way", "at", "goal"]):
        logs = np.log(own.pivot(index="order", columns="size", values="took")).dropna()
        if len(logs.columns) < 3 or not len(logs):
            continue
        sizes = logs.columns.to_numpy(float)
        steps = logs.to_numpy() - np.log(sizes)
        bends = scaling.log_critical(sizes, steps)
        effect = scaling.mean_of(bends)
        decided = bool(logs.mean().is_monotonic_increasing)
        found.append((*point, *effect.row().values(), effect.n, decided))
    columns = ["way", "at", "goal", "critical", "low", "high", "orders", "decided"]
    return pd.DataFrame(found, columns=columns)


def noise_at(noise: pd.DataFrame, steps: pd.Series) -> np.ndarray:
    """Noise scales at steps of a run, interpolated between the points where it was followed, in the
    order of steps, logarithm on logarithm.
    """
    return np.exp(np.interp(np.log(steps), np.log(noise.step), np.log(noise.noise_scale)))
