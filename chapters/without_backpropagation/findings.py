"""What the page on training without backpropagation says, as numbers and words, and its table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.without_backpropagation import without_backpropagation as without
from lib.analysis import method_results, scaling
from lib.page import boxes, charts, told
from lib.wording import between, percent, with_interval
from lib.workloads import catalogue

NAMES = {  # of ways to pass errors back, as pages call them
    "feedback-alignment": "feedback alignment",
    "lra": "alignment, β = 0.1",
    "lra-1": "alignment, β = 1",
}
COLOURS = {
    "backpropagation": charts.ORANGE,
    **dict(zip(NAMES.values(), (charts.PURPLE, charts.TEAL, charts.GREEN))),
}
OVER = {
    "critical": "critical batch size over backpropagation’s",
    "small": "steps over backpropagation’s, two smallest batches",
    "large": "steps, two largest batches",
}


def points(trials: pd.DataFrame) -> pd.DataFrame:
    """The points of every curve, each with its name."""
    found = scaling.across_replicates(scaling.steps_to_result(trials))
    return found.assign(errors_by=found.algorithm.map(NAMES).fillna("backpropagation"))


def findings(trials: pd.DataFrame, ended: pd.DataFrame, readouts: pd.DataFrame) -> dict:
    """All values of the page's sentences.

    Args:
        trials: searches of every way to pass errors back, at their goal.
        ended: searches that ran to their budget.
        readouts: of `boolean_readout.results`.
    """
    curves, drawn = scaling.curves(trials), points(trials)
    over = method_results.over(curves).set_index(["algorithm", "what"]).ratio
    theirs, last = without.ARMS  # the authors' own beta first
    everywhere = method_results.at_end(0)
    means = [method_results.between(curves, name, without.BASE, everywhere) for name in NAMES]
    slower = without.convergence(readouts)
    slower = slower[slower.kind == without.KINDS[False]].set_index("features").slower
    return told.plain(
        {
            "network": catalogue.workload(trials.workload.iloc[0]).title,
            "goal": percent(trials.goal.iloc[0]),
            "small": over.get((theirs, "small")),
            "large": over.get((theirs, "large")),
            "small_one": over.get((last, "small")),
            "large_one": over.get((last, "large")),
            "more": between(*(np.exp(mean.value) for found in means for mean in found.values())),
            "searches": drawn.replicates.max(),
            "trials": boxes.trials(drawn),
            "ended_size": ended.batch_size.max(),
            "ended_steps": ended.max_steps.max(),
            "least": slower.index.min(),
            "most": slower.index.max(),
            "few": np.exp(slower.iloc[0].value),
            "many": np.exp(slower.iloc[-1].value),
            "runs": readouts.replicates.max(),
        }
    )


def beside_backpropagation(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per other way to pass errors back, with 90 % intervals."""
    over = method_results.over(scaling.curves(trials))
    over["words"] = list(map(with_interval, over.ratio, over.ratio_low, over.ratio_high))
    cells = over.pivot(index="algorithm", columns="what", values="words")
    rows = cells.reindex(index=NAMES, columns=OVER).rename(index=NAMES, columns=OVER)
    return rows.rename_axis(index="errors by", columns=None).reset_index()
