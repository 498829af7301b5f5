"""What the page on accuracy says, as numbers and words, and its table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from chapters.accuracy import fixed_budgets
from chapters.accuracy.claims import with_enough_steps
from lib.analysis.scaling import Effect
from lib.claims import FOR, Claim
from lib.page import boxes
from lib.records import results
from lib.studies import plans
from lib.wording import brief, percent, signed, span
from lib.workloads import catalogue, datasets

Ladders = Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]
KINDS = {"steps": "budget", "examples": "examples"}  # of budgets, and their columns in a ladder


def findings(
    trials: pd.DataFrame,
    workload: str,
    algorithm: str,
    ladders: Ladders,
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
    at_steps = _rise(steps, "budget")
    at_epochs = _rise(epochs, "examples")
    early = [group.effect for group in judged["S13"].groups]
    saved = [group.effect for group in judged["S9"].groups]
    measured = {name: both for name, both in ladders.items() if all(map(len, both))}
    return {
        "network": work.title,
        "algorithm": algorithm,
        "trials": boxes.trials(trials),
        "largest": max(catalogue.workload(name).train_size for name in ladders),
        "others": data_of(name for name in ladders if name != workload),
        "short": data_of(fixed_budgets.short(measured)),
        "steps": int(steps.budget.max()) if len(steps) else None,
        "epochs": epochs.examples.max() / work.train_size if len(epochs) else None,
        "at_steps": moves(at_steps),
        "at_epochs": moves(at_epochs),
        "steps_range": f" ({told_ends(at_steps)} at 90 %)" if np.isfinite(at_steps.value) else "",
        "best": fixed_budgets.BEST,
        "smoothed_goal": percent(trials.goal.iloc[0]) if len(trials) else None,
        "early_networks": len({group.name.rpartition(", ")[0] for group in judged["S13"].groups}),
        "early_least": min(early),
        "early_most": max(early),
        "favours": min(early) > 0,
        "saved_least": min(saved),
        "saved_most": max(saved),
        "test_examples": datasets.test_size(work.dataset),
        "test_error": 100 * fixed_budgets.largest(steps).noise.mean() if len(steps) else None,
        **_settled(judged["S14"], work.title),
    }


def _settled(claim: Claim, network: str) -> dict:
    """What larger batches cost this network, and every other, with enough steps."""
    own = next((group for group in claim.groups if group.name == network), None)
    ends = ("effect", "low", "high", "n")
    return {
        "changes": [f"{brief(group.effect)} ({group.name})" for group in claim.groups],
        "settled_on": [group.name for group in claim.groups],
        "bound": max((group.high for group in claim.groups), default=None),
        "bound_over": max((6 * group.high for group in claim.groups), default=None),
        "spared": own is not None and own.verdict == FOR,
        "harmed": own is not None and bool(own.low > 0),
        **{name: getattr(own, name, None) for name in ends},
    }


def settled() -> tuple[tuple[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    """What the figures of errors with enough steps draw: errors of several searches with the trials
    behind them, and those without label smoothing, of one search where there are no more.
    """
    several, single = with_enough_steps()
    both = pd.concat([several, single[~single.workload.isin(several.workload)]])
    plain = both[both.label_smoothing == 0]
    sizes = plain.groupby("workload").batch_size.transform("nunique")
    searched = results.read(plans.study("digits-smoothing"))
    return (several, searched), plain[sizes > 2]  # fewer show no trend


def data_of(workloads: Iterable[str]) -> list[str]:
    """The data sets of these workloads, as their titles spell them."""
    titles = (catalogue.workload(name).title for name in workloads)
    return list(dict.fromkeys(title.rpartition(" on ")[2] for title in titles))


def _rise(best: pd.DataFrame, column: str) -> Effect:
    """Change of the test error per doubling of the batch, at the largest budget of a ladder."""
    last = fixed_budgets.largest(best, column)
    return fixed_budgets.trend(last.batch_size, last.test)


def points(effect: Effect) -> str:
    """A change per doubling with its interval, in points."""
    if not np.isfinite(effect.value):
        return "an unknown amount"
    value = signed(f"{100 * effect.value:+.2f}")
    return f"{value} points ({told_ends(effect)})"


def told_ends(effect: Effect) -> str:
    """The interval of a change per doubling, in points."""
    ends = list(effect.row(log=False).values())[1:]
    return " to ".join(signed(f"{100 * end:+.2f}") for end in ends)


def moves(effect: Effect) -> str:
    """What the test error does as the batch grows, as a predicate."""
    if not effect.low * effect.high > 0:
        return "shows no clear trend"
    verb = "rises" if effect.value > 0 else "falls"
    return f"{verb} by {brief(100 * abs(effect.value))} points per doubling"


def table(ladders: Ladders) -> pd.DataFrame:
    """Test errors at the largest budget, a row per network and kind of budget with three batch
    sizes or more.
    """
    rows = []
    for name, both in ladders.items():
        for (kind, column), best in zip(KINDS.items(), both):
            last = fixed_budgets.largest(best, column)
            if last.batch_size.nunique() > 2:
                budget = f"{int(last[column].iloc[0]):,} {kind}"
                rows.append(
                    {"network": catalogue.workload(name).title, "budget": budget} | _row(last)
                )
    return pd.DataFrame(rows)


def _row(last: pd.DataFrame) -> dict[str, str]:
    return {
        "batch sizes": span((last.batch_size.min(), last.batch_size.max())),
        "lowest test error": f"{100 * last.test.min():.1f} %",
        "highest test error": f"{100 * last.test.max():.1f} %",
        "standard error": f"{100 * last.noise.mean():.1f} %",
        "per doubling (90 %)": points(fixed_budgets.trend(last.batch_size, last.test)),
    }
