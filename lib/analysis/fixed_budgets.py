"""What cells whose trials all ran to their budget say: the best error within any budget of steps or examples."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib import require_all
from lib.analysis import scaling
from lib.engine.check_steps import last_check
from lib.workloads import datasets
from lib.workloads.catalogue import workload

PARTS = {"best@": "validation", "test@": "test", "sent@": "sent"}


def within(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per trial and budget: validation (lowest error so far), test (error at that check), sent (elements).

    trials: of `lib.records.results.read`, cells with stop "budget".  budget: in steps, powers of two; examples: budget x batch
    size.  checked: the last check within the budget, of which all three tell.  Trials that diverged or died are there, with
    the status "infeasible".
    """
    trials = trials.reset_index(drop=True)  # a selection keeps the labels of what it was selected from
    keys = [c for c in trials if "@" not in c and c not in PARTS.values()]
    parts = []
    for prefix, name in PARTS.items():
        columns = {c: int(c.removeprefix(prefix)) for c in trials if c.startswith(prefix)}
        if columns:
            part = trials.reset_index()[["index", *columns]].melt("index", var_name="budget", value_name=name)
            parts.append(part.assign(budget=part.budget.map(columns)).set_index(["index", "budget"]))
    if not parts:
        return pd.DataFrame(columns=[*keys, "budget", "examples", *PARTS.values()])
    joined = pd.concat(parts, axis=1).reset_index().join(trials[keys], on="index")
    joined = joined[joined.budget <= joined.max_steps].dropna(subset="validation")
    kinds = joined[["budget", "checks"]].drop_duplicates().itertuples(index=False)
    checked = {(b, c): last_check(b, c) for b, c in kinds}
    joined["checked"] = [checked[pair] for pair in zip(joined.budget, joined.checks, strict=True)]
    return joined.assign(examples=joined.budget * joined.batch_size).drop(columns="index").reset_index(drop=True)


def chosen(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Of every group, the trial with the lowest validation error; infeasible trials do not stand for election.

    low, high: 5 and 95 % of the lowest error of a random half of the trials.  noise: standard error of the test error,
    from the number of test examples alone.  unsure: that of the lowest validation error, one example at least.  trials: that
    stood.
    """
    standing = rows[rows.status != "infeasible"] if len(rows) else rows
    if not len(standing):
        return standing.reindex(columns=[*dict.fromkeys([*rows, *by, "low", "high", "noise", "unsure", "trials"])])
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
    """`chosen` per batch size within the budgets that all batch sizes of one workload share: of steps, and of examples.

    Steps from 16 on; examples from the largest batch on, so that every batch size takes at least a step.
    """
    rows, by = within(trials), ["workload", "batch_size"]
    if not len(rows):
        return chosen(rows, [*by, "budget"]), chosen(rows, [*by, "examples"])
    sizes = rows.groupby("batch_size")
    steps = rows[(rows.budget <= sizes.budget.max().min()) & (rows.budget >= 16)]
    examples = rows[(rows.examples <= sizes.examples.max().min()) & (rows.examples >= rows.batch_size.max())]
    return chosen(steps, [*by, "budget"]), chosen(examples, [*by, "examples"])


def largest(best: pd.DataFrame, column: str = "budget") -> pd.DataFrame:
    """The rows of a ladder at its largest budget, by batch size."""
    return best[best[column] == best[column].max()].sort_values("batch_size")


def limits(name: str) -> dict[str, int]:
    """The budgets, in steps and in examples, at which the maps of a workload's trials are read: more for large data sets."""
    small = workload(name).train_size < 10_000
    return {"steps": 1024, "examples": 2**14} if small else {"steps": 4096, "examples": 2**18}


def maps(trials: pd.DataFrame) -> pd.DataFrame:
    """`outcomes` of every workload's trials at its `limits`, one below the other, with its name in `workload`."""
    own = trials.groupby("workload", sort=False) if len(trials) else ()
    found = [outcomes(rows, **limits(name)).assign(workload=name) for name, rows in own]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def outcomes(trials: pd.DataFrame, steps: int, examples: int) -> pd.DataFrame:
    """Every trial twice, as a budget of so many steps (kind "fixed steps") and of so many examples ("fixed epochs") sees it.

    outcome: "reached the goal", "did not", or "diverged or died" if it did so within the budget.  slowness: 1 - momentum.
    Raises ValueError for budgets that are not positive.
    """
    for name, limit in (("steps", steps), ("examples", examples)):
        require_all(name, limit, lambda v: v >= 1, "a whole number from 1")
    parts = []
    for kind, limit in {"fixed steps": steps, "fixed epochs": examples}.items() if len(trials) else ():
        most = np.full(len(trials), limit) if kind == "fixed steps" else limit // trials.batch_size.to_numpy()
        lost = (trials.status == "infeasible") & (trials.last_step <= most)
        outcome = np.where(trials.steps <= most, "reached the goal", np.where(lost, "diverged or died", "did not"))
        shown = trials[["batch_size", "trial", "learning_rate", "steps"]].assign(slowness=1 - trials.momentum.fillna(0))
        parts.append(shown.assign(kind=kind, outcome=outcome, within=most)[most >= 1])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def shares(outcome: pd.DataFrame) -> pd.DataFrame:
    """Share of the trials of `maps` that reached the goal, per workload, kind and batch size, with a 95 % Wilson interval."""
    rows, keys = [], ["workload", "kind", "batch_size"]
    for key, own in outcome.groupby(keys, sort=False) if len(outcome) else ():
        met = int((own.outcome == "reached the goal").sum())
        low, high = scaling.wilson(met, len(own))
        own = {"share": met / len(own), "low": low, "high": high, "trials": len(own)}
        rows.append({**dict(zip(keys, key, strict=True)), **own})
    return pd.DataFrame(rows)


def slope(best: pd.DataFrame) -> tuple[float, float, float]:
    """Change of the chosen trials' test error per doubling of the batch size, with a 95 % interval; NaN under 3 sizes.

    Least squares with the test set's noise as weights; the interval is widened where points scatter more than that.
    """
    if best is None or len(best) < 3:
        return np.nan, np.nan, np.nan
    x, y, noise = np.log2(best.batch_size.to_numpy(float)), best.test.to_numpy(), best.noise.clip(lower=1e-4).to_numpy()
    weight = noise**-2
    centre = (weight * x).sum() / weight.sum()
    mean = (weight * y).sum() / weight.sum()
    information = (weight * (x - centre) ** 2).sum()
    rate = (weight * (x - centre) * (y - mean)).sum() / information
    scatter = (weight * (y - mean - rate * (x - centre)) ** 2).sum() / (len(x) - 2)
    reach = stdtrit(len(x) - 2, 0.975) * np.sqrt(max(scatter, 1) / information)
    return rate, rate - reach, rate + reach


def by_workload(trials: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """`ladders` of every workload among trials without label smoothing: workload -> of steps, of examples."""
    plain = trials[trials.label_smoothing == 0] if len(trials) else trials
    return {name: ladders(own) for name, own in plain.groupby("workload", sort=False)} if len(plain) else {}


def enough(found: dict[str, tuple[pd.DataFrame, pd.DataFrame]]) -> dict[str, tuple[bool, bool]]:
    """Of every workload's `ladders`, whether the largest budgets are large: of steps for the smallest batch, of examples for
    the largest (`settled`)."""

    def done(best: pd.DataFrame, column: str, end: float) -> bool:
        return len(best) > 0 and end in settled(best, column)

    return {w: (done(steps, "budget", steps.batch_size.min()), done(examples, "examples", examples.batch_size.max()))
            for w, (steps, examples) in found.items()}  # fmt: skip


def _example(name: str) -> float:
    """What one validation example counts; validation sets are a ninth as large as training sets."""
    return 9 / workload(name).train_size


def settled(best: pd.DataFrame, column: str = "budget") -> list[int]:
    """The batch sizes that have had their steps, in one workload's ladder.

    The last doubling of the budget lowers their validation error by less than a twentieth, or by one example at most.
    """
    example, found = _example(best.workload.iloc[0]) if len(best) else 0.0, []
    for size, own in best.sort_values(column).groupby("batch_size"):
        before, last = own.validation.iloc[[0, 0] if len(own) < 2 else [-2, -1]]
        if len(own) > 1 and before - last <= max(before / 20, example * 1.001):
            found.append(int(size))
    return found


BEST = 5  # trials of a search whose errors are averaged: the lowest alone is mostly luck


def longest(trials: pd.DataFrame) -> pd.DataFrame:
    """Errors after every batch size's own longest budget: the mean validation and test error of its BEST trials.

    A row per workload, label_smoothing, replicate and batch size, the trials chosen by their validation error.  Only batch sizes
    that have had their steps (`settled`), each by its own budget.
    """
    keys, parts = ["workload", "label_smoothing", "replicate"], []
    rows = within(trials)
    rows = rows[rows.status != "infeasible"].sort_values(["validation", "trial"]) if len(rows) else rows
    for key, own in rows.groupby(keys, sort=False) if len(rows) else ():
        lowest = own.groupby([*keys, "batch_size", "budget"]).validation.min().reset_index()
        last = own[own.batch_size.isin(settled(lowest)) & (own.budget == own.groupby("batch_size").budget.transform("max"))]
        means = last.groupby("batch_size").head(BEST).groupby("batch_size")[["validation", "test"]].mean().reset_index()
        parts.append(means.assign(**dict(zip(keys, key, strict=True))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*keys, "batch_size", "validation", "test"])


def trend(batch_size: pd.Series, error: pd.Series) -> tuple[float, float, float]:
    """Change of an error per doubling of the batch size, with a 95 % interval; NaN under 3 sizes.

    Least squares; the interval is of the scatter about the line, which the number of images alone would overstate: all batch
    sizes are scored on the same ones.
    """
    if len(batch_size) < 3:
        return np.nan, np.nan, np.nan
    x, y = np.log2(batch_size.to_numpy(float)), error.to_numpy(float)
    off = x - x.mean()
    rate = (off @ y) / (off @ off)
    rest = y - y.mean() - rate * off
    reach = stdtrit(len(x) - 2, 0.975) * np.sqrt(rest @ rest / (len(x) - 2) / (off @ off))
    return float(rate), float(rate - reach), float(rate + reach)


def risen(found: pd.DataFrame) -> dict[str, tuple[float, float, float, int]]:
    """`trend` of the test error without label smoothing, of `longest`: workload -> rate, low, high (95 %), count of searches.

    Of several searches, the mean of their rates, and the interval is Student's t over searches.
    """
    plain = found[found.label_smoothing == 0].groupby("workload", sort=False)
    return {name: _over_searches(own, "test") for name, own in plain}


def helped(found: pd.DataFrame) -> dict[tuple[str, float], tuple[float, float, float, int]]:
    """As `risen`, of the test error that label smoothing saves: (workload, smoothing) -> rate, low, high, count of searches."""
    key = ["workload", "replicate", "batch_size"]
    without = found.loc[found.label_smoothing == 0, [*key, "test"]]
    both = found[found.label_smoothing > 0].merge(without, on=key, suffixes=("", "_without"))
    saved = both.assign(saved=both.test_without - both.test).groupby(["workload", "label_smoothing"], sort=False)
    return {name: _over_searches(own, "saved") for name, own in saved}


def _over_searches(rows: pd.DataFrame, column: str) -> tuple[float, float, float, int]:
    """rate, low, high of a column's trend in each search of these rows, and their count: of one alone its own interval."""
    trends = [trend(own.batch_size, own[column]) for _, own in rows.groupby("replicate")]
    known = [one for one in trends if np.isfinite(one[0])]
    if len(known) < 2:
        return *(known[0] if known else (np.nan,) * 3), len(known)
    rates = np.array(known)[:, 0]
    reach = stdtrit(len(rates) - 1, 0.975) * rates.std(ddof=1) / len(rates) ** 0.5
    return float(rates.mean()), float(rates.mean() - reach), float(rates.mean() + reach), len(rates)
