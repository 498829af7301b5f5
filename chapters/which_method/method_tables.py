"""What the page on training methods draws and reads of: methods over SGD, in steps and in time."""

from __future__ import annotations

import pandas as pd

from chapters.which_method import quadratic_methods
from lib import claims, wording
from lib.analysis import method_results, noisy_quadratic
from lib.page import charts
from lib.workloads import catalogue

SEVERAL = 3  # searches from which on sentences speak of a method


def name_of(workload: str) -> str:
    """A network's title without its goal, which is told beside."""
    return catalogue.workload(workload).title.removesuffix(", easier goal")


def compared(curves: dict) -> pd.DataFrame:
    """Every method over SGD as of `method_results.over`, the largest critical batch size first,
    with network and method in words.
    """
    ratios = method_results.over(curves)
    ratios["network"] = ratios.workload.map(name_of)
    ratios["method"] = ratios.algorithm.map(method_results.title)
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
        span = " to ".join(f"{end.batch_size:,}" for end in ends.values())
        row = {"method": wording.named(name), "batch sizes": span}
        for size, end in ends.items():
            row[f"time at the {size}"] = wording.ranged(end.time, end.time_low, end.time_high)
            row[f"of a step at the {size}"] = wording.brief(end.dearer)
        rows.append(row)
    return pd.DataFrame(rows)


def predictions() -> pd.DataFrame:
    """What the noisy quadratic model says of every method: `quadratic_methods.predictions`."""
    model = noisy_quadratic.power_law(1000)
    table = claims.kept(
        "predictions", lambda: quadratic_methods.predictions(model).to_dict("list")
    )
    return pd.DataFrame(table)
