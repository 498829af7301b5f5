"""What the page on accuracy says, as numbers and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from chapters.accuracy import fixed_budgets
from chapters.accuracy.claims import with_enough_steps
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
    found = {
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
    return told.plain(found)


def slopes() -> pd.DataFrame:
    """Change of the test error per doubling of the batch with enough steps, in points, a row per
    network: network, searches, trials, value, low, high, and later: the change without the smallest
    batch size.
    """
    rows, ends = [], with_enough_steps()
    later = fixed_budgets.risen(ends[ends.batch_size > ends.batch_size.min()])
    both = (results.read(plans.study(SMOOTHED)), fixed_budgets.whole())
    searched = pd.concat([frame[["workload", "trials"]] for frame in both])
    for name, effect in fixed_budgets.risen(ends).items():
        if np.isfinite(effect.value):
            trials = boxes.trials(searched[searched.workload == name])
            rest = ranged(*_points(later[name]))
            title = catalogue.workload(name).title
            rows.append((title, effect.n, trials, *_points(effect), rest))
    return pd.DataFrame(rows, columns="network searches trials value low high later".split())


def table(slopes: pd.DataFrame) -> pd.DataFrame:
    """`slopes` as the page shows them."""
    points = slopes[["value", "low", "high"]].itertuples(index=False)
    shown = slopes[["network", "searches", "trials"]].assign(
        points=[ranged(*p) for p in points]
    )
    names = {"trials": "trials of a search", "points": "points per doubling"}
    return shown.assign(**{"without the smallest": slopes.later}).rename(columns=names)


def _points(effect) -> list[float]:
    return [100 * end for end in effect.row(log=False).values()]


def settled() -> pd.DataFrame:
    """What the figure of errors with enough steps draws: those without label smoothing."""
    ends = with_enough_steps()
    plain = ends[ends.label_smoothing == 0]
    sizes = plain.groupby("workload").batch_size.transform("nunique")
    return plain[sizes > 2]  # fewer show no trend
