"""What batches that grow cost and save, and what the page says of it."""

from __future__ import annotations

import itertools
import math

import altair as alt
import numpy as np
import pandas as pd

from chapters.batch_ramps import experiments as ramps
from chapters.batch_ramps.experiments import DECAY, FC, MLP, NETWORKS, QUARTER, SEESAW, TEXT, WHOLE
from lib.analysis import replicates
from lib.claims.claim import Group, ratio
from lib.claims.names import title
from lib.page import charts, tips, told
from lib.wording import between, percent

COSTS = {"steps": "serial steps", "examples": "examples"}
COLOURS = dict(zip(COSTS.values(), (charts.BLUE, charts.ORANGE)))
ENDS = ("low", "high")
POINT = ["workload", "schedule", "start", "replicate"]
NAMES = {"sgd": "SGD", "adam": "Adam"}
RANGES = (  # network, start, schedule, cost over that of halving the rate; as predicted
    (FC, QUARTER, SEESAW, "examples", 1.0, 1.2),
    (FC, QUARTER, SEESAW, "steps", 0.6, 0.8),
    (FC, WHOLE, SEESAW, "examples", 1.25, 3.0),
    (FC, QUARTER, ramps.DOUBLING, "examples", 1.05, 1.4),
    (FC, QUARTER, ramps.LATE, "steps", 1.05, 1.4),
    (FC, QUARTER, ramps.CONSTANT, "examples", 1.1, 1.5),
    (MLP, QUARTER, SEESAW, "examples", 1.0, 1.2),
    (MLP, QUARTER, SEESAW, "steps", 0.6, 0.8),
    (MLP, WHOLE, SEESAW, "examples", 1.1, 1.6),
    (MLP, QUARTER, ramps.CONSTANT, "examples", 0.9, 1.15),
    (TEXT, QUARTER, SEESAW, "examples", 1.0, 1.2),
    (TEXT, QUARTER, SEESAW, "steps", 0.6, 0.85),
    (TEXT, WHOLE, SEESAW, "examples", 1.05, 1.6),
    (TEXT, QUARTER, ramps.CONSTANT, "examples", 1.0, 1.4),
)


def searched(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search: steps, examples and peak learning rate of the trial that first met its
    network's hardest goal, and met.  A search in which none did counts as if its last step had.
    """
    if not len(trials):
        return trials
    parts = []
    for work, own in trials.groupby("workload"):
        columns = {f"{what}@{NETWORKS[work].goals[0]:g}": what for what in COSTS}
        own = own.rename(columns=columns).sort_values("steps", kind="stable")
        parts.append(own.groupby(POINT).head(1)[[*POINT, "learning_rate", *COSTS]])
    found = pd.concat(parts, ignore_index=True)
    found = found.assign(met=found.steps.notna())
    for row in found[~found.met].itertuples():
        most = ramps.Search(row.workload, row.schedule, row.start).most
        found.loc[row.Index, list(COSTS)] = most
    return found


def beside(what: str, starts: tuple[str, ...] = ramps.STARTS) -> list[Group]:
    """Seesaw's steps or examples over those of halving the rate, a row per network and one of these
    starts, to the hardest goal.
    """
    found = searched(ramps.RAMPS.results())
    if not len(found):
        return []
    rows = []
    for (work, start), own in found[found.start.isin(starts)].groupby(["workload", "start"]):
        name = f"{title(work)}, from {start}"
        both = [own[own.schedule == schedule] for schedule in (SEESAW, DECAY)]
        words = [share_met(one) for one in both]
        note = f"goal met by {words[0]} searches with Seesaw, {words[1]} with the rate halved"
        if effect := over(own, work, start, SEESAW, what):
            rows.append(ratio(name, effect, note=note))
        else:
            # Measured, and no bound
            ends = math.nan, 0.0, math.inf
            rows.append(Group(name, *ends, min(map(len, both)), note=note))
    return rows


def share_met(own: pd.DataFrame) -> str:
    """How many of these searches met the goal, in words."""
    return f"{own.met.sum()} of {len(own)}"


def over(found: pd.DataFrame, work: str, start: str, schedule: str, what: str):
    """ln of what a schedule costs over halving the rate, of the replicates in which either meets
    the goal; None unless at least half of the searches of either do; found: of `searched`.
    """
    own = found[(found.workload == work) & (found.start == start)]
    both = [own[own.schedule == name] for name in (schedule, DECAY)]
    enough = all(one.met.mean() >= 0.5 for one in both)
    # Where both miss, the ratio is that of last steps, which the plan sets
    met = pd.concat(both).groupby("replicate").met.any()
    return replicates.over(*(one[one.replicate.map(met)] for one in both), what) if enough else None


def bounded(found: pd.DataFrame, start: str) -> bool:
    """Whether Seesaw's ratios from this start are bounds from below: on every network compared, a
    search of its own alone misses the goal, and none of halving the rate does so.
    """
    own = found[found.start == start]
    met = own.pivot(index=["workload", "replicate"], columns="schedule", values="met")
    seesaw, halved = (met[name].eq(True) for name in (SEESAW, DECAY))
    lost, won = (one.groupby("workload").any() for one in (halved & ~seesaw, seesaw & ~halved))
    known = [work for work in lost.index if over(found, work, start, SEESAW, "steps")]
    return bool(known and lost[known].all() and not won[known].any())


def points(found: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: network, start, schedule, cost, value (over that of halving the rate),
    value_low, value_high, searches.
    """
    rows = []
    for (work, schedule, start), own in found.groupby(POINT[:3]):
        for what, name in COSTS.items():
            if effect := over(found, work, start, schedule, what):
                ends = effect.row().values() if effect.n > 1 else [np.exp(effect.value)] * 3
                ends = [1.0, 1.0, 1.0] if schedule == DECAY else ends
                rows.append((title(work), start, schedule, name, *ends, len(own), own.met.sum()))
    value = ["value", "value_low", "value_high"]
    names = ["network", "start", "schedule", "cost", *value, "searches", "met"]
    return pd.DataFrame(rows, columns=names)


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Costs over those of halving the rate, a row per schedule; menus: network and start."""
    value = "over halving the rate"
    scale = charts.log(padding=12, base=10)
    x, low = (alt.X(f"{name}:Q", scale=scale, title=value) for name in ("value", "value_low"))
    y = alt.Y("schedule:N", title=None, sort=list(ramps.SCHEDULES), axis=alt.Axis(labelLimit=220))
    base = alt.Chart(rows).encode(y=y, yOffset="cost:N", color=charts.by_name("cost", COLOURS, 2))
    tooltip = [tips.tip("schedule:N", "schedule"), tips.tip("cost:N", "cost")]
    tooltip += [tips.tip("value:Q", value, ".2f"), tips.tip("searches:Q", "searches")]
    tooltip += [tips.tip(f"value_{end}:Q", f"{end} end of the interval", ".2f") for end in ENDS]
    tooltip += [tips.tip("met:Q", "of them met the goal")]
    starts = charts.menu("start", list(rows.start.unique()), QUARTER, "first batch")
    network = charts.menu("network", list(rows.network.unique()), title(FC), "network")
    layers = charts.ranges(base, "value", x, low, tooltip)
    return charts.sized(charts.controlled(layers, starts, network), 300)


def predictions(found: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came."""
    rows = []
    for work, start, schedule, what, low, high in RANGES:
        effect = over(found, work, start, schedule, what)
        words = f"{title(work)}, from {start}: {schedule}, {COSTS[what]}"
        rows.append((words, low, high, told.interval(effect)))
    return told.predictions(rows).replace(r"\(0–∞\)", "(one search)", regex=True)


def met(found: pd.DataFrame) -> pd.DataFrame:
    """How many searches met the goal, a row per start and network and a column per schedule."""
    rows = []
    for (start, work), own in found.groupby(["start", "workload"]):
        cells = {name: share_met(one) for name, one in own.groupby("schedule")}
        rows.append({"first batch": start, "network": title(work)} | cells)
    return pd.DataFrame(rows, columns=["network", "first batch", *ramps.SCHEDULES])


def fewer() -> float:
    """By which share of the examples a search with Seesaw ends earlier than with the rate halved,
    at most, as a last large batch may not fit.
    """
    ends = []
    for work, start in itertools.product(NETWORKS, ramps.STARTS):
        seesaw, halved = (ramps.Search(work, how, start).most[1] for how in (SEESAW, DECAY))
        ends.append(1 - seesaw / halved)
    return max(ends)


def from_start(found: pd.DataFrame, name: str, start: str) -> dict:
    """Seesaw's ratios from one start, whether they are bounds, and how many searches miss the goal
    with it and with the rate halved, under names that begin with this one.
    """
    values = {f"{name}_bound": bounded(found, start)}
    for what in COSTS:
        effects = {work: over(found, work, start, SEESAW, what) for work in NETWORKS}
        ratios = told.ratios(effects, ()).values()
        values[f"{name}_{what}"] = [value for value in ratios if value is not None]
    lost = found[(found.start == start) & ~found.met].schedule
    values[f"{name}_seesaw"] = int((lost == SEESAW).sum())
    values[f"{name}_halved"] = int((lost == DECAY).sum())
    return values


def findings(found: pd.DataFrame, trials: pd.DataFrame) -> dict:
    """All values of the page's sentences; found: of `searched`, trials: the records."""
    quarter = from_start(found, "quarter", QUARTER)
    highest = found.workload.map(trials.groupby("workload").learning_rate.max())
    upper = (found.learning_rate > highest / 2)[found.met]
    of_points = trials.groupby(POINT[:3]).replicate.nunique().groupby("workload")
    counts = {work: between(*own) for work, own in of_points}
    larger = found[(found.workload == FC) & (found.start == WHOLE)]
    return {
        **quarter,
        **from_start(found, "whole", WHOLE),
        "error": percent(NETWORKS[FC].goals[0]),
        "loss": NETWORKS[TEXT].goals[0],
        "searches": [
            f"{title(work)} with {NAMES[network.algorithm]} ({counts.get(work, 0)} searches a "
            f"point, {network.trials} trials each)"
            for work, network in NETWORKS.items()
        ],
        "missed": int((~found.met).sum()),
        "tried": len(found[(found.start == QUARTER) & (found.schedule == SEESAW)]),
        "constant_met": share_met(larger[larger.schedule == ramps.CONSTANT]),
        "halved_met": share_met(larger[larger.schedule == DECAY]),
        "decided": len(quarter["quarter_steps"]),
        "networks": found.workload.nunique(),
        "upper": percent(upper.mean()),
        "fewer": percent(fewer(), 0),
    }
