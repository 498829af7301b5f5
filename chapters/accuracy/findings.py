"""What the page on accuracy says, as numbers and words."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from chapters.accuracy import fixed_budgets
from chapters.accuracy.claims import with_enough_steps
from lib.analysis.fixed_budgets import whole
from lib.analysis.scaling import Effect
from lib.claims import FOR, Claim
from lib.page import boxes
from lib.records import results
from lib.studies import plans
from lib.wording import between, brief, percent, ranged
from lib.workloads import catalogue, datasets

SMOOTHED = "digits-smoothing"


def findings(
    trials: pd.DataFrame,
    workload: str,
    algorithm: str,
    ladders: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]],
    judged: Mapping[str, Claim],
) -> dict:
    """All values of the page's sentences.

    Args:
        trials: those of the network asked for.
        workload: its name.
        algorithm: how it was trained.
        ladders: of `fixed_budgets.ladders`, by workload, this one among them.
        judged: all claims.
    """
    work = catalogue.workload(workload)
    steps, epochs = ladders[workload]
    early = [group.effect for group in judged["S13"].groups]
    saved = [group.effect for group in judged["S9"].groups]
    return {
        "network": work.title,
        "algorithm": algorithm,
        "trials": boxes.trials(trials),
        "largest": max(catalogue.workload(name).train_size for name in ladders),
        "steps": int(steps.budget.max()) if len(steps) else None,
        "epochs": epochs.examples.max() / work.train_size if len(epochs) else None,
        "at_steps": _moves(steps, "budget"),
        "at_epochs": _moves(epochs, "examples"),
        "best": fixed_budgets.BEST,
        "smoothed_goal": percent(trials.goal.iloc[0]) if len(trials) else None,
        "early_least": min(early),
        "early_most": max(early),
        "favours": min(early) > 0,
        "saved_least": min(saved),
        "saved_most": max(saved),
        "test_examples": datasets.test_size(work.dataset),
        "test_error": 100 * fixed_budgets.largest(steps).noise.mean() if len(steps) else None,
        **_settled(judged["S14"], work.title),
        **_against(workload),
        **_rests(judged["S9"], judged["S14"]),
    }


def _settled(claim: Claim, network: str) -> dict:
    """What larger batches cost this network, and every other, with enough steps."""
    own = next((group for group in claim.groups if group.name == network), None)
    ends = ("effect", "low", "high", "n")
    return {
        "changes": [f"{brief(group.effect)} ({group.name})" for group in claim.groups],
        "settled_on": [group.name for group in claim.groups],
        "spared": own is not None and own.verdict == FOR,
        "harmed": own is not None and bool(own.low > 0),
        **{name: getattr(own, name, None) for name in ends},
    }


def _against(workload: str) -> dict:
    """What speaks against S14's slopes, in points per doubling: those without the smallest batches,
    and that of the one search of more trials at more batch sizes; None each where there is none.
    """
    several, single = with_enough_steps()
    smallest = several.batch_size.min()
    later = fixed_budgets.risen(several[several.batch_size > smallest])
    ends = {catalogue.workload(name).title: _points(slope) for name, slope in later.items()}
    bound = max((high for _, _, high in ends.values()), default=None)
    own = single[(single.workload == workload) & (single.label_smoothing == 0)]
    alone = fixed_budgets.risen(own).get(workload) if workload in set(several.workload) else None
    value, low, high = _points(alone) if alone else (None, None, None)
    searched = whole()
    return {
        "smallest": int(smallest),
        "without": [f"{ranged(*slope)} ({name})" for name, slope in ends.items()],
        "bound": bound,
        "bound_over": bound and 6 * bound,  # doublings
        "disagree": alone is not None and low > 0 and value > bound,
        "alone": value,
        "alone_low": low,
        "alone_high": high,
        "alone_sizes": len(own),
        "alone_trials": boxes.trials(searched[searched.workload == workload]),
        "each": plans.study(SMOOTHED).cells[0].trials,
    }


def _points(slope: Effect) -> list[float]:
    return [100 * end for end in slope.row(log=False).values()]


def _rests(helped: Claim, risen: Claim) -> dict:
    """On how many searches with label smoothing, and without, a row of either claim rests."""
    return {
        "helped_on": between(*(group.n for group in helped.groups)),
        "risen_on": between(*(group.n for group in risen.groups)),
    }


def _moves(best: pd.DataFrame, column: str) -> str:
    """What the test error at the largest budget of a ladder does as the batch grows, as a
    predicate.
    """
    last = fixed_budgets.largest(best, column)
    effect = fixed_budgets.trend(last.batch_size, last.test)
    if not effect.low * effect.high > 0:
        return "shows no clear trend"
    verb = "rises" if effect.value > 0 else "falls"
    return f"{verb} by {brief(100 * abs(effect.value))} points per doubling"


def settled() -> tuple[tuple[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    """What the figures of errors with enough steps draw: errors of several searches with the trials
    behind them, and those without label smoothing, of one search where there are no more.
    """
    several, single = with_enough_steps()
    both = pd.concat([several, single[~single.workload.isin(several.workload)]])
    plain = both[both.label_smoothing == 0]
    sizes = plain.groupby("workload").batch_size.transform("nunique")
    searched = results.read(plans.study(SMOOTHED))
    return (several, searched), plain[sizes > 2]  # fewer show no trend
