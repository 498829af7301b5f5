"""Numbers that several pages state: each computed once from the records and kept, as the judged claims are."""

from __future__ import annotations

import pandas as pd

from lib.analysis import scaling
from lib.claims.ledger import judge, kept, usual
from lib.claims.verdicts import Group

CURVE = [*scaling.CURVE, "goal", "sizes", "replicates", "critical", "critical_low", "critical_high", "identified"]


def curves() -> pd.DataFrame:
    """Every curve that pages compare, a row each, with its critical batch size.

    Columns: workload, algorithm, pruning, sparsity, goal (error at which it is read), sizes, replicates (counts), critical
    (examples), critical_low, critical_high (5 and 95 %), identified (whether it lies inside the batch sizes measured).
    """
    return pd.DataFrame(kept("critical", _curves)["rows"], columns=CURVE)


def _curves() -> dict:
    trials, summary, _ = usual()
    goals = trials.groupby("workload").goal.first()
    table = summary.assign(goal=summary.workload.map(goals), identified=summary.identified.astype(bool))
    return {"rows": table[CURVE].to_dict("records")}


def critical(workload: str, algorithm: str = "momentum", sparsity: float = 0.0) -> pd.Series:
    """The row of `curves` of one curve.  Raises ValueError if there is none."""
    table = curves()
    same = (table.workload == workload) & (table.algorithm == algorithm) & (table.sparsity == sparsity)
    if not same.any():
        raise ValueError(f"workload: {workload!r} with {algorithm} at sparsity {sparsity} has no curve; known are "
                         f"{', '.join(table.workload.unique())}")  # fmt: skip
    return table[same].iloc[0]


def cost_of_sparsity(sparsity: float = 0.9) -> Group:
    """Steps to result of sparse networks over the dense ones', the median over curves and batch sizes (claim L3)."""
    name = f"sparsity {sparsity:g}"
    groups = {group.name: group for group in judge()["L3"].groups}
    if name not in groups:
        raise ValueError(f"sparsity: {sparsity} is not allowed; it must be one of {', '.join(groups)}")
    return groups[name]


def goals() -> dict[str, float]:
    """The goal at which all curves of a workload are read on every page that compares them (`scaling.shared_goals`)."""
    return curves().groupby("workload", sort=False).goal.first().to_dict()


def at_goals(trials: pd.DataFrame) -> pd.DataFrame:
    """The table with each workload read at its goal of `goals`, or, where the records have none, at `scaling.shared_goals`."""
    return scaling.at_goals(trials, {**scaling.shared_goals(trials), **goals()}) if len(trials) else trials
