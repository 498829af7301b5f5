"""What training where the data lie costs, compared with large batches."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.other_workers import federated_experiments as experiments
from lib.analysis import replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio, unmeasured
from lib.claims.names import title
from lib.page import charts, estimates, tips

LARGE, WHOLE, EPOCH, *_, TURNS = experiments.ARMS
TOGETHER = "split, all together"  # the steps of LARGE, with the network cut
COSTS = {"rounds": "rounds", "sent": "numbers sent", "adds": "multiply-adds"}
POINT = ["workload", "skewed", "way", "local_steps", "batch_size"]
GOAL = 0.04
ALIKE = " if shards are alike, {} times if they are skewed"
SAID = {  # cost: two ways, and the figure's title with the ratio of their costs
    "rounds": (
        WHOLE,
        EPOCH,
        f"One step per round ({WHOLE}) takes {{}} times the rounds of averaging",
    ),
    "sent": (TURNS, EPOCH, "Split learning sends {} times as many numbers as averaging"),
    "adds": (EPOCH, TURNS, "Averaging takes {} times the multiply-adds of split learning"),
}


def searches(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: arm, goal, rounds of its best trial (NaN if none meets the goal),
    and the cost of these to a client, sent and adds.
    """
    goals = [name for name in trials if name.startswith("rounds@")]
    costs = ["sent", "adds", "cut_sent", "cut_adds"]
    by_search = trials.groupby([*POINT, "replicate"])
    rows = by_search[[*goals, *costs]].min().reset_index()
    rows = rows.melt([*POINT, "replicate", *costs], goals, "goal", "rounds")
    rows[costs] = rows[costs].mul(rows.rounds, axis=0)
    arms = {arm[:3]: name for name, arm in experiments.ARMS.items()}
    names = [arms[arm] for arm in zip(rows.way, rows.local_steps, rows.batch_size)]
    goal = rows.goal.str.removeprefix("rounds@").astype(float)
    rows = rows.assign(goal=goal, arm=names)
    cut = rows[rows.arm == LARGE].assign(arm=TOGETHER)
    cut = cut.assign(sent=cut.cut_sent, adds=cut.cut_adds)
    return pd.concat([rows, cut])


def over(rows: pd.DataFrame, cost: str, above: str, below: str) -> Effect | None:
    """`replicates.over` for the costs of two ways; rows: searches of one network, kind and goal."""
    return replicates.over(rows[rows.arm == above], rows[rows.arm == below], cost)


def groups(cost: str, above: str, below: str) -> list[Group]:
    """One way's cost over another's, a group per network and kind of shards, at the hardest goal
    that all searches of both meet.
    """
    trials, judged = experiments.FEDERATED.results(), []
    for (work, skewed), rows in searches(trials).groupby(POINT[:2]) if len(trials) else ():
        name = f"{title(work)}, {experiments.KINDS[skewed]}"
        effects = (over(part, cost, above, below) for _, part in rows.groupby("goal"))
        effect = next(filter(None, effects), None)
        judged.append(
            ratio(name, effect) if effect else unmeasured(name, note="no goal was met")
        )
    return judged


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Data of the figure: network, kind, arm, cost, value (geometric mean), value_low, value_high,
    searches; ways with a search that misses GOAL are left out.
    """
    means = []
    for (work, skewed, arm), met in rows[rows.goal == GOAL].groupby([*POINT[:2], "arm"]):
        for cost, name in COSTS.items() if met.rounds.notna().all() else ():
            ends = scaling.mean_of(np.log(met[cost])).row().values()
            means.append((title(work), experiments.KINDS[skewed], arm, name, *ends, len(met)))
    columns = "network kind arm cost value value_low value_high searches"
    return pd.DataFrame(means, columns=columns.split())


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """What every way costs a client up to GOAL; rows: from `searches`."""
    means, scale = points(rows), charts.log(padding=12, base=10)
    x, low = (alt.X(f"{name}:Q", scale=scale, title=None) for name in ("value", "value_low"))
    kinds = dict(zip(experiments.KINDS.values(), (charts.BLUE, charts.ORANGE)))
    arms, axis = [*experiments.ARMS, TOGETHER], alt.Axis(labelLimit=220)
    base = alt.Chart(means).encode(
        y=alt.Y("arm:N", title=None, sort=arms, axis=axis),
        yOffset="kind:N",
        color=charts.by_name("kind", kinds, 1),
    )
    about = {"arm:N": "way", "kind:N": "shards", "value:Q|,.0f": "cost", "searches:Q": "n"}
    layers = charts.ranges(base, "value", x, low, tips.listed(about))
    menu = charts.menu("cost", list(COSTS.values()), COSTS["rounds"], "compare")
    networks = list(means.network.unique())
    network = charts.menu("network", networks, networks[-1], "network")
    marks = charts.controlled(layers, menu, network)
    drawn = alt.layer(marks, charts.below("cost_chosen + ' of a client, to the goal'"))
    return charts.sized(drawn.add_params(charts.title(titles(rows), menu, network)), 340)


def titles(rows: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Titles of the figure, by cost and network; rows: from `searches`."""
    said = {name: {} for name in COSTS.values()}
    for cost, (above, below, text) in SAID.items():
        for work, part in rows[rows.goal == GOAL].groupby("workload"):
            kinds = (over(kind, cost, above, below) for _, kind in part.groupby("skewed"))
            said[COSTS[cost]][title(work)] = (text + ALIKE).format(*map(estimates.times, kinds))
    return said
