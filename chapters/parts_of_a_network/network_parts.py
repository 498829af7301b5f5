"""What it takes to train parts of a network, against training the whole: tables of `subnetworks`,
`.growing` and `.halves`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.parts_of_a_network import growing, halves
from lib.analysis import scaling
from lib.analysis.scaling import Effect

WHOLE, SMALL, GROWN, *_ = growing.ARMS.values()
TOGETHER, APART, RECOVERED = halves.ARMS.values()
COSTS = ("steps", "adds", "sent")


def goals(trials: pd.DataFrame) -> list[float]:
    """The goals of the trials, the hardest first."""
    return sorted(float(name.partition("@")[2]) for name in trials if name.startswith("steps@"))


def mean_ratio(values: pd.Series) -> Effect | None:
    """ln of the geometric mean over searches; None if a search has no value, or there is none."""
    logs = np.log(values.to_numpy(float))
    return scaling.mean_of(logs) if len(logs) and np.isfinite(logs).all() else None


def geometric(values: pd.Series) -> tuple[float, float, float, int]:
    """`mean_ratio` as a value, its 5 and 95 % ends, and the number of searches; NaN throughout if
    there is none.
    """
    found = mean_ratio(values)
    return (*(found.row().values() if found else [np.nan] * 3), len(values))


def by_search(
    trials: pd.DataFrame, keys: tuple[str, ...] = ("arm", "batch_size", "replicate")
) -> pd.DataFrame:
    """A row per search and goal: keys, goal, and steps, adds and sent as far as they are known,
    each the least of any trial; NaN where no trial met the goal.

    trials: with a column COST@GOAL for each.
    """
    wide = trials.groupby([*keys])[[name for name in trials if "@" in name]].min()
    pairs = [(cost, float(goal)) for cost, goal in (name.split("@") for name in wide)]
    wide.columns = pd.MultiIndex.from_tuples(pairs, names=[None, "goal"])
    return wide.stack("goal", future_stack=True).reset_index()


def over_whole(beside: pd.DataFrame, by: list[str], costs: tuple[str, ...]) -> pd.DataFrame:
    """Costs over those of the whole network: the columns `by`, what (of costs), effect, low, high,
    n and met (searches that reach the goal).

    beside: a row per search and goal, with COST and COST_whole.  Effects are NaN unless all
    searches of both meet the goal.
    """
    rows = [
        (*keys, what, *geometric(own[what] / own[f"{what}_whole"]), own.steps.count())
        for keys, own in beside.groupby(by)
        for what in costs
    ]
    return pd.DataFrame(rows, columns=[*by, "what", "effect", "low", "high", "n", "met"])


def ratios(found: pd.DataFrame, costs: tuple[str, ...], whole: str) -> pd.DataFrame:
    """`over_whole` by goal, batch_size and arm, for every arm but `whole`; found: of `by_search`."""
    own = found.arm == whole
    on = ["goal", "batch_size", "replicate"]
    beside = found[~own].merge(found[own], on=on, suffixes=("", "_whole"))
    return over_whole(beside, ["goal", "batch_size", "arm"], costs)


def subnetworks(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search of parts and goal, beside the search of the whole network with as many
    examples a step.

    trials: of `subnetworks.results`.  Columns: workers, local_steps, replicate, goal, steps, sent
    (numbers that a worker sends until then), adds (multiply-adds of a worker until
    then); steps_whole, sent_whole and adds_whole, those of data parallelism among as many workers.
    """
    keys = ["workers", "local_steps", "batch_size", "replicate"]
    sizes = trials.groupby(keys)[["sent", "adds"]].first().reset_index()
    found = by_search(trials, keys).merge(sizes)
    found["examples"] = found.workers * found.batch_size
    whole = found[found.workers == 1].drop(columns=keys[:3])
    beside = found[found.workers > 1].merge(
        whole, on=["examples", "replicate", "goal"], suffixes=("", "_whole"), validate="m:1"
    )
    share = beside.steps_whole / beside.workers  # each worker has its share of the examples
    return beside.assign(
        sent=np.ceil(beside.steps / beside.local_steps) * beside.sent,
        adds=beside.steps * beside.adds,
        sent_whole=beside.steps_whole * beside.sent_whole,
        adds_whole=share * beside.adds_whole,
    )


def hardest(found: pd.DataFrame) -> pd.Series:
    """The hardest goal that all searches meet, by the number of workers; NaN for none."""
    met = found.steps.notna().groupby([found.workers, found.goal]).transform("all")
    return found.goal.where(met).groupby(found.workers).min()


def curves(beside: pd.DataFrame, most: int) -> pd.DataFrame:
    """A row per point of a figure: goal, workers, training (words), steps, low, high, met (words),
    all_met.

    Where some search misses the goal, steps are `most`, after which searches end.
    """
    by = ["goal", "workers", "training"]
    names = [f"parts, {n} local step{'s' * (n > 1)}" for n in beside.local_steps]
    whole = beside.drop_duplicates(["goal", "workers", "replicate"])
    whole = whole.assign(steps=whole.steps_whole, training="data parallelism")
    every = pd.concat([whole, beside.assign(training=names)])
    rows = []
    for keys, own in every.groupby(by, sort=False):
        *ends, n = geometric(own.steps)
        met = own.steps.count()
        if met < n:
            ends = [most] * 3
        rows.append((*keys, *ends, f"{met} of {n}", met == n))
    return pd.DataFrame(rows, columns=[*by, "steps", "low", "high", "met", "all_met"])
