"""Branches of a run (`branches`): the examples that each batch size takes to the next goal, and its
critical batch size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect

RULE, KEPT = "the square-root rule", "one learning rate"  # by which branches are trained
POINT = ["at", "goal", "size", "order"]


def to_goal(checks: pd.DataFrame) -> pd.DataFrame:
    """Examples to the goal, a row per branch: at, goal, size, order, power and took (not a number
    if the goal was missed).
    """
    met = checks.assign(took=checks.seen.where(checks.cost <= checks.goal).astype(float))
    return met.groupby([*POINT, "power"]).took.min().reset_index()


def arms(branches: pd.DataFrame, base: int) -> dict[str, pd.DataFrame]:
    """`to_goal` by how the learning rate is set: by the RULE, and, where that was tried, KEPT at
    the run's own.

    base: the batch size of the run, at which both are the same.
    """
    rule = branches[branches.power == branches.power.max()]
    kept = branches[(branches.power == 0) | (branches["size"] == base)]
    return {RULE: rule} | ({KEPT: kept} if kept["size"].nunique() > 1 else {})


def critical(branches: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes, a row per point: at, goal, critical, low, high (90 %), orders, decided,
    effect (ln).

    Examples to the goal are fitted as c1 + c2 B in each order of the examples, at the sizes that
    every point has; their ratio c1 / c2 is the batch that takes twice the fewest.  critical: the
    geometric mean over orders.  decided: whether examples grow with every batch size, in the mean,
    as that line does; if not, the line is no model of them. Orders in which a size missed the goal
    are left out, and so is all of fewer than three sizes.
    """
    found, points = [], branches.groupby("size")["at"].nunique()
    shared = branches[branches["size"].map(points) == branches["at"].nunique()]
    for (at, goal), own in shared.groupby(["at", "goal"]):
        logs = np.log(own.pivot(index="order", columns="size", values="took")).dropna()
        if len(logs.columns) < 3 or not len(logs):
            continue
        sizes = logs.columns.to_numpy(float)
        effect = scaling.mean_of(scaling.log_critical(sizes, logs.to_numpy() - np.log(sizes)))
        decided = bool(logs.mean().is_monotonic_increasing)
        found.append((at, goal, *effect.row().values(), effect.n, decided, effect))
    columns = ["at", "goal", "critical", "low", "high", "orders", "decided", "effect"]
    return pd.DataFrame(found, columns=columns)


@dataclass(frozen=True)
class Run:
    """A run that branches.

    Attributes:
        base: its batch size.
        sizes: those of its branches.
        arms: of `arms`.
        ways: of these, `critical`, with two points or more; none without branches.
    """

    base: int
    sizes: list[int]
    arms: dict[str, pd.DataFrame]
    ways: dict[str, pd.DataFrame]

    @property
    def points(self) -> pd.DataFrame:
        """Critical batch sizes by the rule, from the first point on."""
        return self.ways[RULE].sort_values("at", ignore_index=True)

    def took(self, way: str, at: int) -> pd.Series:
        """Examples to the goal from one point on, by batch size: geometric means over orders."""
        own = self.arms[way][self.arms[way]["at"] == at]
        return np.exp(np.log(own.took).groupby(own["size"]).mean())


def run_of(checks: pd.DataFrame) -> Run:
    """The run that these checks are of."""
    if not len(checks):
        return Run(0, [], {}, {})
    base, sizes = int(checks.batch_size.iloc[0]), sorted(checks["size"].unique().tolist())
    by = arms(to_goal(checks), base)
    ways = {way: critical(own) for way, own in by.items()}
    return Run(base, sizes, by, {way: rows for way, rows in ways.items() if len(rows) > 1})


def growth(before: pd.Series, after: pd.Series) -> Effect | None:
    """ln of the critical batch size at one point over that at an earlier one, rows of `critical`;
    None if one is undecided.
    """
    if not (before.decided and after.decided):
        return None
    a, b = before.effect, after.effect
    error = float(np.hypot(a.error, b.error))
    return Effect(b.value - a.value, error, a.freedom + b.freedom, min(a.n, b.n))


def noise_at(noise: pd.DataFrame, steps: pd.Series) -> np.ndarray:
    """Noise scales at steps of a run, interpolated between the points where it was followed,
    logarithm on logarithm.
    """
    own = noise.sort_values("step")
    return np.exp(np.interp(np.log(steps), np.log(own.step), np.log(own.noise_scale)))
