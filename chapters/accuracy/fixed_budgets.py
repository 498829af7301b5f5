"""The error that budgets of steps and of examples leave, and how it varies with batch size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import fixed_budgets
from lib.analysis.fixed_budgets import within
from lib.analysis.scaling import Effect, best_of_k, mean_of
from lib.workloads.catalogue import workload

BEST = 5  # trials of a search whose errors are averaged: the lowest alone is mostly luck


def chosen(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """`lib.analysis.fixed_budgets.chosen` with the uncertainty of its errors.

    low, high: 5 and 95 % quantiles of the lowest error in a random half of the trials.
    unsure: standard error of the lowest validation error, at least one example.
    """
    winners = fixed_budgets.chosen(rows, by)
    if winners.empty:
        return winners.assign(low=np.nan, high=np.nan, unsure=np.nan)
    errors = rows[rows.status != "infeasible"].groupby(by, sort=False).validation
    halves = errors.apply(lambda e: best_of_k(e.to_numpy(), (len(e) + 1) // 2))
    example = winners.workload.map(validation_example)
    error = winners.validation
    return winners.assign(
        low=halves.str[0].to_numpy(),
        high=halves.str[-1].to_numpy(),
        unsure=np.maximum(np.sqrt(error * (1 - error) * example), example),
    )


def validation_example(name: str) -> float:
    """One example as a share of a workload's validation set, which is a ninth as large as its
    training set.
    """
    return 9 / workload(name).train_size


def ladders(trials: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`chosen` per batch size within the budgets that all batch sizes of one workload share: in
    steps, and in examples.

    Budgets of steps start at 16, budgets of examples at the largest batch, so that every batch
    size takes at least one step.
    """
    rows = within(trials)
    longest = rows.groupby("batch_size")[["budget", "examples"]].max().min()
    steps = rows[rows.budget.between(16, longest.budget)]
    examples = rows[rows.examples.between(rows.batch_size.max(), longest.examples)]
    point = ["workload", "batch_size"]
    return chosen(steps, [*point, "budget"]), chosen(examples, [*point, "examples"])


def by_workload() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """`ladders` for every workload on record, without label smoothing: workload -> (by steps, by
    examples).
    """
    trials = fixed_budgets.whole()
    plain = trials[trials.label_smoothing == 0].groupby("workload", sort=False)
    return {name: ladders(searches) for name, searches in plain}


def longest(trials: pd.DataFrame) -> pd.DataFrame:
    """The mean test error of the BEST trials after each batch size's longest budget.

    A row per workload, label_smoothing, replicate and batch size; trials are chosen by validation
    error.  Only batch sizes with enough steps: the last doubling of the budget lowers their lowest
    validation error by at most a twentieth, or by at most one example.
    """
    keys = ["workload", "label_smoothing", "replicate"]
    search = [*keys, "batch_size"]
    rows = within(trials)
    rows = rows[rows.status != "infeasible"].sort_values(["validation", "trial"])
    last = rows[rows.budget == rows.groupby(search).budget.transform("max")]
    means = last.groupby(search).head(BEST).groupby(search).test.mean()
    lowest = rows.groupby([*search, "budget"]).validation.min().groupby(search)
    before, after = (
        lowest.nth(place).droplevel("budget").reindex(means.index) for place in (-2, -1)
    )
    example = 1.001 * means.index.get_level_values("workload").map(validation_example)
    settled = means[before - after <= np.maximum(before / 20, example)].reset_index()
    return rows[keys].drop_duplicates().merge(settled, on=keys)


def trend(batch_size: pd.Series, error: pd.Series) -> Effect:
    """Change of an error per doubling of the batch size in one search; NaN below 3 sizes.

    Its standard error comes from the scatter about the line.  One from the number of images would
    be too large, since all batch sizes are scored on the same images.
    """
    from scipy import stats  # slow to import

    if len(batch_size) < 3:
        return Effect(np.nan, np.nan, 1.0, 1)
    line = stats.linregress(np.log2(batch_size), error)
    return Effect(line.slope, line.stderr, len(error) - 2.0, 1)


def risen(ends: pd.DataFrame) -> dict[str, Effect]:
    """`trend` of the test error without label smoothing, by workload: the mean over searches;
    ends: from `longest`.
    """
    plain = ends[ends.label_smoothing == 0].groupby("workload", sort=False)
    return {name: _over_searches(searches, "test") for name, searches in plain}


def helped(ends: pd.DataFrame) -> dict[tuple[str, float], Effect]:
    """As `risen`, for the test error that label smoothing saves, by workload and smoothing."""
    key = ["workload", "replicate", "batch_size"]
    plain = ends.loc[ends.label_smoothing == 0, [*key, "test"]]
    pairs = ends[ends.label_smoothing > 0].merge(plain, on=key, suffixes=("", "_without"))
    pairs["saved"] = pairs.test_without - pairs.test
    groups = pairs.groupby(["workload", "label_smoothing"], sort=False)
    return {key: _over_searches(searches, "saved") for key, searches in groups}


def _over_searches(rows: pd.DataFrame, column: str) -> Effect:
    """The mean `trend` of a column over the searches of these rows; a single search's as it is."""
    trends = [
        trend(search.batch_size, search[column]) for _, search in rows.groupby("replicate")
    ]
    several = [effect for effect in trends if np.isfinite(effect.value)] or trends[:1]
    return mean_of([effect.value for effect in several]) if len(several) > 1 else several[0]


def between_ends(
    best: pd.DataFrame, column: str, sign: int
) -> tuple[float, float, float] | None:
    """How much lower the validation error is at one end of the batch sizes than at the other, at
    a ladder's smallest budget: value, low, high.  None below 5 batch sizes.

    best: from `ladders`; column: of its budgets; sign: 1 if the largest batch is favoured, -1 if
    the smallest.  Each error counts as its interval over searches (low to high), widened by the
    standard error from its validation set.
    """
    if best.batch_size.nunique() < 5:
        return None
    first = best[best[column] == best[column].min()].sort_values("batch_size")
    small, large = first.iloc[0], first.iloc[-1]
    doubt = np.hypot(small.unsure, large.unsure)
    gains = small.low - large.high - doubt, small.high - large.low + doubt
    low, high = sorted(sign * gain for gain in gains)
    return (low + high) / 2, low, high


def means(ends: pd.DataFrame) -> pd.DataFrame:
    """One network's rows from `longest`, averaged over searches: batch_size, test (mean error),
    low, high (90 %), n.
    """
    rows = []
    for size, errors in ends.groupby("batch_size").test:
        mean = mean_of(errors)
        reach = mean.reach if mean.n > 1 else 0.0
        low, high = max(mean.value - reach, 0), mean.value + reach
        rows.append(
            {"batch_size": size, "test": mean.value, "low": low, "high": high, "n": mean.n}
        )
    return pd.DataFrame(rows)
