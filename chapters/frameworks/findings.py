"""What the page on frameworks says, as numbers and words, and its tables.

`times` is the table of `experiments.measured`, `ratios` that of `framework_costs.ratios`, and
`goals` that of `framework_costs.to_goal`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.frameworks.framework_costs import HELD, KEYS, NAMES, ONE, breaks_even, fastest
from lib.claims.names import title
from lib.wording import between, brief, named, percent


def findings(
    goals: pd.DataFrame,
    repeated: pd.DataFrame,
    ratios: pd.DataFrame,
    again: pd.DataFrame,
    workload: str,
) -> dict:
    """All values of the page's sentences.

    Args:
        goals: without a link between the processes.
        repeated: the same as `goals`, of a second run.
        ratios: of the first run.
        again: of the second.
        workload: name of the network that the page begins with.
    """
    mine = goals[goals.workload == workload]
    best = fastest(mine)
    smallest = mine[mine.batch_size == mine.batch_size.min()]
    return {
        "network": title(workload),
        "shared": best.system != ONE,
        "framework": best.framework,
        "size": int(best.batch_size),
        "gain": gain(mine),
        "idle": bool(gain(smallest) < 1.05),
        "networks": goals.curve.unique().tolist(),
        **_pays(mine),
        **_steps(ratios),
        **_again(ratios, again, repeated[repeated.workload == workload]),
        **_sent(ratios),
    }


def gain(goals: pd.DataFrame) -> float:
    """How many times as long one process at its best takes to the goal as the fastest framework."""
    return float(goals.time[goals.system == ONE].min() / fastest(goals).time)


def _pays(mine: pd.DataFrame) -> dict:
    """The slowest link that pays for data parallelism at the largest batch of one network."""
    even = breaks_even(mine[mine.batch_size == mine.batch_size.max()]).set_index("system")
    ddp = even.loc["ddp"]
    return {
        "pays": bool(np.isfinite(ddp.bandwidth)),
        "pays_gigabits": float(8e-9 * ddp.bandwidth),
        "pays_milliseconds": float(1e3 * ddp.latency),
    }


def _steps(ratios: pd.DataFrame) -> dict:
    """What a step costs over one process, on all networks."""
    ddp = ratios[ratios.system == "ddp"].groupby("batch_size").ratio
    widest = ratios[ratios.weights == ratios.weights.max()]
    smallest = widest[widest.batch_size == widest.batch_size.min()]
    update = smallest.pivot(index="algorithm", columns="system", values="seconds")
    adam, sgd = (update.zero / update.ddp)[["adam", "sgd"]]
    off = np.abs(np.log(ratios.waiting / ratios.ratio))[ratios.system != ONE].median()
    return {
        "rounds": int(ratios.repeats.max()),
        "large": int(ratios.batch_size.max()),
        "ddp_small": between(ddp.min().iloc[0], ddp.max().iloc[0]),
        "ddp_large": between(ddp.min().iloc[-1], ddp.max().iloc[-1]),
        "update_shared": bool(adam < 1 < sgd),
        "widest": title(widest.workload.iloc[0]),
        "update_adam": adam,
        "update_sgd": sgd,
        "queued": percent(float(ratios.waited.median().clip(0, 1))),
        "off": float(np.exp(off)),
    }


def _again(ratios: pd.DataFrame, again: pd.DataFrame, repeated: pd.DataFrame) -> dict:
    """How a second run differs."""
    both = ratios.merge(again, on=[*KEYS, "system"], suffixes=("", "_again"))
    both = both[both.system != ONE]
    change = both.ratio_again / both.ratio
    best = fastest(repeated)
    return {
        "again_batches": len(both[KEYS].drop_duplicates()),
        "again_queued": percent(float(both.waited_again.median().clip(0, 1))),
        "again_middle": float(change.median()),
        "again_range": between(change.min(), change.max()),
        "again_framework": best.framework,
        "again_size": int(best.batch_size),
        "again_gain": gain(repeated),
    }


def heaviest(ratios: pd.DataFrame) -> pd.DataFrame:
    """The rows of the largest network with Adam, at the largest batch, whose bytes are shown."""
    adam = ratios[ratios.algorithm == "adam"]
    large = adam[adam.weights == adam.weights.max()]
    return large[large.batch_size == large.batch_size.max()]


def _sent(ratios: pd.DataFrame) -> dict:
    """What full sharding sends, in gradients."""
    row = heaviest(ratios).set_index("system").loc["fsdp"]
    fully = row.sent / (4 * row.weights)
    return {
        "megabytes": 4e-6 * row.weights,
        "sent_network": title(row.workload),
        "sent_method": named(row.algorithm),
        "sent_size": int(row.batch_size),
        "fully": float(fully),
        "added_everywhere": bool(fully > 1.75),
    }


# --- tables ---------------------------------------------------------------------------------------


def of_steps(ratios: pd.DataFrame) -> pd.DataFrame:
    """Seconds of a step over those of one process with their quartiles, a row per framework and a
    column per batch size, of one network and method.
    """
    rows = ratios[["ratio", "ratio_low", "ratio_high"]].to_numpy()
    words = [f"{brief(ratio)} ({between(*ends)})" for ratio, *ends in rows]
    told = ratios.assign(told=words, framework=ratios.system.map(NAMES))
    told.loc[told.system == ONE, "told"] = "1"
    table = told.pivot(index="framework", columns="batch_size", values="told")
    table = table.reindex(NAMES.values()).rename(columns="B = {:,}".format)
    return table.rename_axis(columns=None).reset_index()


def of_bytes(ratios: pd.DataFrame) -> pd.DataFrame:
    """What a step sends and a process holds, in gradients."""
    shown = heaviest(ratios)
    heads = dict(zip(HELD, ("parameters", "gradients", "optimiser", "residual")))
    table = shown[["sent", *HELD]].assign(all=shown[list(HELD)].sum(axis=1))
    table = table.div(4 * shown.weights, axis=0).map(lambda times: brief(times) if times else "0")
    table.insert(0, "framework", shown.system.map(NAMES))
    return table.rename(columns=heads | {"all": "held in all"})
