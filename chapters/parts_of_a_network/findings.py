"""What the page on parts of a network says, as numbers and words."""

from __future__ import annotations

import pandas as pd

from chapters.parts_of_a_network import network_parts as parts
from chapters.parts_of_a_network import parts_tables, subnetworks
from lib.page import told
from lib.wording import between, brief, percent, with_interval


def findings(
    tables: dict[str, pd.DataFrame],
    own: pd.DataFrame,
    growth: pd.DataFrame,
    split: pd.DataFrame,
    chosen,
) -> dict:
    """All values of the page's sentences.

    Args:
        tables: trials of parts, of the wider network, of growing networks and of halves.
        own: of `network_parts.subnetworks`, with the local steps chosen.
        growth: of `network_parts.ratios`, of growing networks over the large one.
        split: of `network_parts.by_search`, of halves.
        chosen: the page's parameters.
    """
    computed = tables["parts"].groupby("workers").adds.first()  # of a worker, in a step
    return told.plain(
        {
            "goal": percent(chosen.goal),
            "local": chosen.local_steps,
            "searches": sum(len(table.attrs["provenance"]) for table in tables.values()),
            "trials": subnetworks.TRIALS,
            "examples": subnetworks.Search.batch_size,
            "most": subnetworks.MOST_STEPS,
            **_parts(own, chosen.goal),
            "share": percent(computed[2] / computed[1]),
            **_wider(tables["wide"]),
            **_growing(growth[growth.goal == chosen.goal]),
            **_halves(split, chosen.goal),
        }
    )


def _parts(own: pd.DataFrame, goal: float) -> dict:
    """What two, four and eight workers take over data parallelism, and two over one alone."""
    over = (parts.over_whole(own, goal, what).set_index("workers") for what in parts.COSTS)
    steps, adds, sent = over
    pair = parts.over_alone(own, goal).set_index("workers").loc[2]
    return {
        "two": steps.effect[2],
        "two_told": _told(steps.loc[2]),
        "two_adds": _told(adds.loc[2]),
        "two_sends": _told(sent.loc[2]),
        "four": steps.effect[4],
        "four_adds": _told(adds.loc[4]),
        "eight_short": steps.met[8] < steps.n[8],
        "eight_met": steps.met[8],
        "eight_all": steps.n[8],
        "alone": pair.effect,
        "alone_low": pair.low,
        "alone_high": pair.high,
        "alone_searches": int(pair.n),
    }


def _told(row: pd.Series) -> str:
    """A ratio of `network_parts.over_whole` with its interval."""
    return with_interval(row.effect, row.low, row.high)


def _wider(trials: pd.DataFrame) -> dict:
    """Eight workers with a network four times as wide, at the hardest goal."""
    beside = parts.subnetworks(trials)
    goal = parts.goals(trials)[0]
    cost = parts.over_whole(beside, goal, "steps").iloc[0]
    return {
        "wide_local": int(cost.local_steps),
        "wide_units": subnetworks.HIDDEN[subnetworks.WIDER] // max(subnetworks.WORKERS),
        "wide_goal": percent(goal),
        "wide_met": int(cost.met),
        "wide_all": int(cost.n),
        "wide_reached": cost.met == cost.n,
        "wide_cost": cost.effect,
    }


def _growing(rows: pd.DataFrame) -> dict:
    """What growing takes over the large network, and the small network alone."""
    adds = rows[rows.what == "adds"]
    own, small = (adds[adds.arm == arm] for arm in (parts.GROWN, parts.SMALL))
    steps = rows.effect[(rows.arm == parts.GROWN) & (rows.what == "steps")]
    return {
        "grown": between(*own.effect.dropna()),
        "grown_steps": between(*steps.dropna()),
        "small": between(*small.effect.dropna()),
        "sizes": len(own),
        "computes_more": (own.low > 1).sum(),
        "computes_less": (own.high < 1).sum(),
        "small_saves_most": adds.groupby("arm").effect.max().idxmin() == parts.SMALL,
    }


def _halves(split: pd.DataFrame, goal: float) -> dict:
    """How far halves get, and what recovery costs and saves: at the goal where halves meet it, else
    at the hardest one that they meet.
    """
    rows = parts.ratios(split, parts.COSTS, parts.TOGETHER)
    met = sorted(rows.dropna(subset="effect").goal.unique())
    begun = goal if goal in met else min(met)
    of_goal = rows[(rows.goal == begun) & (rows.arm == parts.RECOVERED)]
    apart = split[(split.arm == parts.APART) & (split.goal == begun)].steps
    known = of_goal.dropna(subset="effect")
    sent = known[known.what == "sent"]
    whole, half = parts_tables.memory()
    return {
        "halves_goal": percent(begun),
        "halves_error": begun,
        "missed": apart.isna().sum(),
        "halved": len(apart),
        "recovery_sent": between(*sent.effect),
        "recovery": between(*known.effect[known.what == "steps"]),
        "recovery_searches": between(*rows[rows.goal == begun].n),
        "memory_size": parts_tables.BESIDE,
        "memory": percent(half / whole),
        "exchanged": [
            f"{brief(row.effect)} ({brief(row.low)} to {brief(row.high)}) with batches of "
            f"{row.batch_size:,}"
            for row in sent.itertuples()
        ],
    }
