"""What training where the data lie costs, beside large batches, and what the page says of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.federated import federated
from lib.analysis import scaling
from lib.claims.claim import Group, ratio, unmeasured
from lib.claims.names import title

COSTS = ["sent", "adds", "cut_sent", "cut_adds"]
KEYS = ["workload", "skewed", "way", "local_steps", "batch_size", "replicate"]


def searches(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, goal, rounds of its best trial (NaN where none meets it), and
    what they cost a client.
    """
    arms = {how[:3]: name for name, how in federated.ARMS.items()}
    goals = [name for name in trials if name.startswith("rounds@")]
    found = trials.groupby(KEYS)[[*goals, *COSTS]].min().reset_index()
    found = found.melt([*KEYS, *COSTS], goals, "goal", "rounds")
    how = zip(found.way, found.local_steps, found.batch_size)
    found[COSTS] = found[COSTS].mul(found.rounds, axis=0)
    return found.assign(goal=found.goal.str[7:].astype(float), arm=[arms[one] for one in how])


def beside(what: str, over: str, under: str) -> list[Group]:
    """A way's rounds or costs over another's, a row per network and kind of shards, at the hardest
    goal that all searches of both meet.
    """
    trials, rows = federated.FEDERATED.results(), []
    for key, own in searches(trials).groupby(KEYS[:2]) if len(trials) else ():
        name = f"{title(key[0])}, {federated.KINDS[key[1]]}"
        own = own[own.arm.isin((over, under))]
        goals = own.groupby("goal").rounds.apply(lambda rounds: rounds.notna().all())
        both = own[own.goal == goals[goals].index.min()].pivot(
            index="replicate", columns="arm", values=what
        )
        effect = scaling.mean_of(np.log(both[over] / both[under])) if len(both) else None
        rows.append(ratio(name, effect) if effect else unmeasured(name, note="no goal was met"))
    return rows
