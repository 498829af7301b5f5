"""What local steps save and cost, and what the page says of it."""

from __future__ import annotations

import pandas as pd

from chapters.local_steps import local
from chapters.local_steps.local import DILOCO, INNER, SPARSE
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio, unmeasured
from lib.wording import percent

GOAL = 0.05  # at which D1 and D2 are judged
POINT = ["way", "replicas", "local_steps", "batch_size", "density"]
COSTS = ("steps", "rounds", "sent")
MANY = local.REPLICAS[-1]
# What is predicted of points, as POINT has them: steps of the first over the second, and the range
RANGES = {
    ((DILOCO, 1, 5, 64, 1.0), (INNER, 1, 5, 64, 1.0)): (0.6, 1.2),
    ((DILOCO, 1, 30, 64, 1.0), (INNER, 1, 30, 64, 1.0)): (1.0, 2.5),
    ((DILOCO, 8, 5, 64, 1.0), (DILOCO, 1, 5, 64, 1.0)): (1.2, 2.0),
    ((DILOCO, 8, 30, 256, 1.0), (DILOCO, 1, 30, 256, 1.0)): (0.7, 1.2),
    ((DILOCO, 8, 100, 64, 1.0), (DILOCO, 8, 5, 64, 1.0)): (3.0, 8.0),
    ((SPARSE, 8, 30, 64, 0.01), (DILOCO, 8, 30, 64, 1.0)): (1.25, 3.0),
    ((SPARSE, 8, 30, 64, 0.03), (DILOCO, 8, 30, 64, 1.0)): (0.9, 1.6),
    ((SPARSE, 8, 30, 64, 1.0), (DILOCO, 8, 30, 64, 1.0)): (0.6, 1.1),
}
CRITICAL = (0.7, 1.5)  # one replica's critical batch size over Adam's, rounds of 5


def searched(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """A row per search: steps and rounds to the goal, sent (bytes of a replica by then) and met.  A
    search that misses the goal counts as its last step.
    """
    if not len(trials):
        return trials
    each = {"rounds": (f"rounds@{goal:g}", "min"), "bytes": ("bytes", "first")}
    found = trials.groupby([*POINT, "replicate"]).agg(**each).reset_index()
    most = found.batch_size.map(local.MOST_STEPS) // found.local_steps
    found = found.assign(met=found.rounds.notna(), rounds=found.rounds.fillna(most))
    found["steps"] = found.rounds * found.local_steps
    found["sent"] = found.rounds * found.bytes
    return found


def of(found: pd.DataFrame, point: tuple) -> pd.DataFrame:
    """The searches of a point, as POINT has it."""
    return found[(found[POINT] == list(point)).all(axis=1)]


def over(found: pd.DataFrame, one: tuple, other: tuple, what: str = "steps") -> Effect | None:
    """ln of what a point costs over another; None where either has no searches."""
    return replicates.over(of(found, one), of(found, other), what)


def measured(points: list[tuple]) -> list[tuple]:
    """Those of these (replicas, local steps, batch size) of which something is on record."""
    found = local.LOCAL.results()
    known = set(zip(*(found[name] for name in POINT[1:4]))) if len(found) else set()
    return [point for point in points if point in known]


def group(one: tuple, other: tuple) -> Group:
    """A point's steps over another's, to GOAL."""
    found = searched(local.LOCAL.results(), GOAL)
    name = words(one)
    effect = over(found, one, other)
    missed = int((~pd.concat([of(found, one), of(found, other)]).met).sum())
    note = f"{missed} searches miss the goal and count as their last step" if missed else ""
    return ratio(name, effect, note=note) if effect else unmeasured(name)


def words(point: tuple) -> str:
    """A point as tables and groups name it."""
    way, replicas, steps, size, density = point
    how = f", {percent(density)}" if way == SPARSE else ""
    return f"{way}{how}, {replicas} × {steps} steps, batch size {size}"
