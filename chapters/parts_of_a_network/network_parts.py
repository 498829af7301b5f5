"""What it takes to train parts of a network, against training the whole: tables of `subnetworks`,
`.growing` and `.halves`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Effect
from lib.records import store

WHOLE, GROWN = "64 units from the start", "16 to 64: function kept"


def goals(trials: pd.DataFrame) -> list[float]:
    """The goals of the trials, the hardest first."""
    return sorted(float(name.partition("@")[2]) for name in trials if name.startswith("steps@"))


def mean_ratio(values: Iterable[float]) -> Effect | None:
    """ln of the geometric mean over searches; None if a search has no value, or there is none."""
    logs = np.log(np.asarray([*values], float))
    return scaling.mean_of(logs) if len(logs) and np.isfinite(logs).all() else None


def geometric(values: Iterable[float]) -> tuple[float, float, float, int]:
    """`mean_ratio` as a value, its 5 and 95 % ends, and the number of searches; NaN throughout if
    there is none.
    """
    values = [*values]
    found = mean_ratio(values)
    return (*found.row().values(), found.n) if found else (np.nan, np.nan, np.nan, len(values))


def together(*tables: pd.DataFrame) -> pd.DataFrame:
    """The tables one below the other, with all of their records."""
    found = pd.concat(tables, ignore_index=True)
    heads = store.Shared(head for table in tables for head in table.attrs["provenance"])
    found.attrs.update(provenance=heads, planned=sum(table.attrs["planned"] for table in tables))
    return found


def _least(trials: pd.DataFrame, keys: list[str], what: str) -> pd.DataFrame:
    """The least of `what`@goal in every search, a row per search and goal; NaN where no trial met
    the goal.
    """
    columns = {f"{what}@{goal:g}": goal for goal in goals(trials)}
    wide = trials.groupby(keys)[list(columns)].min().rename(columns=columns)
    return wide.rename_axis(columns="goal").stack(future_stack=True).rename(what).reset_index()


# --- independent subnetworks ----------------------------------------------------------------------


def subnetworks(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search of parts and goal, beside the search of the whole network with as many
    examples a step.

    trials: of `subnetworks.results`.  Columns: workers, local_steps, replicate, goal, steps,
    rounds, sent (numbers that a worker sends until then), adds (multiply-adds of a worker until
    then); steps_whole, sent_whole and adds_whole, those of data parallelism among as many workers;
    alone: steps of a single worker, with its own examples only.
    """
    keys = ["workers", "local_steps", "batch_size", "replicate"]
    found = _least(trials, keys, "steps").merge(
        trials.groupby(keys)[["sent", "adds"]].first().reset_index()
    )
    parts, whole = found[found.workers > 1], found[found.workers == 1]
    parts = parts.assign(
        examples=parts.workers * parts.batch_size, rounds=np.ceil(parts.steps / parts.local_steps)
    )
    parts = parts.assign(sent=parts.rounds * parts.sent, adds=parts.steps * parts.adds)
    every = whole.drop(columns=["workers", "local_steps"]).rename(
        columns={"batch_size": "examples"}
    )
    beside = parts.merge(
        every, on=["examples", "replicate", "goal"], suffixes=("", "_whole"), validate="many_to_one"
    )
    one = every.rename(columns={"examples": "batch_size", "steps": "alone"})[
        ["batch_size", "replicate", "goal", "alone"]
    ]
    beside = beside.merge(one, on=["batch_size", "replicate", "goal"], validate="many_to_one")
    share = beside.steps_whole / beside.workers  # each worker has its share of the examples
    return beside.assign(
        sent_whole=beside.steps_whole * beside.sent_whole, adds_whole=share * beside.adds_whole
    )


def over_whole(beside: pd.DataFrame, goal: float, what: str) -> pd.DataFrame:
    """`what` of parts over that of data parallelism, by workers and local_steps, at a goal: effect,
    low, high, n, met.

    beside: of `subnetworks`; met: searches that reach the goal.  Effects are NaN unless all do.
    """
    own, rows = beside[beside.goal == goal], []
    for keys, some in own.groupby(["workers", "local_steps"]):
        rows.append(
            (*keys, *geometric(some[what] / some[f"{what}_whole"]), int(some.steps.notna().sum()))
        )
    return pd.DataFrame(
        rows, columns=["workers", "local_steps", "effect", "low", "high", "n", "met"]
    )


def over_alone(beside: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Steps of parts over those of a single worker with the whole network and its own examples
    only, as `over_whole`.
    """
    return over_whole(beside.assign(steps_whole=beside.alone), goal, "steps")


def all_meet(own: pd.DataFrame, *steps: str) -> float:
    """The hardest goal at which all searches of a table know these steps; NaN if there is none."""
    met = own.groupby("goal")[[*steps]].agg(lambda values: values.notna().all()).all(axis=1)
    return min(met.index[met], default=np.nan)


def hardest(beside: pd.DataFrame) -> pd.DataFrame:
    """The hardest goal that all searches meet, by workers and local_steps, and that any does; NaN
    for none.
    """
    met = (
        beside.assign(met=beside.steps.notna())
        .groupby(["workers", "local_steps", "goal"])
        .met.agg(["all", "any"])
    )
    found = {
        which: met[met[which]].reset_index().groupby(["workers", "local_steps"]).goal.min()
        for which in met
    }
    return pd.DataFrame(found).reindex(met.index.droplevel("goal").unique()).reset_index()


def curves(beside: pd.DataFrame, most: int) -> pd.DataFrame:
    """A row per point of a figure: goal, workers, training (words), steps, low, high, met (words),
    all_met.

    Where some search misses the goal, steps are `most`, after which searches end.
    """
    rows = []
    for (goal, workers), own in beside.groupby(["goal", "workers"]):
        lines = [
            (f"parts, {n} local step{'s' * (n > 1)}", some.steps)
            for n, some in own.groupby("local_steps")
        ]
        first = own.drop_duplicates("replicate")
        for name, steps in [("data parallelism", first.steps_whole), *lines]:
            middle, low, high, n = geometric(steps)
            met = int(steps.notna().sum())
            ends = (middle, low, high) if met == n else (most, most, most)
            rows.append((goal, workers, name, *ends, f"{met} of {n}", met == n))
    return pd.DataFrame(
        rows, columns=["goal", "workers", "training", "steps", "low", "high", "met", "all_met"]
    )


# --- growing --------------------------------------------------------------------------------------


def growing(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, batch_size, replicate, goal, steps and adds, each the least
    of any trial.

    trials: of `growing.results`.
    """
    keys = ["arm", "batch_size", "replicate"]
    return _least(trials, keys, "steps").merge(_least(trials, keys, "adds"), on=[*keys, "goal"])


def over_fixed(found: pd.DataFrame, goal: float, what: str, whole: str = WHOLE) -> pd.DataFrame:
    """`what` of every arm over that of the arm `whole`, by batch size: arm, batch_size, effect,
    low, high, n, met.

    found: of `growing` or `halved`.  Effects are NaN unless all searches of both meet the goal.
    """
    own = found[found.goal == goal]
    wide = own.pivot(index=["batch_size", "replicate"], columns="arm", values=what)
    rows = []
    for batch_size, some in wide.groupby("batch_size"):
        for name in wide.columns.drop(whole):
            rows.append(
                (
                    name,
                    batch_size,
                    *geometric(some[name] / some[whole]),
                    int(some[name].notna().sum()),
                )
            )
    return pd.DataFrame(rows, columns=["arm", "batch_size", "effect", "low", "high", "n", "met"])


# --- halves ---------------------------------------------------------------------------------------

TOGETHER, APART, RECOVERED = "the whole network", "two halves", "two halves, then the whole"


def halved(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, batch_size, replicate, goal, steps, adds and sent, each the
    least of any trial.

    trials: of `halves.results`.
    """
    keys = ["arm", "batch_size", "replicate"]
    steps, *others = (_least(trials, keys, what) for what in ("steps", "adds", "sent"))
    for other in others:
        steps = steps.merge(other, on=[*keys, "goal"])
    return steps


def met_by_all(found: pd.DataFrame) -> dict[tuple[str, int], float]:
    """The hardest goal that all searches meet, by arm and batch size; without those that meet none.
    found: of `halved`.
    """
    met = found.groupby(["arm", "batch_size", "goal"]).steps.agg(lambda steps: steps.notna().all())
    return met[met].reset_index().groupby(["arm", "batch_size"]).goal.min().to_dict()
