"""What the page on parts of a network says, as numbers and words."""

from __future__ import annotations

import pandas as pd

from chapters.parts_of_a_network import network_parts as parts
from chapters.parts_of_a_network import searches, subnetworks
from lib.page import told
from lib.wording import between, percent, with_interval


def findings(
    tables: dict[str, pd.DataFrame],
    saved: pd.DataFrame,
    growth: pd.DataFrame,
    split: pd.DataFrame,
    goal: float,
) -> dict:
    """All values of the page's sentences.

    Args:
        tables: trials of parts, of the wider network, of growing networks and of halves.
        saved: of `network_parts.over_whole`, of parts, at the goal.
        growth, split: of `network_parts.ratios`, of growing networks and of halves.
        goal: validation error.
    """
    computed = tables["parts"].groupby("workers").adds.first()  # of a worker, in a step
    halves = split[(split.goal == goal) & (split.arm == parts.RECOVERED)].set_index("what").effect
    apart = split[(split.goal == goal) & (split.arm == parts.APART) & (split.what == "steps")]
    return told.plain(
        {
            "goal": percent(goal),
            "local": subnetworks.PUBLISHED,
            "searches": sum(len(table.attrs["provenance"]) for table in tables.values()),
            "trials": searches.TRIALS,
            "examples": subnetworks.Search.batch_size,
            "most": subnetworks.MOST_STEPS,
            **_parts(saved.set_index(["what", "workers"])),
            "share": percent(computed[2] / computed[1]),
            **_wider(tables["wide"]),
            **_growing(growth[(growth.goal == goal) & (growth.what == "adds")]),
            "missed": apart.n.sum() - apart.met.sum(),
            "halved": apart.n.sum(),
            "recovery_sent": between(*halves["sent"]),
            "recovery": between(*halves["steps"]),
        }
    )


def _parts(saved: pd.DataFrame) -> dict:
    """What two, four and eight workers take over data parallelism."""
    ends = saved[["effect", "low", "high"]]
    return {
        "two": saved.effect["steps", 2],
        "two_told": with_interval(*ends.loc["steps", 2]),
        "two_adds": with_interval(*ends.loc["adds", 2]),
        "two_sends": with_interval(*ends.loc["sent", 2]),
        "four": saved.effect["steps", 4],
        "eight_met": saved.met["steps", 8],
        "eight_all": saved.n["steps", 8],
    }


def _wider(trials: pd.DataFrame) -> dict:
    """Eight workers with a network four times as wide, at the hardest goal."""
    cost = parts.over_whole(parts.subnetworks(trials), ["goal", "workers"], ("steps",)).iloc[0]
    return {
        "wide_units": subnetworks.HIDDEN[subnetworks.WIDER] // max(subnetworks.WORKERS),
        "wide_goal": percent(cost.goal),
        "wide_met": int(cost.met),
        "wide_all": int(cost.n),
        "wide_cost": cost.effect,
    }


def _growing(rows: pd.DataFrame) -> dict:
    """Multiply-adds of growing over those of the large network, and of the small one alone."""
    effects = rows.dropna(subset="effect").set_index("arm").effect
    return {"grown": between(*effects[parts.GROWN]), "small": between(*effects[parts.SMALL])}
