"""What one network's curve says: where doublings stop to pay, how it moves with the goal, the
method and the search space.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.methods import WITH_MOMENTUM

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


def saved_per_doubling(batch_size: pd.Series, steps: pd.Series, at: float) -> tuple[float, float]:
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


def over_sgd(curves: dict[tuple, scaling.Curve]) -> pd.DataFrame:
    """Every dense curve with momentum over SGD's, at the batch sizes that both have.

    Columns: those of CURVE; c1, c2 (ratios); n (searches).
    """
    rows = []
    for key, curve in curves.items():
        below = curves.get((key[0], "sgd", *key[2:]))
        if key[3] or key[1] not in WITH_MOMENTUM or below is None:
            continue
        critical = scaling.critical_ratio(curve, below)
        if critical is None:
            continue
        above, base = (scaling.fit(own.sizes, own.means) for own in scaling.alike(curve, below))
        found = {"c1": (above.c1 / base.c1)[0], "c2": (above.c2 / base.c2)[0]}
        rows.append((key, found | {"n": critical.n}))
    return scaling.by_curve(rows, ["c1", "c2", "n"])


def before_and_after(
    published: dict[tuple, scaling.Curve], whole: dict[tuple, scaling.Curve]
) -> pd.DataFrame:
    """Curves of the published range of momentum beside those of the whole one, on the searches that
    both have.

    Columns: those of CURVE; critical_published, critical_whole (examples), ratio, ratio_low,
    ratio_high (whole over published).
    """
    names = [*scaling.CURVE, "critical_published", "critical_whole"]
    rows = []
    for key, after in whole.items():
        before, after = scaling.paired(scaling.alike(published[key], after))
        ends = np.exp([scaling.critical(curve).value for curve in (before, after)])
        ratio = scaling.critical_ratio(after, before).row("ratio")
        rows.append({**dict(zip(names, (*key, *ends))), **ratio})
    return pd.DataFrame(rows, columns=[*names, "ratio", "ratio_low", "ratio_high"])
