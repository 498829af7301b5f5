"""The tables of the page on parts of a network."""

from __future__ import annotations

import pandas as pd

from chapters.parts_of_a_network import growing, halves, subnetworks
from chapters.parts_of_a_network import network_parts as parts
from lib.wording import brief, percent, with_interval

BESIDE = 64  # examples a step, where memory is compared
SAVED = {
    "steps": "steps",
    "adds": "multiply-adds of a worker",
    "sent": "numbers that a worker sends",
}


def read() -> dict[str, pd.DataFrame]:
    """The trials of parts, of parts of the wider network, of growing networks and of halves."""
    return {
        "parts": subnetworks.results(subnetworks.planned()),
        "wide": subnetworks.results(subnetworks.wider()),
        "grown": growing.results(growing.planned()),
        "cut": halves.results(halves.planned()),
    }


def ratio(row) -> str:
    """An effect with its interval."""
    if pd.isna(row.effect):
        return "goal not met"
    return with_interval(row.effect, row.low, row.high)


def saved(beside: pd.DataFrame, goal: float) -> pd.DataFrame:
    """What parts take over data parallelism, by the number of workers.

    Args:
        beside: of `network_parts.subnetworks`, of one number of local steps.
        goal: validation error.
    """
    columns = {}
    for what, name in SAVED.items():
        own = parts.over_whole(beside, goal, what).set_index("workers")
        columns[f"{name}, over data parallelism"] = own.apply(ratio, axis=1)
    return pd.DataFrame(columns).reset_index()


def hardest(beside: pd.DataFrame) -> pd.DataFrame:
    """The hardest goal that all searches meet, by workers and local steps."""
    goals = parts.hardest(beside, ["workers", "local_steps"]).map(_goal).unstack()
    titles = {n: f"{n} local step{'s' if n > 1 else ''}" for n in goals}
    return goals.rename(columns=titles).rename_axis(columns=None).reset_index()


def _goal(error: float | None) -> str:
    return "none" if pd.isna(error) else percent(error)


def memory() -> tuple[int, int]:
    """Numbers held by one device that trains the whole network, and by the larger of two that train
    a half each.
    """
    left, right = halves.SIZES[: halves.LEFT + 1], halves.SIZES[halves.LEFT :]
    half = max(halves.held(sizes, BESIDE) for sizes in (left, right))
    return halves.held(halves.SIZES, BESIDE), half


def of_halves(found: pd.DataFrame, goal: float) -> pd.DataFrame:
    """How far halves get, what a device holds, and what two exchange until the goal.

    Args:
        found: of `network_parts.by_search`.
        goal: validation error.
    """
    whole, half = memory()
    own = found[(found.batch_size == BESIDE) & (found.goal == goal)]
    told = own.groupby("arm").sent.agg(_mean)
    arms = [parts.TOGETHER, *halves.ARMS.values()]
    goals = parts.hardest(found, ["arm", "batch_size"]).map(_goal)
    table = goals.unstack().loc[arms].reset_index(drop=True)
    table = table.rename(columns="hardest goal, B = {:,}".format)
    names = ["whole, on one device", "whole, in two stages", *arms[2:]]
    table.insert(0, "training", names)
    table["numbers held"] = [f"{numbers:,}" for numbers in (whole, half, half, half)]
    table["exchanged"] = ["0", *told[arms[1:]]]
    return table


def _mean(numbers: pd.Series) -> str:
    mean = parts.geometric(numbers)[0]
    return "goal not met" if pd.isna(mean) else brief(mean)
