"""What one network's curve says: where doublings stop to pay, how it moves with the goal and the
search space.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling

LINE = ["goal", "sparsity", "c1", "c2", "critical", "critical_low", "critical_high"]


def lines_by_goal(trials: pd.DataFrame) -> pd.DataFrame:
    """The fit c1/B + c2 of every curve at every goal, where its critical batch size lies within the
    sizes measured: LINE.
    """
    parts = [pd.DataFrame(columns=LINE)]
    for goal in scaling.goals(trials):
        summary, _ = scaling.summaries(scaling.at_goal(trials, goal))
        parts.append(summary[summary.identified.astype(bool)].assign(goal=goal)[LINE])
    return pd.concat([p for p in parts if len(p)] or parts, ignore_index=True)


def saved_per_doubling(
    batch_size: pd.Series, steps: pd.Series, at: float
) -> tuple[float, float]:
    """The share of steps that a doubled batch saves: from the smallest size to the one nearest to
    `at`, and from there on.

    batch_size, steps: [n]; geometric means over the doublings between.  NaN where no two sizes lie
    on that side.
    """
    sizes = np.log2(np.asarray(batch_size, float))
    logs = pd.Series(np.log2(np.asarray(steps, float)), sizes).sort_index()
    near = 0
    if np.isfinite(at) and at > 0:
        near = int(np.abs(logs.index - np.log2(at)).argmin())
    return _saved(logs.iloc[: near + 1]), _saved(logs.iloc[near:])


def _saved(logs: pd.Series) -> float:
    if len(logs) < 2:
        return np.nan
    rise = logs.iloc[-1] - logs.iloc[0]
    return float(1 - 2 ** (rise / (logs.index[-1] - logs.index[0])))


def before_and_after(
    published: pd.DataFrame, every: pd.DataFrame, whole: list[tuple]
) -> pd.DataFrame:
    """These curves of the published range of momentum beside those of the whole one, on the
    searches that both have.

    Columns: those of CURVE; critical_published, critical_whole (examples), ratio, ratio_low,
    ratio_high (whole over published).
    """
    names = [*scaling.CURVE, "critical_published", "critical_whole"]
    below, above = (scaling.curves(trials) if whole else {} for trials in (published, every))
    rows = []
    for key in whole:
        before, after = scaling.paired(scaling.alike(below[key], above[key]))
        ends = np.exp([scaling.critical(curve).value for curve in (before, after)])
        ratio = scaling.critical_ratio(after, before).row("ratio")
        rows.append({**dict(zip(names, (*key, *ends))), **ratio})
    return pd.DataFrame(rows, columns=[*names, "ratio", "ratio_low", "ratio_high"])
