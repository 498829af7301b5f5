"""What the page on training without backpropagation says, as numbers and words, and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.without_backpropagation import local_figures
from chapters.without_backpropagation import without_backpropagation as without
from lib.analysis import method_results, scaling
from lib.page import boxes, told
from lib.wording import between, brief, percent, with_interval
from lib.workloads import catalogue

# As pages call them, backpropagation first
ARMS = dict(zip((without.BASE, "feedback-alignment", *without.ARMS), local_figures.ARMS))
PLAIN, WHITE = without.KINDS.values()
AT = 64  # batch size whose learning rates are shown
OVER = {
    "critical": "critical batch size over backpropagation’s",
    "small": "steps over backpropagation’s, two smallest batches",
    "large": "steps, two largest batches",
}


def points(trials: pd.DataFrame) -> pd.DataFrame:
    """The points of every curve, each with its arm as the figure calls it."""
    found = scaling.across_replicates(scaling.steps_to_result(trials))
    return found.assign(arm=found.algorithm.map(ARMS))


def findings(trials: pd.DataFrame, ended: pd.DataFrame, readouts: pd.DataFrame) -> dict:
    """All values of the page's sentences.

    Args:
        trials: searches of every arm, at the goal asked for.
        ended: searches that ran to their budget.
        readouts: of `boolean_readout.results`.
    """
    curves, drawn = scaling.curves(trials), points(trials)
    over = method_results.over(curves).set_index(["algorithm", "what"]).ratio
    theirs, last = without.ARMS  # the authors' own beta first
    everywhere = method_results.at_end(0)
    means = [method_results.between(curves, a, without.BASE, everywhere) for a in list(ARMS)[1:]]
    more = [np.exp(effect.value) for found in means for effect in found.values()]
    return told.plain(
        {
            "network": catalogue.workload(trials.workload.iloc[0]).title,
            "goal": percent(trials.goal.iloc[0]),
            "small": over.get((theirs, "small")),
            "large": over.get((theirs, "large")),
            "small_one": over.get((last, "small")),
            "large_one": over.get((last, "large")),
            "more": between(*more),
            "searches": drawn.replicates.max(),
            "trials": boxes.trials(drawn),
            "ended_size": ended.batch_size.max(),
            "ended_steps": ended.max_steps.max(),
            **_falls(readouts),
        }
    )


def _falls(readouts: pd.DataFrame) -> dict:
    """How the error of readouts falls, by the number of features."""
    found = without.convergence(readouts)
    slower = found[found.kind == PLAIN].set_index("features").slower
    least, most = found.features.min(), found.features.max()
    powers = without.growth(readouts)
    change = {kind: (most / least) ** (e.value - 1) for kind, e in powers.items()}
    return {
        "least": least,
        "most": most,
        "few": np.exp(slower[least].value),
        "many": np.exp(slower[most].value),
        "runs": readouts.replicates.max(),
        "plain_change": change[PLAIN],
        "white_change": change[WHITE],
    }


# --- tables ---------------------------------------------------------------------------------------


def beside_backpropagation(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per way to pass errors back, with 90 % intervals."""
    summary, curves = scaling.summaries(trials)
    over = method_results.over(curves)
    words = list(map(with_interval, over.ratio, over.ratio_low, over.ratio_high))
    cells = over.assign(words=words).pivot(index="algorithm", columns="what", values="words")
    ends = summary.set_index("algorithm")[["critical", "critical_low", "critical_high"]]
    best = trials.groupby(["algorithm", "batch_size", "replicate"]).steps.transform("min")
    won = trials[(trials.steps == best) & (trials.batch_size == AT)]
    rows = pd.DataFrame(
        {
            "errors by": ARMS,
            "critical batch size": ends.apply(lambda row: with_interval(*row), axis=1),
            **cells.reindex(columns=OVER).rename(columns=OVER),
            f"best rate at {AT}": won.groupby("algorithm").learning_rate.median().map(brief),
        }
    )
    return rows.reindex([arm for arm in ARMS if arm in ends.index]).fillna("—")


def straightness(readouts: pd.DataFrame) -> pd.DataFrame:
    """How far readouts' convergence is from an exponential, a column per kind of features."""
    found = without.convergence(readouts)
    found["words"] = found.slower.map(told.times)
    rows = found.pivot(index="features", columns="kind", values="words")
    rows.index = [f"third e-fold over the first, {n:,} features" for n in rows.index]
    powers = without.growth(readouts).values()
    name = f"power of N, {without.FOLDS} e-folds"
    rows.loc[name] = [with_interval(e.value, e.low, e.high) for e in powers]
    return rows.rename_axis(index="90 % in brackets", columns=None).reset_index()
