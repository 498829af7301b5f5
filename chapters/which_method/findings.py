"""What the page on training methods says, as numbers and words, and what it draws: methods over
SGD, in steps and in time.
"""

from __future__ import annotations

import pandas as pd

from chapters.which_method import quadratic_methods
from lib import claims
from lib.analysis import method_results, noisy_quadratic
from lib.page import boxes, charts, told
from lib.wording import between, brief, named, percent, ranged
from lib.workloads.catalogue import workload

FIRST = "digits-mlp"  # the network on which SOAP was searched, and whose times are shown
ALIKE = 1.25  # within which two numbers of steps, or two critical batch sizes, are alike
SOAP = (  # predicted on 27 November 2026: what, over Adam's; a method, its quantity, and the range
    ("steps at the two largest batches", "soap", "large", 0, 1 / ALIKE),
    ("steps at the two smallest batches", "soap", "small", 0, 1 / 2),
    ("critical batch size", "soap", "critical", 0, ALIKE),
    ("steps at the two largest, every 10 steps", "soap-10", "large", 1 / ALIKE, ALIKE),
)
SEVERAL = 3  # searches from which on sentences speak of a method


def findings(searches: pd.DataFrame, curves: dict) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        searches: at their goals, momentum over its whole range where that is measured.
        curves: those of dense networks among them.
    """
    ratios = compared(curves)
    muon = ratios[(ratios.algorithm == "muon") & (ratios.n >= SEVERAL)]
    muon = {what: between(*rows.ratio) for what, rows in muon.groupby("what")}
    goals = searches.groupby("workload").goal.first()
    return told.plain(
        {
            "over_sgd": muon["critical"],
            "muon": muon,
            "small": muon["small"],
            "methods": searches.algorithm.nunique(),
            "searches": max(curve.n for curve in curves.values()),
            "trials": boxes.trials(searches[searches.space != "whole"]),
            "goals": [f"{percent(g)} ({name_of(name)})" for name, g in goals.items()],
        }
    )


def soap(curves: dict) -> pd.DataFrame:
    """What was predicted of SOAP before its records, as ratios to Adam, beside what came."""
    rows = []
    for title, method, quantity, low, high in SOAP:
        ratio = method_results.QUANTITIES[quantity]
        effect = method_results.between(curves, method, "adam", ratio)[FIRST]
        rows.append((title, low, high, told.interval(effect)))
    return told.predictions(rows)


def name_of(name: str) -> str:
    """A network's title without its goal, which is told beside."""
    return workload(name).title.removesuffix(", easier goal")


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
        row = {"method": named(name), "batch sizes": span}
        for size, end in ends.items():
            row[f"time at the {size}"] = ranged(end.time, end.time_low, end.time_high)
            row[f"of a step at the {size}"] = brief(end.dearer)
        rows.append(row)
    return pd.DataFrame(rows)


def predictions() -> pd.DataFrame:
    """What the noisy quadratic model says of every method: `quadratic_methods.predictions`."""
    model = noisy_quadratic.power_law(1000)
    table = claims.kept(
        "predictions", lambda: quadratic_methods.predictions(model).to_dict("list")
    )
    return pd.DataFrame(table)
