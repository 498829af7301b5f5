"""Branches of a run (`lib.probes.branches`): the examples that each batch size takes to the next goal, and how large one pays."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib.analysis import evidence, scaling

RULE, KEPT = "the square-root rule", "one learning rate"  # by which branches are trained
TOLERANCE = 0.02  # nats that a batch size may lie above the run's own and still be as good
POINT = ["at", "goal", "size", "order"]


def to_goal(checks: pd.DataFrame) -> pd.DataFrame:
    """Examples to the goal, a row per branch: at, goal, size, order, power and took (not a number if the goal was missed)."""
    rows = checks.groupby([*POINT, "power"], sort=True)
    met = checks.assign(took=checks.seen.where(checks.cost <= checks.goal).astype(float))
    return met.groupby([*POINT, "power"]).took.min().reindex(rows.size().index).reset_index()


def arms(branches: pd.DataFrame, base: int) -> dict[str, pd.DataFrame]:
    """`to_goal` by how the learning rate is set: by the RULE, and, where that was tried, KEPT at the run's own.

    base: the batch size of the run, at which both are the same.
    """
    rule = branches[branches.power == branches.power.max()]
    kept = branches[(branches.power == 0) | (branches["size"] == base)]
    return {RULE: rule} | ({KEPT: kept} if kept["size"].nunique() > 1 else {})


def critical(branches: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes, a row per point: at, goal, critical, low, high, orders, and log and error (of its logarithm).

    Examples to the goal are fitted as c1 + c2 B in each order of the examples, at the sizes that every point has; their ratio
    c1 / c2 is the batch that takes twice the fewest.  critical: the geometric mean over orders; low, high: 5 and 95 % by
    Student's t on logarithms.  Orders in which a size missed the goal are left out, and so is all of fewer than three sizes.
    """
    found, points = [], branches.groupby("size")["at"].nunique()
    shared = branches[branches["size"].map(points) == branches["at"].nunique()]
    for (at, goal, _), own in shared.groupby(["at", "goal", "order"]):
        if len(own) >= 3 and own.took.notna().all():
            fit = scaling.fit_hyperbola(own["size"], own.took / own["size"])
            found.append({"at": at, "goal": goal, "log": np.log(fit.critical)})
    if not found:
        return pd.DataFrame(columns=["at", "goal", "critical", "low", "high", "orders", "log", "error"])
    points = pd.DataFrame(found).groupby(["at", "goal"]).log.agg(["mean", "sem", "size"]).reset_index()
    reach = points["sem"] * stdtrit(np.maximum(points["size"] - 1, 1), 0.95)
    ends = {name: np.exp(points["mean"] + off) for name, off in (("critical", 0), ("low", -reach), ("high", reach))}
    return points.assign(**ends).rename(columns={"mean": "log", "sem": "error", "size": "orders"})


def growth(points: pd.DataFrame, first: int, last: int) -> tuple[float, float, float, int]:
    """The critical batch size at one point over that at an earlier one: ratio, 5 and 95 % (Student's t), and n, branches of both.

    points: of `critical`; first, last: their places in the order of steps.  Not a number where one is not known.
    """
    if len(points) <= max(first, last):
        return np.nan, np.nan, np.nan, 0
    a, b = (points.sort_values("at").iloc[place] for place in (first, last))
    orders = int(a.orders + b.orders)
    reach = np.hypot(a.error, b.error) * (stdtrit(orders - 2, 0.95) if orders > 2 else np.nan)
    return (*(float(np.exp(b["log"] - a["log"] + off)) for off in (0, -reach, reach)), orders)


def claimed(checks: pd.DataFrame, noise: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What claims on branches are judged by, a table of `lib.analysis.evidence` each, with a group for every way to set the rate.

    G1: the growth from the first point to the second; G2: that from the second to the last; G3: how far noise scales lie from
    the critical batch sizes, the mean over points.  Empty until three points are measured.  noise: points of the same run.
    """
    known = arms(to_goal(checks), int(checks.batch_size.iloc[0])) if len(checks) else {}
    tables = {name: critical(own) for name, own in known.items()}
    tables = {name: points for name, points in tables.items() if len(points) >= 3}
    if not tables:
        return {}
    return {
        "G1": evidence.table((name, *growth(points, 0, 1)) for name, points in tables.items()),
        "G2": evidence.table((name, *growth(points, 1, len(points) - 1)) for name, points in tables.items()),
        "G3": evidence.folded(evidence.table((name, *_over_noise(points, noise)) for name, points in tables.items())),
    }


def _over_noise(points: pd.DataFrame, noise: pd.DataFrame) -> tuple[float, float, float, int]:
    """Critical batch sizes over noise scales, the geometric mean over points: ratio, 5 and 95 %, and n, branches."""
    logs = points["log"] - np.log(noise_at(noise, points["at"]))
    error, freedom = np.sqrt((points.error**2).sum()) / len(points), int((points.orders - 1).sum())
    reach = error * stdtrit(freedom, 0.95)
    return (*(float(np.exp(logs.mean() + off)) for off in (0, -reach, reach)), int(points.orders.sum()))


def noise_at(noise: pd.DataFrame, steps: pd.Series) -> np.ndarray:
    """Noise scales at steps of a run, interpolated between the points where it was followed, logarithm on logarithm."""
    own = noise.sort_values("step")
    return np.exp(np.interp(np.log(steps), np.log(own.step), np.log(own.noise_scale)))


def after_as_many(checks: pd.DataFrame, base: int) -> pd.DataFrame:
    """How branches stand when those of batch size `base` meet the goal: a row per point and size, by the rule for the rate.

    behind: cost less that of `base` after as many examples, the mean over orders, between checks interpolated.  near: whether
    that is within TOLERANCE.
    """
    rule = checks[checks.power == checks.power.max()]
    rows = []
    for (at, order), own in rule.groupby(["at", "order"]):
        first = own[(own["size"] == base) & (own.cost <= own.goal)]
        for size, each in own.groupby("size") if len(first) else ():
            at_end = np.interp(first.seen.iloc[0], each.seen, each.cost)
            rows.append({"at": at, "size": size, "order": order, "behind": at_end - first.cost.iloc[0]})
    found = pd.DataFrame(rows, columns=["at", "size", "order", "behind"]).groupby(["at", "size"]).behind.mean().reset_index()
    return found.assign(near=found.behind <= TOLERANCE)
