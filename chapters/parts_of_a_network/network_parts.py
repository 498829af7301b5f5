"""What it takes to train parts of a network, against training the whole: tables of `subnetworks`,
`.growing` and `.halves`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from chapters.parts_of_a_network import growing, halves
from lib.analysis import scaling
from lib.analysis.scaling import Effect

WHOLE, SMALL, GROWN, *_ = growing.ARMS.values()
TOGETHER, APART, RECOVERED = halves.ARMS.values()
COSTS = ("steps", "adds", "sent")
EFFECT = ("effect", "low", "high", "n", "met")


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

    trials: of `subnetworks.results`.  Columns: workers, local_steps, replicate, goal, steps, sent
    (numbers that a worker sends until then), adds (multiply-adds of a worker until
    then); steps_whole, sent_whole and adds_whole, those of data parallelism among as many workers;
    alone: steps of a single worker, with its own examples only.
    """
    keys = ["workers", "local_steps", "batch_size", "replicate"]
    sizes = trials.groupby(keys)[["sent", "adds"]].first().reset_index()
    found = _least(trials, keys, "steps").merge(sizes)
    whole = found[found.workers == 1].drop(columns=["workers", "local_steps"])
    at = ["batch_size", "replicate", "goal"]
    alone = whole[[*at, "steps"]].rename(columns={"steps": "alone"})
    whole = whole.rename(columns={"batch_size": "examples"})
    parts = found[found.workers > 1]
    parts = parts.assign(examples=parts.workers * parts.batch_size)
    beside = parts.merge(
        whole, on=["examples", *at[1:]], suffixes=("", "_whole"), validate="many_to_one"
    ).merge(alone, on=at, validate="many_to_one")
    rounds = np.ceil(beside.steps / beside.local_steps)
    share = beside.steps_whole / beside.workers  # each worker has its share of the examples
    return beside.assign(
        sent=rounds * beside.sent,
        adds=beside.steps * beside.adds,
        sent_whole=beside.steps_whole * beside.sent_whole,
        adds_whole=share * beside.adds_whole,
    )


def over_whole(beside: pd.DataFrame, goal: float, what: str) -> pd.DataFrame:
    """`what` of parts over that of data parallelism, by workers and local_steps, at a goal: effect,
    low, high, n, met.

    beside: of `subnetworks`; met: searches that reach the goal.  Effects are NaN unless all do.
    """
    own, rows = beside[beside.goal == goal], []
    for keys, some in own.groupby(["workers", "local_steps"]):
        ratio = geometric(some[what] / some[f"{what}_whole"])
        rows.append((*keys, *ratio, int(some.steps.notna().sum())))
    return pd.DataFrame(rows, columns=["workers", "local_steps", *EFFECT])


def over_alone(beside: pd.DataFrame, goal: float) -> pd.DataFrame:
    """Steps of parts over those of a single worker with the whole network and its own examples
    only, as `over_whole`.
    """
    return over_whole(beside.assign(steps_whole=beside.alone), goal, "steps")


def hardest(found: pd.DataFrame, by: list[str]) -> pd.Series:
    """The hardest goal that all searches meet, by some columns; NaN for none."""
    met = found.assign(met=found.steps.notna()).groupby([*by, "goal"]).met.transform("all")
    return found.assign(goal=found.goal.where(met)).groupby(by).goal.min()


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


# --- growing and halves ---------------------------------------------------------------------------


def by_search(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, batch_size, replicate, goal, steps, adds and sent, each the
    least of any trial, where it is known.

    trials: of `growing.results` or `halves.results`.
    """
    keys = ["arm", "batch_size", "replicate"]
    known = {name.partition("@")[0] for name in trials if "@" in name}
    found = [
        _least(trials, keys, what).set_index([*keys, "goal"]) for what in COSTS if what in known
    ]
    return pd.concat(found, axis=1).reset_index()


def ratios(found: pd.DataFrame, costs: tuple[str, ...], whole: str) -> pd.DataFrame:
    """Costs of every arm over those of the arm `whole`, by goal and batch size: arm, batch_size,
    effect, low, high, n, met, goal, what (of costs).

    found: of `by_search`.  Effects are NaN unless all searches of both meet the goal.
    """
    rows, by = [], ["goal", "batch_size"]
    for what in costs:
        wide = found.pivot(index=[*by, "replicate"], columns="arm", values=what)
        for (goal, size), own in wide.groupby(by):
            for arm, values in own.drop(columns=whole).items():
                ends = geometric(values / own[whole])
                rows.append((arm, size, *ends, int(values.count()), goal, what))
    columns = ["arm", "batch_size", *EFFECT, "goal", "what"]
    return pd.DataFrame(rows, columns=columns).sort_values("goal", kind="stable")
