"""What batches that grow cost and save, beside a rate that is halved."""

from __future__ import annotations

import itertools
import math

import pandas as pd

from chapters.disputed import arms
from chapters.disputed import ramps_experiments as measured
from chapters.disputed.ramps_experiments import (
    DECAY,
    FC,
    MLP,
    NETWORKS,
    QUARTER,
    SEESAW,
    TEXT,
    WHOLE,
)
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio
from lib.claims.names import title
from lib.page import told

COSTS = ["steps", "examples"]
ARM = ["workload", "start", "schedule"]
PREDICTED = {  # of an arm's costs over those of halving the rate, before the records
    (FC, QUARTER, SEESAW): "steps 0.6–0.8, examples 1–1.2",
    (FC, QUARTER, measured.DOUBLING): "examples 1.05–1.4",
    (FC, QUARTER, measured.LATE): "steps 1.05–1.4",
    (FC, QUARTER, measured.CONSTANT): "examples 1.1–1.5",
    (FC, WHOLE, SEESAW): "examples 1.25–3",
    (MLP, QUARTER, SEESAW): "steps 0.6–0.8, examples 1–1.2",
    (MLP, QUARTER, measured.CONSTANT): "examples 0.9–1.15",
    (MLP, WHOLE, SEESAW): "examples 1.1–1.6",
    (TEXT, QUARTER, SEESAW): "steps 0.6–0.85, examples 1–1.2",
    (TEXT, QUARTER, measured.CONSTANT): "examples 1–1.4",
    (TEXT, WHOLE, SEESAW): "examples 1.05–1.6",
}


def searched(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search: ARM, replicate, COSTS to its network's hardest goal, and met.  A search
    that misses it counts as its last step; trials: of `measured.RAMPS`.
    """
    if not len(trials):
        return trials
    parts = []
    for work, own in trials.groupby("workload"):
        columns = {f"{cost}@{NETWORKS[work].goals[0]:g}": cost for cost in COSTS}
        own = own.rename(columns=columns)
        parts.append(own.groupby([*ARM, "replicate"], as_index=False)[COSTS].min())
    found = pd.concat(parts, ignore_index=True)
    last = [
        measured.Search(row.workload, row.schedule, row.start).most
        for row in found.itertuples()
    ]
    met = found.steps.notna()
    return found.fillna(pd.DataFrame(last, columns=COSTS)).assign(met=met)


def over(found: pd.DataFrame, arm: tuple[str, str, str], cost: str) -> Effect | None:
    """ln of what an arm costs over halving the rate, of the replicates in which either meets the
    goal; None unless at least half of the searches of either do; found: of `searched`.
    """
    both = [
        arms.searches(found, **dict(zip(ARM, (*arm[:2], schedule))))
        for schedule in (arm[2], DECAY)
    ]
    if not all(one.met.mean() >= 0.5 for one in both):
        return None
    # Where both miss, the ratio is that of last steps, which the plan sets
    met = pd.concat(both).groupby("replicate").met.any()
    return replicates.over(*(one[one.replicate.map(met)] for one in both), cost)


def share_met(found: pd.DataFrame, **arm: str) -> str:
    """How many searches of an arm met the goal, in words."""
    met = arms.searches(found, **arm).met
    return f"{met.sum()} of {len(met)}"


def groups(cost: str, starts: tuple[str, ...] = measured.STARTS) -> list[Group]:
    """Seesaw's steps or examples over those of halving the rate, a row per network and start; []
    without records.
    """
    found = searched(measured.RAMPS.results())
    points = itertools.product(NETWORKS, starts) if len(found) else ()
    return [_group(found, work, start, cost) for work, start in points]


def _group(found: pd.DataFrame, work: str, start: str, cost: str) -> Group:
    name, point = f"{title(work)}, from {start}", {"workload": work, "start": start}
    both = [share_met(found, **point, schedule=schedule) for schedule in (SEESAW, DECAY)]
    note = f"goal met by {both[0]} searches with Seesaw, {both[1]} with the rate halved"
    if effect := over(found, (work, start, SEESAW), cost):
        return ratio(name, effect, note=note)
    # Measured, and no bound
    count = arms.searches(found, **point, schedule=SEESAW).met.size
    return Group(name, math.nan, 0.0, math.inf, count, note=note)


def values(found: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; found: of `searched`."""
    return {
        "seesaw_met": share_met(found, start=QUARTER, schedule=SEESAW),
        "halved_met": share_met(found, start=QUARTER, schedule=DECAY),
    }


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Every arm: how many searches met the goal, and with the rate halved, its costs over that, and
    what was predicted of these; found: of `searched`.
    """
    rows = []
    for arm in itertools.product(NETWORKS, measured.STARTS, measured.SCHEDULES[1:]):
        rows.append(
            {
                "network": title(arm[0]),
                "first batch": "a quarter" if arm[1] == QUARTER else "the whole",
                "schedule": arm[2],
                "met the goal": share_met(found, **dict(zip(ARM, arm))),
                "rate halved": share_met(found, **dict(zip(ARM, (*arm[:2], DECAY)))),
                **{cost: _ratio(over(found, arm, cost)) for cost in COSTS},
                "predicted": PREDICTED.get(arm, "—"),
            }
        )
    return pd.DataFrame(rows)


def _ratio(effect: Effect | None) -> str:
    return told.times(effect).replace("(0–∞)", "(one search)")
