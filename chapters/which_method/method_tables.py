"""What the page on training methods draws and reads of: methods over SGD, in steps and in time."""

from __future__ import annotations

import pandas as pd

from chapters.which_method import quadratic_methods
from lib import claims, wording
from lib.analysis import method_results, noisy_quadratic
from lib.page import charts
from lib.workloads import catalogue

SEVERAL = 3  # searches from which on sentences speak of a method
FAIR = 1.2  # times SGD's steps that a method's smallest batches may take


def name_of(workload: str) -> str:
    """A network's title without its goal, which is told beside."""
    return catalogue.workload(workload).title.removesuffix(", easier goal")


def compared(curves: dict) -> pd.DataFrame:
    """Every method over SGD as of `method_results.over`, the largest critical batch size first,
    with network and method in words.
    """
    over = method_results.over(curves)
    middle = over[over.what == "critical"].groupby("algorithm").ratio.mean()
    over = over.assign(
        network=over.workload.map(name_of), method=over.algorithm.map(method_results.title)
    )
    return over.iloc[over.algorithm.map(-middle).argsort(kind="stable")]


def best_of(common: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The method that surely raises the critical batch size most, and its rows.

    common: rows of `compared`, of methods that every network has.  A method whose smallest batches
    are dear gains nothing by a larger critical batch size.
    """
    dear = common[common.what == "small"].groupby("algorithm").ratio.max()
    fair = common[(common.what == "critical") & common.algorithm.map(dear).le(FAIR)]
    first = fair.groupby("algorithm").ratio_low.min().idxmax()  # on every network
    return first, fair[fair.algorithm == first]


def in_time(curves: dict, times: pd.DataFrame, first: str) -> pd.DataFrame:
    """`method_results.in_time` without variants, with network and method in words; the workload
    `first` before all others.
    """
    timed = method_results.in_time(curves, times)
    timed = timed[~timed.algorithm.isin(charts.VARIANTS)]
    timed = timed.assign(
        network=timed.workload.map(name_of), method=timed.algorithm.map(wording.named)
    )
    return timed.sort_values("workload", key=lambda names: names != first, kind="stable")


def predictions() -> pd.DataFrame:
    """What the noisy quadratic model says of every method: `quadratic_methods.predictions`."""
    model = noisy_quadratic.power_law(1000)
    found = claims.kept("predictions", lambda: quadratic_methods.predictions(model).to_dict("list"))
    return pd.DataFrame(found)
