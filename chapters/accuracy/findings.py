"""What the page on accuracy says, as numbers and words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from chapters.accuracy import fixed_budgets
from chapters.accuracy.claims import with_enough_steps
from lib.claims import Claim
from lib.page import boxes, estimates
from lib.workloads import catalogue

SMOOTHED = "digits-smoothing"


def findings(
    ladders: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]],
    judged: Mapping[str, Claim],
) -> dict:
    """All values in the page's sentences.

    Args:
        ladders: of `fixed_budgets.ladders`, by workload.
        judged: all claims.
    """
    settled_on = [catalogue.workload(name) for name in settled().workload.unique()]
    steps, epochs = (
        [group.effect for group in judged["S13"].groups if group.name.endswith(budget)]
        for budget in ("steps", "epochs")
    )
    slopes, ends = judged["S14"].groups, with_enough_steps()
    later = fixed_budgets.risen(ends[ends.batch_size > ends.batch_size.min()]).values()
    return estimates.plain(
        {
            "trials": boxes.trials(pd.concat(steps for steps, _ in ladders.values())),
            "settled_on": [work.title for work in settled_on],
            "largest": max(work.train_size for work in settled_on),
            "best": fixed_budgets.BEST,
            "few_steps": [min(steps), max(steps)],
            "few_epochs": [min(epochs), max(epochs)],
            "least": min(group.low for group in slopes),
            "most": max(group.high for group in slopes),
            "smallest": int(ends.batch_size.min()),
            "later_least": 100 * np.nanmin([effect.low for effect in later]),
            "later_most": 100 * np.nanmax([effect.high for effect in later]),
        }
    )


def settled() -> pd.DataFrame:
    """Data for the figure of errors after enough steps: searches without label smoothing."""
    ends = with_enough_steps()
    plain = ends[ends.label_smoothing == 0]
    sizes = plain.groupby("workload").batch_size.transform("nunique")
    return plain[sizes > 2]  # fewer show no trend
