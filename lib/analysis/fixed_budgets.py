"""What cells whose trials all ran to their budget say: the best error within any budget of steps or
examples.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from lib import require_all
from lib.analysis import scaling
from lib.analysis.counts import Share, fell, share
from lib.analysis.rate_rules import slope
from lib.analysis.scaling import Effect, mean_of
from lib.engine.vocabulary import last_check
from lib.records import results
from lib.studies import plans
from lib.workloads import datasets
from lib.workloads.catalogue import workload

# Studies whose trials all ran to a budget
BUDGETS = (
    "digits-budget",
    "mnist-budget",
    "fashion-mnist-budget",
)
PARTS = {"best@": "validation", "test@": "test", "sent@": "sent"}


@functools.cache
def whole() -> pd.DataFrame:
    """All trials of BUDGETS on record, one search of every network."""
    return pd.concat([results.read(plans.study(name)) for name in BUDGETS], ignore_index=True)


def within(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per trial and budget: validation (lowest error so far), test (error at that check),
    sent (elements).

    trials: of `lib.records.results.read`, cells with stop "budget".  budget: in steps, powers of
    two; examples: budget x batch size.  checked: the last check within the budget, of which all
    three tell.  Trials that diverged or died are there, with the status "infeasible".
    """
    # A selection keeps the labels of what it was selected from
    trials = trials.reset_index(drop=True)
    keys = [c for c in trials if "@" not in c and c not in PARTS.values()]
    parts = []
    for prefix, name in PARTS.items():
        columns = {c: int(c.removeprefix(prefix)) for c in trials if c.startswith(prefix)}
        if columns:
            part = trials.reset_index()[["index", *columns]].melt(
                "index", var_name="budget", value_name=name
            )
            parts.append(
                part.assign(budget=part.budget.map(columns)).set_index(["index", "budget"])
            )
    if not parts:
        return pd.DataFrame(columns=[*keys, "budget", "examples", *PARTS.values()])
    joined = pd.concat(parts, axis=1).reset_index().join(trials[keys], on="index")
    joined = joined[joined.budget <= joined.max_steps].dropna(subset="validation")
    kinds = joined[["budget", "checks"]].drop_duplicates().itertuples(index=False)
    checked = {(b, c): last_check(b, c) for b, c in kinds}
    joined["checked"] = [checked[pair] for pair in zip(joined.budget, joined.checks, strict=True)]
    return (
        joined.assign(examples=joined.budget * joined.batch_size)
        .drop(columns="index")
        .reset_index(drop=True)
    )


def chosen(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Of every group, the trial with the lowest validation error; infeasible trials do not stand
    for election.

    low, high: 5 and 95 % of the lowest error of a random half of the trials.  noise: standard error
    of the test error, from the number of test examples alone.  unsure: that of the lowest
    validation error, one example at least.  trials: that stood.
    """
    standing = rows[rows.status != "infeasible"] if len(rows) else rows
    if not len(standing):
        return standing.reindex(
            columns=[*dict.fromkeys([*rows, *by, "low", "high", "noise", "unsure", "trials"])]
        )
    groups = standing.groupby(by, sort=False)
    winners = standing.loc[groups.validation.idxmin()].set_index(by)
    spread = groups.validation.apply(lambda e: scaling.best_of_k(e.to_numpy(), (len(e) + 1) // 2))
    names = winners.reset_index().workload
    n = names.map(lambda w: datasets.test_size(workload(w).dataset)).to_numpy()
    held = names.map(lambda w: 1 / _example(w)).to_numpy()
    return winners.assign(
        low=[s[0] for s in spread.loc[winners.index]],
        high=[s[-1] for s in spread.loc[winners.index]],
        noise=np.sqrt(winners.test * (1 - winners.test) / n),
        unsure=np.maximum(np.sqrt(winners.validation * (1 - winners.validation) / held), 1 / held),
        trials=groups.size().loc[winners.index],
    ).reset_index()


def ladders(trials: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`chosen` per batch size within the budgets that all batch sizes of one workload share: of
    steps, and of examples.

    Steps from 16 on; examples from the largest batch on, so that every batch size takes at least a
    step.
    """
    rows, by = within(trials), ["workload", "batch_size"]
    if not len(rows):
        return chosen(rows, [*by, "budget"]), chosen(rows, [*by, "examples"])
    sizes = rows.groupby("batch_size")
    steps = rows[(rows.budget <= sizes.budget.max().min()) & (rows.budget >= 16)]
    examples = rows[
        (rows.examples <= sizes.examples.max().min()) & (rows.examples >= rows.batch_size.max())
    ]
    return chosen(steps, [*by, "budget"]), chosen(examples, [*by, "examples"])


def largest(best: pd.DataFrame, column: str = "budget") -> pd.DataFrame:
    """The rows of a ladder at its largest budget, by batch size."""
    return best[best[column] == best[column].max()].sort_values("batch_size")


def limits(name: str) -> dict[str, int]:
    """The budgets, in steps and in examples, at which the maps of a workload's trials are read:
    more for large data sets.
    """
    small = workload(name).train_size < 10_000
    return {"steps": 1024, "examples": 2**14} if small else {"steps": 4096, "examples": 2**18}


def maps(trials: pd.DataFrame) -> pd.DataFrame:
    """`outcomes` of every workload's trials at its `limits`, one below the other, with its name in
    `workload`.
    """
    own = trials.groupby("workload", sort=False) if len(trials) else ()
    found = [outcomes(rows, **limits(name)).assign(workload=name) for name, rows in own]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def outcomes(trials: pd.DataFrame, steps: int, examples: int) -> pd.DataFrame:
    """Every trial twice, as a budget of so many steps (kind "fixed steps") and of so many examples
    ("fixed epochs") sees it.

    outcome: "reached the goal", "did not", or "diverged or died" if it did so within the budget.
    slowness: 1 - momentum. Raises ValueError for budgets that are not positive.
    """
    for name, limit in (("steps", steps), ("examples", examples)):
        require_all(name, limit, lambda v: v >= 1, "a whole number from 1")
    parts = []
    for kind, limit in (
        {"fixed steps": steps, "fixed epochs": examples}.items() if len(trials) else ()
    ):
        most = (
            np.full(len(trials), limit)
            if kind == "fixed steps"
            else limit // trials.batch_size.to_numpy()
        )
        lost = (trials.status == "infeasible") & (trials.last_step <= most)
        outcome = np.where(
            trials.steps <= most, "reached the goal", np.where(lost, "diverged or died", "did not")
        )
        shown = trials[["batch_size", "trial", "learning_rate", "steps"]].assign(
            slowness=1 - trials.momentum.fillna(0)
        )
        parts.append(shown.assign(kind=kind, outcome=outcome, within=most)[most >= 1])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def shares(outcome: pd.DataFrame) -> pd.DataFrame:
    """Share of the trials of `maps` that reached the goal, per workload, kind and batch size, with
    its interval.
    """
    rows, keys = [], ["workload", "kind", "batch_size"]
    for key, own in outcome.groupby(keys, sort=False) if len(outcome) else ():
        met = int((own.outcome == "reached the goal").sum())
        value, low, high = share(met, len(own))
        own = {"share": value, "low": low, "high": high, "trials": len(own)}
        rows.append({**dict(zip(keys, key, strict=True)), **own})
    return pd.DataFrame(rows)


def by_workload(trials: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """`ladders` of every workload among trials without label smoothing: workload -> of steps, of
    examples.
    """
    plain = trials[trials.label_smoothing == 0] if len(trials) else trials
    return (
        {name: ladders(own) for name, own in plain.groupby("workload", sort=False)}
        if len(plain)
        else {}
    )


def enough(found: dict[str, tuple[pd.DataFrame, pd.DataFrame]]) -> dict[str, tuple[bool, bool]]:
    """Of every workload's `ladders`, whether the largest budgets are large: of steps for the
    smallest batch, of examples for the largest (`settled`)."""

    def done(best: pd.DataFrame, column: str, end: float) -> bool:
        return len(best) > 0 and end in settled(best, column)

    return {
        w: (
            done(steps, "budget", steps.batch_size.min()),
            done(examples, "examples", examples.batch_size.max()),
        )
        for w, (steps, examples) in found.items()
    }


def _example(name: str) -> float:
    """What one validation example counts; validation sets are a ninth as large as training sets."""
    return 9 / workload(name).train_size


def settled(best: pd.DataFrame, column: str = "budget") -> list[int]:
    """The batch sizes that have had their steps, in one workload's ladder.

    The last doubling of the budget lowers their validation error by less than a twentieth, or by
    one example at most.
    """
    example, found = _example(best.workload.iloc[0]) if len(best) else 0.0, []
    for size, own in best.sort_values(column).groupby("batch_size"):
        before, last = own.validation.iloc[[0, 0] if len(own) < 2 else [-2, -1]]
        if len(own) > 1 and before - last <= max(before / 20, example * 1.001):
            found.append(int(size))
    return found


BEST = 5  # trials of a search whose errors are averaged: the lowest alone is mostly luck


def longest(trials: pd.DataFrame) -> pd.DataFrame:
    """Errors after every batch size's own longest budget: the mean validation and test error of its
    BEST trials.

    A row per workload, label_smoothing, replicate and batch size, the trials chosen by their
    validation error.  Only batch sizes that have had their steps (`settled`), each by its own
    budget.
    """
    keys, parts = ["workload", "label_smoothing", "replicate"], []
    rows = within(trials)
    rows = (
        rows[rows.status != "infeasible"].sort_values(["validation", "trial"])
        if len(rows)
        else rows
    )
    for key, own in rows.groupby(keys, sort=False) if len(rows) else ():
        lowest = own.groupby([*keys, "batch_size", "budget"]).validation.min().reset_index()
        last = own[
            own.batch_size.isin(settled(lowest))
            & (own.budget == own.groupby("batch_size").budget.transform("max"))
        ]
        means = (
            last.groupby("batch_size")
            .head(BEST)
            .groupby("batch_size")[["validation", "test"]]
            .mean()
            .reset_index()
        )
        parts.append(means.assign(**dict(zip(keys, key, strict=True))))
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=[*keys, "batch_size", "validation", "test"])
    )


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
    saved = both.assign(saved=both.test_without - both.test).groupby(
        ["workload", "label_smoothing"], sort=False
    )
    return {name: _over_searches(own, "saved") for name, own in saved}


def _over_searches(rows: pd.DataFrame, column: str) -> Effect:
    """The mean of a column's trends in the searches of these rows; of one alone its own."""
    trends = [trend(own.batch_size, own[column]) for _, own in rows.groupby("replicate")]
    known = [one for one in trends if np.isfinite(one.value)]
    return mean_of([one.value for one in known]) if len(known) > 1 else [*known, *trends][0]


def between_ends(best: pd.DataFrame, column: str, sign: int) -> Share | None:
    """How much lower the validation error is at one end of batch size than at the other, at the
    smallest budget of a ladder.

    best: of `ladders`, budgets in column; sign: 1 if the largest batch is favoured, -1 the
    smallest.  An error is its range of lucky searches, widened by what its validation set leaves
    open.  None under 5 batch sizes.
    """
    if best.batch_size.nunique() < 5:
        return None
    small, large = (
        best[best[column] == best[column].min()]
        .sort_values("batch_size")
        .iloc[[0, -1]]
        .itertuples()
    )
    doubt = np.hypot(small.unsure, large.unsure)
    ends = sorted(
        sign * e for e in (small.low - large.high - doubt, small.high - large.low + doubt)
    )
    return Share(sum(ends) / 2, *ends)


def moved(shares: pd.DataFrame) -> Share | None:
    """The share of good trials that is gained at fixed steps, or lost at fixed epochs, from the
    smallest batch to the largest.

    The lesser of the two.  shares: of one workload.  None under 5 batch sizes.
    """
    kinds = {kind: own.sort_values("batch_size") for kind, own in shares.groupby("kind")}
    if len(kinds) < 2 or min(map(len, kinds.values())) < 5:
        return None
    columns = ["share", "low", "high"]
    steps, epochs = (
        [Share(*row) for row in kinds[kind][columns].to_numpy()]
        for kind in ("fixed steps", "fixed epochs")
    )
    return min(fell(steps[-1], steps[0]), fell(epochs[0], epochs[-1]), key=lambda found: found.low)


def lost(trials: pd.DataFrame) -> Share:
    """The share of one workload's trials that fail at the smallest batch size less that at the
    largest, within equal steps.
    """
    steps = int(trials.groupby("batch_size").max_steps.max().min())
    failed = trials.status.eq("infeasible") & (trials.last_step <= steps)
    ends = [
        failed[trials.batch_size == b] for b in (trials.batch_size.min(), trials.batch_size.max())
    ]
    return fell(*(share(int(end.sum()), len(end)) for end in ends))


def means(ends: pd.DataFrame) -> pd.DataFrame:
    """Rows of `longest` with network, joined: network, batch_size, test (mean error), low, high (90
    % over searches), n.
    """
    found = []
    for (network, size), own in ends.groupby(["network", "batch_size"]) if len(ends) else ():
        mean = mean_of(own.test)
        low, high = (mean.low, mean.high) if mean.n > 1 else (mean.value, mean.value)
        found.append(
            {
                "network": network,
                "batch_size": size,
                "test": mean.value,
                "low": max(low, 0),
                "high": high,
                "n": mean.n,
            }
        )
    return pd.DataFrame(found)
