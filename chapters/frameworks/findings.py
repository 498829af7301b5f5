"""What the page on frameworks says, as numbers and words, and its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.frameworks.framework_costs import KEYS, NAMES, ONE, fastest, slowest_link
from lib.claims.names import title
from lib.wording import between, brief, named, percent


def findings(
    goals: pd.DataFrame,
    repeated: pd.DataFrame,
    ratios: pd.DataFrame,
    again: pd.DataFrame,
    workload: str,
) -> dict:
    """All values of the page's sentences, which begin with one workload.

    goals: of `framework_costs.to_goal`; repeated: of a second run.  ratios: of
    `framework_costs.ratios`; again: of the second run.
    """
    alone = sorted(_alone(goals) & _alone(repeated) - {workload})
    mine = goals[goals.workload == workload]
    repeated = repeated[repeated.workload == workload]
    best, best_again = fastest(mine), fastest(repeated)
    bandwidth, latency = slowest_link(mine[mine.batch_size == mine.batch_size.max()])
    ddp = ratios[ratios.system == "ddp"].groupby("batch_size").ratio
    both = ratios.merge(again, on=[*KEYS, "system"], suffixes=("", "_again"))
    change = (both.ratio_again / both.ratio)[both.system != ONE]
    large = heaviest(ratios).iloc[0]
    return {
        "network": title(workload),
        "curve": mine.curve.iloc[0],
        "shared": best.system != ONE,
        "framework": best.framework,
        "size": int(best.batch_size),
        "gain": gain(mine),
        "alone": [title(name) for name in alone],
        "searches": between(mine.replicates.min(), mine.replicates.max()),
        "networks": goals.curve.unique().tolist(),
        "pays": bool(bandwidth > 0),
        "pays_gigabits": 8e-9 * bandwidth,
        "pays_milliseconds": 1e3 * latency,
        "rounds": int(ratios.repeats.max()),
        "large": int(ratios.batch_size.max()),
        "ddp_small": between(ddp.min().iloc[0], ddp.max().iloc[0]),
        "ddp_large": between(ddp.min().iloc[-1], ddp.max().iloc[-1]),
        **_by_the_clock(ratios, mine),
        **{f"again_{name}": value for name, value in _by_the_clock(again, repeated).items()},
        "again_range": between(change.min(), change.max()),
        "again_framework": best_again.framework,
        "again_size": int(best_again.batch_size),
        "again_gain": gain(repeated),
        "megabytes": 4e-6 * large.weights,
        "sent_network": title(large.workload),
        "sent_method": named(large.algorithm),
        "sent_size": int(large.batch_size),
    }


def _alone(goals: pd.DataFrame) -> set[str]:
    """The workloads on which one process is fastest."""
    return {name for name, own in goals.groupby("workload") if fastest(own).system == ONE}


def _by_the_clock(ratios: pd.DataFrame, goals: pd.DataFrame) -> dict[str, object]:
    """How clock times of a run differ from processor times, and what is gained by them."""
    off = np.abs(np.log(ratios.waiting / ratios.ratio))[ratios.system != ONE].median()
    return {
        "queued": percent(float(ratios.waited.median().clip(0, 1))),
        "off": float(np.exp(off)),
        "clock": f"{gain(goals.assign(time=goals.wall * goals.steps)):.2f}",
    }


def gain(goals: pd.DataFrame) -> float:
    """How many times as long one process at its best takes to the goal as the fastest framework."""
    return float(goals.time[goals.system == ONE].min() / fastest(goals).time)


def heaviest(ratios: pd.DataFrame) -> pd.DataFrame:
    """The rows of the largest network with Adam, at the largest batch, whose bytes are shown."""
    adam = ratios[ratios.algorithm == "adam"]
    return adam[adam.weights == adam.weights.max()].nlargest(1, "batch_size", keep="all")


def of_steps(ratios: pd.DataFrame) -> pd.DataFrame:
    """Seconds of a step over those of one process with their quartiles, a row per method and
    framework and a column per batch size, of one network.
    """
    values = ratios[["ratio", "ratio_low", "ratio_high"]].to_numpy()
    words = [f"{brief(ratio)} ({between(*ends)})" for ratio, *ends in values]
    methods = ratios.algorithm.map(named)
    told = ratios.assign(told=words, method=methods, framework=ratios.system.map(NAMES))
    told.loc[told.system == ONE, "told"] = "1"
    table = told.pivot(index=["method", "framework"], columns="batch_size", values="told")
    rows = pd.MultiIndex.from_product([methods.unique(), NAMES.values()], names=table.index.names)
    table = table.reindex(rows).rename(columns="B = {:,}".format)
    return table.rename_axis(columns=None).reset_index()


def of_bytes(ratios: pd.DataFrame) -> pd.DataFrame:
    """What a step sends and a process holds, in gradients."""
    shown = heaviest(ratios)
    held = shown[["parameters", "gradients", "states", "residuals"]].sum(axis=1)
    table = pd.DataFrame({"sent": shown.sent, "held": held}).div(4 * shown.weights, axis=0)
    return table.map(brief).assign(framework=shown.system.map(NAMES))[["framework", "sent", "held"]]
