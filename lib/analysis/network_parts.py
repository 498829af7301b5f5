"""What it takes to train parts of a network, against training the whole: tables of `lib.systems.subnetworks`, `.growing` and
`.halves`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib.analysis import evidence
from lib.records import store

WHOLE = "64 units from the start"


def goals(trials: pd.DataFrame) -> list[float]:
    """The goals of the trials, the hardest first."""
    return sorted(float(name.partition("@")[2]) for name in trials if name.startswith("steps@"))


def geometric(values: Iterable[float]) -> tuple[float, float, float, int]:
    """The geometric mean over searches, its 5 and 95 % ends by Student's t on logarithms, and their number.

    NaN throughout if a search has no value, or there is none; of one search the ends are NaN.
    """
    logs = np.log(np.asarray([*values], float))
    if not len(logs) or not np.isfinite(logs).all():
        return np.nan, np.nan, np.nan, len(logs)
    reach = stdtrit(len(logs) - 1, 0.95) * logs.std(ddof=1) / len(logs) ** 0.5 if len(logs) > 1 else np.nan
    return (*np.exp([logs.mean(), logs.mean() - reach, logs.mean() + reach]), len(logs))


def together(*tables: pd.DataFrame) -> pd.DataFrame:
    """The tables one below the other, with all of their records."""
    found = pd.concat(tables, ignore_index=True)
    heads = store.Shared(head for table in tables for head in table.attrs["provenance"])
    found.attrs.update(provenance=heads, planned=sum(table.attrs["planned"] for table in tables))
    return found


def _least(trials: pd.DataFrame, keys: list[str], what: str) -> pd.DataFrame:
    """The least of `what`@goal in every search, a row per search and goal; NaN where no trial met the goal."""
    columns = {f"{what}@{goal:g}": goal for goal in goals(trials)}
    wide = trials.groupby(keys)[list(columns)].min().rename(columns=columns)
    return wide.rename_axis(columns="goal").stack(future_stack=True).rename(what).reset_index()


# --- independent subnetworks ------------------------------------------------------------------------------------------


def subnetworks(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search of parts and goal, beside the search of the whole network with as many examples a step.

    trials: of `lib.systems.subnetworks.results`.  Columns: workers, local_steps, replicate, goal, steps, rounds, sent (numbers
    that a worker sends until then), adds (multiply-adds of a worker until then); steps_whole, sent_whole and adds_whole, those
    of data parallelism among as many workers; alone: steps of a single worker, with its own examples only.
    """
    keys = ["workers", "local_steps", "batch_size", "replicate"]
    found = _least(trials, keys, "steps").merge(trials.groupby(keys)[["sent", "adds"]].first().reset_index())
    parts, whole = found[found.workers > 1], found[found.workers == 1]
    parts = parts.assign(examples=parts.workers * parts.batch_size, rounds=np.ceil(parts.steps / parts.local_steps))
    parts = parts.assign(sent=parts.rounds * parts.sent, adds=parts.steps * parts.adds)
    every = whole.drop(columns=["workers", "local_steps"]).rename(columns={"batch_size": "examples"})
    beside = parts.merge(every, on=["examples", "replicate", "goal"], suffixes=("", "_whole"), validate="many_to_one")
    one = every.rename(columns={"examples": "batch_size", "steps": "alone"})[["batch_size", "replicate", "goal", "alone"]]
    beside = beside.merge(one, on=["batch_size", "replicate", "goal"], validate="many_to_one")
    share = beside.steps_whole / beside.workers  # each worker has its share of the examples
    return beside.assign(sent_whole=beside.steps_whole * beside.sent_whole, adds_whole=share * beside.adds_whole)


def over_whole(beside: pd.DataFrame, goal: float, what: str) -> pd.DataFrame:
    """`what` of parts over that of data parallelism, by workers and local_steps, at a goal: effect, low, high, n, met.

    beside: of `subnetworks`; met: searches that reach the goal.  Effects are NaN unless all do.
    """
    own, rows = beside[beside.goal == goal], []
    for keys, some in own.groupby(["workers", "local_steps"]):
        rows.append((*keys, *geometric(some[what] / some[f"{what}_whole"]), int(some.steps.notna().sum())))
    return pd.DataFrame(rows, columns=["workers", "local_steps", "effect", "low", "high", "n", "met"])


def over_alone(beside: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Steps of parts over those of a single worker with the whole network and its own examples only, as `over_whole`."""
    return over_whole(beside.assign(steps_whole=beside.alone), goal, "steps")


def hardest(beside: pd.DataFrame) -> pd.DataFrame:
    """The hardest goal that all searches meet, by workers and local_steps, and that any does; NaN for none."""
    met = beside.assign(met=beside.steps.notna()).groupby(["workers", "local_steps", "goal"]).met.agg(["all", "any"])
    found = {which: met[met[which]].reset_index().groupby(["workers", "local_steps"]).goal.min() for which in met}
    return pd.DataFrame(found).reindex(met.index.droplevel("goal").unique()).reset_index()


def curves(beside: pd.DataFrame, most: int) -> pd.DataFrame:
    """A row per point of a figure: goal, workers, training (words), steps, low, high, met (words), all_met.

    Where some search misses the goal, steps are `most`, after which searches end.
    """
    rows = []
    for (goal, workers), own in beside.groupby(["goal", "workers"]):
        lines = [(f"parts, {n} local step{'s' * (n > 1)}", some.steps) for n, some in own.groupby("local_steps")]
        first = own.drop_duplicates("replicate")
        for name, steps in [("data parallelism", first.steps_whole), *lines]:
            middle, low, high, n = geometric(steps)
            met = int(steps.notna().sum())
            ends = (middle, low, high) if met == n else (most, most, most)
            rows.append((goal, workers, name, *ends, f"{met} of {n}", met == n))
    return pd.DataFrame(rows, columns=["goal", "workers", "training", "steps", "low", "high", "met", "all_met"])


# --- growing ----------------------------------------------------------------------------------------------------------


def growing(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, batch_size, replicate, goal, steps and adds, each the least of any trial.

    trials: of `lib.systems.growing.results`.
    """
    keys = ["arm", "batch_size", "replicate"]
    return _least(trials, keys, "steps").merge(_least(trials, keys, "adds"), on=[*keys, "goal"])


def over_fixed(found: pd.DataFrame, goal: float, what: str, whole: str = WHOLE) -> pd.DataFrame:
    """`what` of every arm over that of the arm `whole`, by batch size: arm, batch_size, effect, low, high, n, met.

    found: of `growing` or `halved`.  Effects are NaN unless all searches of both meet the goal.
    """
    own = found[found.goal == goal]
    wide = own.pivot(index=["batch_size", "replicate"], columns="arm", values=what)
    rows = []
    for batch_size, some in wide.groupby("batch_size"):
        for name in wide.columns.drop(whole):
            rows.append((name, batch_size, *geometric(some[name] / some[whole]), int(some[name].notna().sum())))
    return pd.DataFrame(rows, columns=["arm", "batch_size", "effect", "low", "high", "n", "met"])


# --- halves -----------------------------------------------------------------------------------------------------------

TOGETHER, APART, RECOVERED = "the whole network", "two halves", "two halves, then the whole"


def halved(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, batch_size, replicate, goal, steps, adds and sent, each the least of any trial.

    trials: of `lib.systems.halves.results`.
    """
    keys = ["arm", "batch_size", "replicate"]
    steps, *others = (_least(trials, keys, what) for what in ("steps", "adds", "sent"))
    for other in others:
        steps = steps.merge(other, on=[*keys, "goal"])
    return steps


def met_by_all(found: pd.DataFrame) -> dict[tuple[str, int], float]:
    """The hardest goal that all searches meet, by arm and batch size; without those that meet none.  found: of `halved`."""
    met = found.groupby(["arm", "batch_size", "goal"]).steps.agg(lambda steps: steps.notna().all())
    return met[met].reset_index().groupby(["arm", "batch_size"]).goal.min().to_dict()


# --- claims -----------------------------------------------------------------------------------------------------------

PUBLISHED = 20  # local steps of the published runs


def claimed(parts: pd.DataFrame, grown: pd.DataFrame, cut: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The effects that claims are judged by, by their keys, as of `lib.analysis.evidence`; empty without records.

    parts, grown, cut: of the systems' `results`, `lib.systems.halves` last.
    """
    found = {}
    if len(parts):
        beside = subnetworks(parts)
        best = beside[beside.local_steps == PUBLISHED]
        found |= {"I1": _saved(best, "sent"), "I2": _saved(best, "adds"), "I3": _met(beside)}
    if len(grown):
        searches = growing(grown)
        over = over_fixed(searches, goals(grown)[0], "adds")
        rows = []
        for r in over[over.arm.str.contains("function kept") & ~over.arm.str.contains("rate")].itertuples():
            name = f"batches of {r.batch_size:,}"
            rows.append((name, 1 / r.effect, 1 / r.high, 1 / r.low, r.n) if r.effect == r.effect else (name, *[np.nan] * 3, 0))
        found["I4"] = evidence.table(rows)
    if len(cut):
        searches = halved(cut)
        hard = searches[(searches.goal == goals(cut)[0]) & (searches.arm != TOGETHER)]
        met = hard.steps.notna().groupby(hard.arm)
        found["I5"] = evidence.table((arm, *evidence.share(int(own.sum()), len(own))) for arm, own in met)
        found["I6"] = evidence.table(_sent_less(searches))
    return found


def _sent_less(searches: pd.DataFrame) -> list[tuple]:
    """How many times as many numbers two stages of the whole network exchange, by batch size, at the hardest goal that all meet."""
    rows = []
    for size, own in searches[searches.arm != APART].groupby("batch_size"):
        met = own.groupby("goal").steps.agg(lambda steps: steps.notna().all())
        both = own[own.goal == min(met.index[met], default=np.nan)].pivot(index="replicate", columns="arm", values="sent")
        both = both.reindex(columns=[TOGETHER, RECOVERED])
        rows.append((f"batches of {size:,}", *geometric(both[TOGETHER] / both[RECOVERED])))
    return rows


def _saved(beside: pd.DataFrame, what: str) -> pd.DataFrame:
    """How many times as much data parallelism takes, by workers, at the hardest goal that all searches of both meet."""
    rows = []
    for workers, own in beside.groupby("workers"):
        met = own.groupby("goal")[["steps", "steps_whole"]].agg(lambda steps: steps.notna().all()).all(axis=1)
        some = own[own.goal == min(met.index[met], default=np.nan)]
        rows.append((f"{workers} workers", *geometric(some[f"{what}_whole"] / some[what])))
    return evidence.table(rows)


def _met(beside: pd.DataFrame) -> pd.DataFrame:
    """The share of searches that meet the hardest goal, by workers."""
    own = beside[beside.goal == beside.goal.min()]
    met = own.steps.notna().groupby(own.workers)
    return evidence.table((f"{workers} workers", *evidence.share(int(some.sum()), len(some))) for workers, some in met)
