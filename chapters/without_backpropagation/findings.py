"""What the page says, as numbers and words, and its table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.without_backpropagation import without_backpropagation as without
from lib.analysis import method_results, scaling
from lib.page import charts
from lib.wording import between, with_interval

NAMES = {  # of ways to pass errors back, as pages call them
    "feedback-alignment": "feedback alignment",
    **{arm: f"alignment, {beta}" for arm, beta in without.ARMS.items()},
}
SHADES = charts.ORANGE, charts.PURPLE, charts.TEAL, charts.GREEN
COLOURS = dict(zip(("backpropagation", *NAMES.values()), SHADES, strict=True))
OVER = {
    "critical": "critical batch size over backpropagation’s",
    "small": "steps over backpropagation’s, two smallest batches",
    "large": "steps, two largest batches",
}


def points(trials: pd.DataFrame) -> pd.DataFrame:
    """The points of every curve, each with its name."""
    found = scaling.across_replicates(scaling.steps_to_result(trials))
    return found.assign(errors_by=found.algorithm.map(NAMES).fillna("backpropagation"))


def findings(trials: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; trials: searches of every way to pass errors back, at
    their goal.
    """
    curves = scaling.curves(trials)
    over = method_results.over(curves).set_index(["algorithm", "what"]).ratio
    theirs = next(iter(without.ARMS))  # the authors' own beta
    every = method_results.at_end(0)
    means = [method_results.between(curves, name, without.BASE, every) for name in NAMES]
    more = [effect.value for own in means for effect in own.values()]
    return {
        "small": float(over[theirs, "small"]),
        "large": float(over[theirs, "large"]),
        "more": between(*np.exp(more)),
    }


def beside_backpropagation(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per other way to pass errors back, with 90 % intervals."""
    over = method_results.over(scaling.curves(trials))
    over["words"] = list(map(with_interval, over.ratio, over.ratio_low, over.ratio_high))
    cells = over.pivot(index="algorithm", columns="what", values="words")
    rows = cells.reindex(index=NAMES, columns=OVER).rename(index=NAMES, columns=OVER)
    return rows.rename_axis(index="errors by", columns=None).reset_index()
