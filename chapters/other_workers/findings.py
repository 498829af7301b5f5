"""What the page on workers that do not share every step says, as numbers and words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.other_workers import delays, federated, late, parts
from chapters.other_workers import federated_experiments as clients
from chapters.other_workers.late import JUDGED, SIZES
from lib.page import told
from lib.wording import brief, named, percent, with_interval


def of_late(
    trials: pd.DataFrame, found: dict, ratios: dict[str, pd.DataFrame], pushed: pd.DataFrame
) -> dict:
    """Of late gradients; trials, found, ratios: of `late.measured`, `late.curves` and
    `late.turns`; pushed: of `delays.DELAYS`.
    """
    growth = late.growth(found)
    plain = growth[(growth.workload == late.WORK) & (growth.algorithm == "sgd")]
    last = plain[plain.delays == "fixed"].iloc[-1]
    workers = JUDGED + 1
    bound = late.floor(JUDGED) / workers
    turns = {named(name): own.loc[workers] for name, own in ratios.items()}
    return told.plain(
        {
            "late_goal": percent(trials.goal[trials.workload == late.WORK].iloc[0]),
            "large": SIZES[-1],
            "latest": last.staleness,
            "latest_large": last.large,
            "latest_theory": last.floor,
            "workers": workers,
            "in_turns": [f"{with_interval(*row)} with {name}" for name, row in turns.items()],
            "above": [name for name, row in turns.items() if row.ratio_low > bound],
            "bound": brief(bound),
            "in_turn_percent": 100 * delays.in_turn(pushed),
        }
    )


def of_federated(found: pd.DataFrame, trials: pd.DataFrame) -> dict:
    """Of training where the data lie; found: of `federated.searches`, trials: the records."""
    values = {}
    for skewed, kind in ((False, "alike"), (True, "skewed")):
        own = federated.to_goal(found, skewed).values()
        each = [
            federated.over(some, "rounds", federated.WHOLE, federated.EPOCH) for some in own
        ]
        effects = [effect for effect in each if effect]
        values[f"rounds_{kind}"] = [float(np.exp(effect.value)) for effect in effects]
        values[f"{kind}_open"] = any(effect.low <= 0 <= effect.high for effect in effects)
    return {
        **{name: values[name] for name in ("rounds_alike", "rounds_skewed", "skewed_open")},
        "federated_goal": percent(federated.GOAL),
        "clients": clients.CLIENTS,
        "shard": clients.SHARD,
        "searches": int(trials.replicate.nunique()),
    }


def of_parts(ratios: pd.DataFrame) -> dict:
    """Of parts of a network; ratios: of `parts.over_whole`, of `parts.subnetworks`."""
    own = parts.hardest(ratios).set_index(["what", "arm", "size"]).sort_index()
    steps = own.loc["steps", parts.PARTS]
    return told.plain(
        {
            "parts_goal": percent(ratios.goal.min()),
            "two_steps": with_interval(*steps.loc[2, ["effect", "low", "high"]]),
            "four_steps": with_interval(*steps.loc[4, ["effect", "low", "high"]]),
            "eight_met": steps.met[8],
            "eight_all": steps.n[8],
        }
    )
