"""What training where the data lie costs, beside large batches."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.other_workers import federated_experiments as experiments
from lib.analysis import replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio, unmeasured
from lib.claims.names import title
from lib.page import charts, tips, told

LARGE, WHOLE, EPOCH, LONGER, _, TURNS = experiments.ARMS
TOGETHER = "split, all together"  # the steps of LARGE, the network cut
COSTS = {"rounds": "rounds", "sent": "numbers sent", "adds": "multiply-adds"}
POINT = ["workload", "skewed", "way", "local_steps", "batch_size"]
GOAL = 0.04
CNN = ("digits-cnn",)
ROUNDS = "rounds, one step on whole shards over an epoch of averaging"
ADDS = "multiply-adds, an epoch of averaging over one of split learning in turns"
SENT = "numbers sent, an epoch of split learning in turns over one of averaging"
PREDICTED = (  # of searches on shards that are skewed or not, before all but one of each point
    (ROUNDS, "rounds", WHOLE, EPOCH, False, experiments.NETWORKS, 3, np.inf),
    (ROUNDS, "rounds", WHOLE, EPOCH, True, experiments.NETWORKS, 0, 1.5),
    (ADDS, "adds", EPOCH, TURNS, False, experiments.NETWORKS, 1.25, np.inf),
    (ADDS, "adds", EPOCH, TURNS, True, experiments.NETWORKS, 1.25, np.inf),
    (SENT, "sent", TURNS, EPOCH, False, CNN, 1, np.inf),
    (SENT, "sent", TURNS, EPOCH, True, CNN, 1, np.inf),
)


def searches(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, goal, rounds of its best trial (NaN where none meets it), and
    what they cost a client, sent and adds.
    """
    arms = {how[:3]: name for name, how in experiments.ARMS.items()}
    goals = [name for name in trials if name.startswith("rounds@")]
    each = ["sent", "adds", "cut_sent", "cut_adds"]
    found = trials.groupby([*POINT, "replicate"])[[*goals, *each]].min().reset_index()
    found = found.melt([*POINT, "replicate", *each], goals, "goal", "rounds")
    found[each] = found[each].mul(found.rounds, axis=0)
    names = [arms[how] for how in zip(*(found[name] for name in POINT[2:]))]
    found = found.assign(goal=found.goal.str[7:].astype(float), arm=names)
    cut = found[found.arm == LARGE].assign(arm=TOGETHER)
    return pd.concat([found, cut.assign(sent=cut.cut_sent, adds=cut.cut_adds)])


def over(own: pd.DataFrame, what: str, one: str, other: str) -> Effect | None:
    """`replicates.over` of what two ways cost; own: searches of one network, kind and goal."""
    return replicates.over(own[own.arm == one], own[own.arm == other], what)


def beside(what: str, one: str, other: str) -> list[Group]:
    """A way's rounds or costs over another's, a row per network and kind of shards, at the hardest
    goal that all searches of both meet.
    """
    trials, rows = experiments.FEDERATED.results(), []
    for (work, skewed), own in searches(trials).groupby(POINT[:2]) if len(trials) else ():
        name = f"{title(work)}, {experiments.KINDS[skewed]}"
        met = (over(some, what, one, other) for _, some in own.groupby("goal"))
        effect = next(filter(None, met), None)
        rows.append(ratio(name, effect) if effect else unmeasured(name, note="no goal was met"))
    return rows


def to_goal(found: pd.DataFrame, skewed: bool) -> dict[str, pd.DataFrame]:
    """The rows of `searches` to GOAL on shards of a kind, by network."""
    own = found[(found.goal == GOAL) & (found.skewed == skewed)]
    return dict(list(own.groupby("workload")))


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Ratios of costs to GOAL beside what was predicted; found: of `searches`."""
    rows = []
    for words, cost, one, other, skewed, networks, low, high in PREDICTED:
        by_network = to_goal(found, skewed)
        for work in networks:
            came = told.interval(over(by_network[work], cost, one, other))
            rows.append(
                (f"{words}: {title(work)}, {experiments.KINDS[skewed]}", low, high, came)
            )
    return told.predictions(rows)


def points(found: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: network, kind, arm, cost, value (geometric mean), value_low,
    value_high, searches; without the ways of which a search misses GOAL.
    """
    rows = []
    for (work, skewed, arm), own in found[found.goal == GOAL].groupby([*POINT[:2], "arm"]):
        for what, name in COSTS.items() if own.rounds.notna().all() else ():
            ends = scaling.mean_of(np.log(own[what])).row().values()
            rows.append((title(work), experiments.KINDS[skewed], arm, name, *ends, len(own)))
    columns = "network kind arm cost value value_low value_high searches"
    return pd.DataFrame(rows, columns=columns.split())


def chart(found: pd.DataFrame) -> alt.LayerChart:
    """What every way costs a client to GOAL; found: of `searches`."""
    rows = points(found)
    scale = charts.log(padding=12, base=10)
    value = "cost to the goal, of a client"
    x, low = (alt.X(f"{name}:Q", scale=scale, title=value) for name in ("value", "value_low"))
    kinds = dict(zip(experiments.KINDS.values(), (charts.BLUE, charts.ORANGE)))
    axis = alt.Axis(labelLimit=220)
    y = alt.Y("arm:N", title=None, sort=[*experiments.ARMS, TOGETHER], axis=axis)
    base = alt.Chart(rows).encode(
        y=y,
        yOffset="kind:N",
        color=charts.by_name("kind", kinds, 1),
    )
    about = {
        "arm:N": "way",
        "kind:N": "shards",
        "value:Q|,.0f": value,
        "searches:Q": "searches",
    }
    layers = charts.ranges(base, "value", x, low, tips.listed(about))
    what = charts.menu("cost", list(COSTS.values()), COSTS["rounds"], "compare")
    networks = list(rows.network.unique())
    network = charts.menu("network", networks, networks[-1], "network")
    return charts.sized(charts.controlled(layers, what, network), 340)
