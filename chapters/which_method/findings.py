"""What the page on training methods says, as numbers and words, and the data of its figures:
methods over SGD, in steps and in time.
"""

from __future__ import annotations

import pandas as pd

from lib.analysis import method_results
from lib.claims import front
from lib.page import charts, estimates
from lib.wording import between, brief, named, percent, ranged, span
from lib.workloads.catalogue import workload

FIRST = "digits-mlp"  # the network whose times are shown
SEVERAL = 3  # searches that a method needs to be named in sentences


def findings(searches: pd.DataFrame, curves: dict, judged: dict) -> dict[str, object]:
    """All values in the page's sentences.

    Args:
        searches: at their goals, momentum over its whole range where that is measured.
        curves: those of dense networks among them.
        judged: the page's claims.
    """
    ratios = compared(curves)
    muon = ratios[(ratios.algorithm == "muon") & (ratios.n >= SEVERAL)]
    muon = {what: between(*rows.ratio) for what, rows in muon.groupby("what")}
    goals = searches.goal
    return estimates.plain(
        {
            "over_sgd": muon["critical"],
            "over_adam": front.effects(judged["O6"]),
            "muon": muon,
            "small": muon["small"],
            "methods": len({*ratios.algorithm}.difference(charts.VARIANTS)),
            "searches": max(curve.n for curve in curves.values()),
            "goals": f"{percent(goals.min())} to {percent(goals.max())}",
        }
    )


def name_of(name: str) -> str:
    """A network's title without its goal, which is stated separately."""
    return workload(name).title.removesuffix(", easier goal")


def compared(curves: dict) -> pd.DataFrame:
    """Every method over SGD, from `method_results.over`, with network and method in words, the
    largest critical batch size first.
    """
    ratios = method_results.over(curves)
    ratios["network"] = ratios.workload.map(name_of)
    ratios["method"] = ratios.algorithm.map(named)
    critical = ratios[ratios.what == "critical"].groupby("algorithm").ratio.mean()
    return ratios.iloc[ratios.algorithm.map(-critical).argsort(kind="stable")]


def in_time(curves: dict, times: pd.DataFrame, network: str) -> pd.DataFrame:
    """Time to result over SGD's on one core, and a step's time over SGD's, at the smallest and the
    largest batch size, a row per method; network: a workload's name.
    """
    timed = method_results.in_time(curves, times)
    timed = timed[(timed.workload == network) & ~timed.algorithm.isin(charts.VARIANTS)]
    rows = []
    for name, sizes in timed.sort_values("batch_size").groupby("algorithm"):
        ends = {"smallest": sizes.iloc[0], "largest": sizes.iloc[-1]}
        size_range = span([end.batch_size for end in ends.values()])
        row = {"method": named(name), "batch sizes": size_range}
        for size, end in ends.items():
            row[f"time, {size}"] = ranged(end.time, end.time_low, end.time_high)
            row[f"a step, {size}"] = brief(end.dearer)
        rows.append(row)
    return pd.DataFrame(rows)
