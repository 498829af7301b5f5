"""What the page on training without backpropagation says, as numbers and words, and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.without_backpropagation import boolean_readout, local_figures
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


def findings(
    trials: pd.DataFrame, ended: pd.DataFrame, readouts: pd.DataFrame, readout_error: float
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: searches of every arm, at the goal asked for.
        ended: searches that ran to their budget.
        readouts: of `boolean_readout.results`.
        readout_error: the readouts' goal.
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
            **{f"most_{end}": _inverse(over.get((theirs, end))) for end in ("small", "large")},
            "small_one": over.get((last, "small")),
            "large_one": over.get((last, "large")),
            "more": between(*more),
            "searches": drawn.replicates.max(),
            "trials": boxes.trials(drawn),
            "ended_size": ended.batch_size.max(),
            "ended_steps": ended.max_steps.max(),
            **_falls(readouts),
            **_to_goal(readouts, readout_error),
        }
    )


def _inverse(ratio: float | None) -> str | None:
    return percent(1 / ratio) if ratio else None


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


def _to_goal(readouts: pd.DataFrame, goal: float) -> dict:
    """What features, flips and examples do to the steps to a fixed error."""
    goals = _plain(without.to_goal(readouts, goal))
    alone = goals[(goals.flips == 1) & (goals.batch_size == boolean_readout.EXAMPLES)].dropna()
    flips = several_flips(goals)
    known = flips.dropna(subset="steps")
    every, best = (known[known["take"] == t].set_index("flips").steps for t in ("every", "best"))
    useful = every.idxmin() if 1 in every.index else None
    failed = sorted(set(flips.flips) - set(every.index))
    half = scaling.log_critical(best.index, np.log([best])) if len(best) > 2 else [np.nan]
    half = float(np.exp(half[0]))
    judging = by_examples(goals)
    sure = judging.batch_size[judging.met == judging.runs]
    return {
        "readout_goal": goal,
        "features_cost": alone.steps.iloc[-1] / alone.steps.iloc[0] if len(alone) > 1 else None,
        "too_many": bool(useful and failed and failed[0] > useful),
        "useful": useful,
        "gain": useful and every[1] / every.min(),
        "failed": next(iter(failed), None),
        "features": boolean_readout.MIDDLE,
        "half_inside": best.index.min() < half < best.index.max(),
        "half": half,
        "sure": sure.min() if len(sure) else None,
        "short": bool((judging.met < judging.runs).any()),
        "hopeless": [str(size) for size in judging.batch_size[judging.met == 0]],
    }


def _plain(goals: pd.DataFrame) -> pd.DataFrame:
    """Of `without.to_goal`, readouts whose features are as they are."""
    return goals[~goals.whitened.astype(bool)]


def several_flips(goals: pd.DataFrame) -> pd.DataFrame:
    """Of `without.to_goal`, readouts of MIDDLE features by flips a step, judged on all examples."""
    own = _plain(goals)
    own = own[(own.features == boolean_readout.MIDDLE) & (own.batch_size == own.batch_size.max())]
    both = pd.concat([own, own[own.flips == 1].assign(take="best")])  # of one flip, it is every one
    return both.drop_duplicates(["take", "flips"]).sort_values("flips")


def by_examples(goals: pd.DataFrame) -> pd.DataFrame:
    """Of `without.to_goal`, readouts of MIDDLE features by the examples that judge a flip."""
    own = _plain(goals)
    return own[(own.features == boolean_readout.MIDDLE) & (own.flips == 1)]


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


def on_test_images(ended: pd.DataFrame) -> pd.DataFrame:
    """Test errors after a fixed budget, a row per way to pass errors back."""
    errors = without.ended(ended)
    beyond = {
        arm: with_interval(e.value, e.low, e.high) for arm, e in without.lost(ended, errors).items()
    }
    rows = pd.DataFrame(
        {
            "errors by": ARMS,
            "searches": errors.count(),
            "test error": errors.mean().map(percent),
            "points over backpropagation’s": beyond,
        }
    )
    return rows.reindex([arm for arm in ARMS if arm in errors]).fillna("—")


def straightness(readouts: pd.DataFrame) -> pd.DataFrame:
    """How far readouts' convergence is from an exponential, a column per kind of features."""
    found = without.convergence(readouts)
    found["words"] = found.slower.map(told.times)
    rows = found.pivot(index="features", columns="kind", values="words")
    rows.index = [f"third e-fold over the first, {n:,} features" for n in rows.index]
    for fold, name in ((1, "1 e-fold"), (without.FOLDS, f"{without.FOLDS} e-folds")):
        powers = without.growth(readouts, fold).values()
        rows.loc[f"power of N, {name}"] = [with_interval(e.value, e.low, e.high) for e in powers]
    return rows.rename_axis(index="90 % in brackets", columns=None).reset_index()


def of_examples(goals: pd.DataFrame) -> pd.DataFrame:
    """`by_examples`, told."""
    own = by_examples(goals)
    return pd.DataFrame(
        {
            "batch size": own.batch_size,
            "runs that met the goal": list(map("{} of {}".format, own.met, own.runs)),
            "steps to the goal": list(map(with_interval, own.steps, own.low, own.high)),
        }
    )
