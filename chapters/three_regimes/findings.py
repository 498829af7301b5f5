"""What the page on three regimes says about one network's curve, as numbers and words, and the data
of its figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from lib.analysis import ranges, scaling
from lib.claims import Claim
from lib.page.shared_figures import repeated
from lib.wording import brief, named, percent
from lib.workloads.catalogue import workload

LINE = ["goal", "sparsity", "c1", "c2", "critical", "critical_low", "critical_high"]
FLATTENS = (
    "Below {critical} examples, doubling the batch saves {before} of the steps on average; "
    "above, {after}"
)


def selected(trials: pd.DataFrame, chosen: Any) -> pd.DataFrame:
    """The trials that a page's parameters select; with `replicates`, so many searches a point."""
    curves = (trials.workload == chosen.workload) & (trials.algorithm == chosen.algorithm)
    sizes = trials.batch_size.isin(chosen.batch_sizes)
    shown = trials[curves & sizes & trials.sparsity.isin(chosen.sparsities)]
    if not chosen.replicates:
        return shown
    point = [*scaling.CURVE, "batch_size"]
    search = [*point, *scaling.SEARCH]
    first = shown[search].drop_duplicates().sort_values(["split", "replicate"])
    first = first.groupby(point).head(chosen.replicates)
    return shown[pd.MultiIndex.from_frame(shown[search]).isin(pd.MultiIndex.from_frame(first))]


def densest(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials with the least sparsity."""
    return trials[trials.sparsity == trials.sparsity.min()]


def lines_by_goal(trials: pd.DataFrame) -> pd.DataFrame:
    """The fit c1/B + c2 of every curve at every goal, if its critical batch size lies within the
    measured sizes: LINE.
    """
    parts = [pd.DataFrame(columns=LINE)]
    for goal in scaling.goals(trials):
        summary, _ = scaling.summaries(scaling.at_goal(trials, goal))
        parts.append(summary[summary.identified.astype(bool)].assign(goal=goal)[LINE])
    return pd.concat([p for p in parts if len(p)] or parts, ignore_index=True)


def findings(
    trials: pd.DataFrame, lines: pd.DataFrame, judged: Mapping[str, Claim], chosen: Any
) -> dict[str, object]:
    """All values in the page's sentences, from all trials at their goals; lines: from
    `lines_by_goal`, for the `densest` curve that the page shows.
    """
    curve = chosen.workload, chosen.algorithm
    ranged = any(key[:2] == curve for key in ranges.whole_curves(trials))
    goals, methods = repeated(judged["S2"]), repeated(judged["S7"])
    return {
        "workload": workload(chosen.workload).title,
        "method": named(chosen.algorithm) + " over its whole range" * ranged,
        "tolerance": percent(scaling.TOLERANCE),
        "surely_lower": sum(group.high < 1 for group in goals),
        "moved": len(goals),
        "raised": sum(group.low > 1 for group in methods),
        "compared": len(methods),
        **_savings(selected(trials, chosen), lines),
    }


def titles(shown: pd.DataFrame, lines: pd.DataFrame) -> list[str]:
    """The first figure's title at every goal, the hardest first; lines: as for `findings`."""
    shown_at = (scaling.at_goal(shown, goal) for goal in scaling.goals(shown))
    return [_savings(trials, lines)["told"] for trials in shown_at]


def _savings(shown: pd.DataFrame, lines: pd.DataFrame) -> dict[str, object]:
    """What doubling the batch saves on the shown network, on either side of the critical batch size
    of its densest curve.
    """
    dense = densest(scaling.across_replicates(scaling.steps_to_result(shown)))
    goal = shown.goal.iloc[0]
    critical = lines[lines.goal == goal].critical.astype(float).min()
    before, after = saved_per_doubling(dense.batch_size, dense.steps, critical)
    flattens = bool(before > after > 0)
    saved = {"critical": brief(critical), "before": percent(before), "after": percent(after)}
    return {
        "goal": percent(goal),
        "flattens": flattens,
        "guided": bool((lines.goal == goal).any()),
        "densest": f"{dense.sparsity.min():g}",
        "told": FLATTENS.format(**saved) if flattens else "Steps against batch size",
        **saved,
    }


def saved_per_doubling(batch_size: pd.Series, steps: pd.Series, critical: float) -> np.ndarray:
    """The shares of steps [2] that doubling the batch saves: from the smallest size to the one
    nearest to the critical one, and from there on.

    batch_size (rising), steps: [n]; geometric means over the doublings.  NaN if no two sizes lie on
    a side; with an unknown critical size (NaN), all count as beyond it.
    """
    sizes, logs = np.log2([batch_size, steps])
    ends = [0, np.abs(sizes - np.log2(critical)).argmin(), -1]
    with np.errstate(invalid="ignore"):
        return 1 - 2 ** (np.diff(logs[ends]) / np.diff(sizes[ends]))


def of_ranges(published: pd.DataFrame, trials: pd.DataFrame) -> dict[str, object]:
    """in_range: number of curves with momentum measured over its whole range; of_published: ratios
    of the critical batch size there (trials) to the one from 0.9 on (published), on shared
    searches.
    """
    whole_range = ranges.whole_curves(trials)
    high, low = (scaling.curves(t) if whole_range else {} for t in (published, trials))
    pairs = (scaling.paired(scaling.alike(high[key], low[key])) for key in whole_range)
    ratios = [np.exp(scaling.critical_ratio(low, high).value) for high, low in pairs]
    return {"in_range": len(ratios), "of_published": sorted(ratios)}
