"""What the page on workers that do not share every step says, as numbers and words."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from chapters.other_workers import delays, federated, late, parts
from chapters.other_workers import federated_experiments as clients
from lib.page import estimates
from lib.wording import percent, ranged


def values(
    tardy: pd.DataFrame,
    curves: dict,
    turns: Mapping[str, pd.DataFrame],
    pushed: pd.DataFrame,
    rounds: pd.DataFrame,
    apart: pd.DataFrame,
) -> dict[str, object]:
    """Values in the page's lead, titles and captions.

    Args:
        tardy, curves, turns: from `late.measured`, `late.curves` and `late.turns`.
        pushed: the records of workers that do not wait.
        rounds: from `federated.searches`.
        apart: from `parts.over_whole` on `parts.subnetworks`.
    """
    growth = late.growth(curves)
    plain = (growth.workload == late.WORK) & (growth.algorithm == "sgd")
    last = growth[plain & (growth.delays == "fixed")].iloc[-1]
    points = late.points_of(tardy)
    theory = [late.predicted(points, s, late.SIZES[-1]) for s in (last.staleness, 0)]
    return estimates.plain(
        {
            "late_goal": percent(tardy.goal[tardy.workload == late.WORK].iloc[0]),
            "large": late.SIZES[-1],
            "latest": last.staleness,
            "latest_large": last.large,
            "latest_theory": theory[0] / theory[1],
            **{f"{name}_turns": ranged(*rows.loc[8]) for name, rows in turns.items()},
            "turns_theory": late.floor(late.JUDGED) / 8,
            "in_turn": percent(delays.in_turn(pushed)),
            "federated": [*federated.titles(rounds)["rounds"].values()][-1],
            "federated_goal": percent(federated.GOAL),
            "clients": clients.CLIENTS,
            "shard": clients.SHARD,
            "searches": rounds.replicate.nunique(),
            "parts": parts.titles(apart)[parts.COSTS["steps"]][0],
        }
    )
