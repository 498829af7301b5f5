"""The error that budgets of steps and of examples leave, and how it goes with the batch size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import fixed_budgets as every
from lib.analysis.fixed_budgets import whole as whole
from lib.analysis.fixed_budgets import within
from lib.analysis.scaling import Effect, best_of_k, mean_of, mean_over, slope
from lib.workloads import datasets
from lib.workloads.catalogue import workload

BEST = 5  # trials of a search whose errors are averaged: the lowest alone is mostly luck


def chosen(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """`lib.analysis.fixed_budgets.chosen` with what its errors leave open.

    low, high: 5 and 95 % of the lowest error of a random half of the trials.  unsure: standard
    error of the lowest validation error, one example at least.  noise: of the test error.
    """
    winners = every.chosen(rows, by)
    if winners.empty:
        return winners.assign(low=np.nan, high=np.nan, unsure=np.nan, noise=np.nan)
    errors = rows[rows.status != "infeasible"].groupby(by, sort=False).validation
    halves = errors.apply(lambda e: best_of_k(e.to_numpy(), (len(e) + 1) // 2))
    example = winners.workload.map(validation_example)
    tested = winners.workload.map(lambda name: datasets.test_size(workload(name).dataset))
    error = winners.validation
    return winners.assign(
        low=halves.str[0].to_numpy(),
        high=halves.str[-1].to_numpy(),
        unsure=np.maximum(np.sqrt(error * (1 - error) * example), example),
        noise=np.sqrt(winners.test * (1 - winners.test) / tested),
    )


def validation_example(name: str) -> float:
    """The share of its validation set that one example is; these sets are a ninth as large as
    training sets.
    """
    return 9 / workload(name).train_size


def ladders(trials: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`chosen` per batch size within the budgets that all batch sizes of one workload share: of
    steps, and of examples.

    Steps from 16 on; examples from the largest batch on, so that every batch size takes at least a
    step.
    """
    rows = within(trials)
    longest = rows.groupby("batch_size")[["budget", "examples"]].max().min()
    steps = rows[rows.budget.between(16, longest.budget)]
    examples = rows[rows.examples.between(rows.batch_size.max(), longest.examples)]
    by = ["workload", "batch_size"]
    return chosen(steps, [*by, "budget"]), chosen(examples, [*by, "examples"])


def largest(best: pd.DataFrame, column: str = "budget") -> pd.DataFrame:
    """The rows of a ladder at its largest budget, by batch size."""
    return best[best[column] == best[column].max()].sort_values("batch_size")


def by_workload(trials: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """`ladders` of every workload among trials without label smoothing: workload -> of steps, of
    examples.
    """
    plain = trials[trials.label_smoothing == 0].groupby("workload", sort=False)
    return {name: ladders(own) for name, own in plain}


def longest(trials: pd.DataFrame) -> pd.DataFrame:
    """The mean test error of the BEST trials after every batch size's own longest budget.

    A row per workload, label_smoothing, replicate and batch size, the trials chosen by their
    validation error.  Only batch sizes that have had their steps: the last doubling of the budget
    lowers their lowest validation error by less than a twentieth, or by one example at most.
    """
    rows = within(trials)
    keys = ["workload", "label_smoothing", "replicate"]
    rows = rows[rows.status != "infeasible"]
    rows = rows.sort_values(["validation", "trial"])
    search = [*keys, "batch_size"]
    most = rows.groupby(search).budget.transform("max")
    best = rows[rows.budget == most].groupby(search).head(BEST)
    means = best.groupby(search).test.mean()
    lowest = rows.groupby([*search, "budget"]).validation.min()
    last_two = lowest.groupby(search)
    after = last_two.nth(-1).droplevel("budget").reindex(means.index)
    before = last_two.nth(-2).droplevel("budget").reindex(means.index)
    names = means.index.get_level_values("workload")
    example = 1.001 * names.map(validation_example)
    settled = before - after <= np.maximum(before / 20, example)
    kept = means[settled].reset_index()
    return rows[keys].drop_duplicates().merge(kept, on=keys)


def trend(batch_size: pd.Series, error: pd.Series) -> Effect:
    """Change of an error per doubling of the batch size, of one search; NaN under 3 sizes.

    The error is that of the scatter about the line, which the number of images alone would
    overstate: all batch sizes are scored on the same ones.
    """
    return slope(np.log2(batch_size), error)


def risen(found: pd.DataFrame) -> dict[str, Effect]:
    """`trend` of the test error without label smoothing, of `longest`, by workload: of several
    searches the mean of theirs.
    """
    plain = found[found.label_smoothing == 0].groupby("workload", sort=False)
    return {name: _over_searches(own, "test") for name, own in plain}


def helped(found: pd.DataFrame) -> dict[tuple[str, float], Effect]:
    """As `risen`, of the test error that label smoothing saves, by workload and smoothing."""
    key = ["workload", "replicate", "batch_size"]
    without = found.loc[found.label_smoothing == 0, [*key, "test"]]
    both = found[found.label_smoothing > 0].merge(without, on=key, suffixes=("", "_without"))
    saved = both.assign(saved=both.test_without - both.test)
    groups = saved.groupby(["workload", "label_smoothing"], sort=False)
    return {name: _over_searches(own, "saved") for name, own in groups}


def _over_searches(rows: pd.DataFrame, column: str) -> Effect:
    """The mean of a column's trends in the searches of these rows; of one alone its own."""
    trends = [trend(own.batch_size, own[column]) for _, own in rows.groupby("replicate")]
    known = [one for one in trends if np.isfinite(one.value)]
    return mean_over(known or trends[:1])


def between_ends(
    best: pd.DataFrame, column: str, sign: int
) -> tuple[float, float, float] | None:
    """How much lower the validation error is at one end of batch size than at the other, at the
    smallest budget of a ladder, and the ends of its interval.

    best: of `ladders`, budgets in column; sign: 1 if the largest batch is favoured, -1 the
    smallest.  An error is its range of lucky searches, widened by what its validation set leaves
    open.  None under 5 batch sizes.
    """
    if best.batch_size.nunique() < 5:
        return None
    first = best[best[column] == best[column].min()]
    first = first.sort_values("batch_size")
    small = first.iloc[0]
    large = first.iloc[-1]
    doubt = np.hypot(small.unsure, large.unsure)
    gains = small.low - large.high - doubt, small.high - large.low + doubt
    low, high = sorted(sign * gain for gain in gains)
    return (low + high) / 2, low, high


def means(ends: pd.DataFrame) -> pd.DataFrame:
    """Rows of `longest` of one network, joined: batch_size, test (mean error), low, high (90 % over
    searches), n.
    """
    found = {size: mean_of(errors) for size, errors in ends.groupby("batch_size").test}
    rows = pd.DataFrame(
        [
            (size, mean.value, mean.reach if mean.n > 1 else 0.0, mean.n)
            for size, mean in found.items()
        ],
        columns=["batch_size", "test", "reach", "n"],
    )
    return rows.assign(low=(rows.test - rows.reach).clip(lower=0), high=rows.test + rows.reach)
