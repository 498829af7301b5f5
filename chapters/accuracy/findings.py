"""What the page on accuracy says, as numbers and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from chapters.accuracy import fixed_budgets
from chapters.accuracy.claims import with_enough_steps
from lib.analysis.fixed_budgets import whole
from lib.claims import Claim
from lib.page import boxes, told
from lib.records import results
from lib.studies import plans
from lib.wording import ranged
from lib.workloads import catalogue

SMOOTHED = "digits-smoothing"


def findings(
    trials: pd.DataFrame,
    workload: str,
    algorithm: str,
    networks: Iterable[str],
    slopes: pd.DataFrame,
    judged: Mapping[str, Claim],
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: those of the network asked for.
        workload: its name.
        algorithm: how it was trained.
        networks: the workloads of the figure of budgets.
        slopes: of `slopes`.
        judged: all claims.
    """
    early = [group.effect for group in judged["S13"].groups]
    return told.plain(
        {
            "network": catalogue.workload(workload).title,
            "algorithm": algorithm,
            "trials": boxes.trials(trials),
            "largest": max(catalogue.workload(name).train_size for name in networks),
            "best": fixed_budgets.BEST,
            "early_least": min(early),
            "early_most": max(early),
            "favours": min(early) > 0,
            "least": slopes.low.min(),
            "most": slopes.high.max(),
            "smallest": int(with_enough_steps().batch_size.min()),
        }
    )


def slopes() -> pd.DataFrame:
    """Change of the test error per doubling of the batch with enough steps, in points, a row per
    network: network, searches, trials, value, low, high, and later: the change without the smallest
    batch size.
    """
    rows, ends = [], with_enough_steps()
    later = fixed_budgets.risen(ends[ends.batch_size > ends.batch_size.min()])
    frames = results.read(plans.study(SMOOTHED)), whole()
    searched = pd.concat([frame[["workload", "trials"]] for frame in frames])
    for name, effect in fixed_budgets.risen(ends).items():
        if np.isfinite(effect.value):
            trials = boxes.trials(searched[searched.workload == name])
            title, points = catalogue.workload(name).title, _points(effect)
            rows.append((title, effect.n, trials, *points, ranged(*_points(later[name]))))
    return pd.DataFrame(rows, columns="network searches trials value low high later".split())


def table(slopes: pd.DataFrame) -> pd.DataFrame:
    """`slopes` as the page shows them."""
    return pd.DataFrame(
        {
            "network": slopes.network,
            "searches": slopes.searches,
            "trials of a search": slopes.trials,
            "points per doubling": [*map(ranged, slopes.value, slopes.low, slopes.high)],
            "without the smallest": slopes.later,
        }
    )


def _points(effect) -> list[float]:
    return [100 * end for end in effect.row(log=False).values()]


def settled() -> pd.DataFrame:
    """What the figure of errors with enough steps draws: those without label smoothing."""
    ends = with_enough_steps()
    plain = ends[ends.label_smoothing == 0]
    sizes = plain.groupby("workload").batch_size.transform("nunique")
    return plain[sizes > 2]  # fewer show no trend
