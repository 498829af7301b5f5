"""What the page on training methods says, as numbers and words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from chapters.which_method import method_tables as tables
from lib.analysis import method_results
from lib.analysis.scaling import Effect
from lib.page import boxes, told
from lib.records import store
from lib.wording import between, brief, named, percent
from lib.workloads import catalogue

FIRST = "digits-mlp"  # the network on which SOAP was searched, and whose times are told
SOAP = {  # ratios to Adam, by the names of findings: a method, and what of `QUANTITIES` is compared
    "soap_small": ("soap", "small"),
    "soap_large": ("soap", "large"),
    "soap_critical": ("soap", "critical"),
    "soap_seldom": ("soap-10", "large"),
}
ALIKE = 1.25  # within which two numbers of steps, or two critical batch sizes, are alike


def findings(every: pd.DataFrame, curves: dict, timed: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        every: trials at their goals, momentum over its whole range where that is measured.
        curves: those of dense networks among them.
        timed: of `method_tables.in_time`.
    """
    over = tables.compared(curves)
    rows = over[over.n >= tables.SEVERAL]
    common = rows[
        rows.groupby("algorithm").workload.transform("nunique") == rows.workload.nunique()
    ]
    first, gains = tables.best_of(common)
    own = timed[timed.algorithm == first]
    slow = own[own.workload.isin(common.workload)].drop_duplicates("workload")
    sizes = zip(slow.batch_size, slow.network)
    own = own[own.workload == FIRST]
    low, high = own.iloc[0], own.iloc[-1]
    goals = every.groupby("workload").goal.first()
    whole = every.workload[every.space == "whole"].unique()
    found = {
        "first": method_results.title(first),
        "raised": between(*gains.ratio),
        "dear": between(*slow.time),
        "smallest": [f"{size} ({network})" for size, network in sizes],
        "methods": every.algorithm.nunique(),
        "searches_most": max(curve.n for curve in curves.values()),
        "trials": boxes.trials(every[every.space != "whole"]),
        "goals": [f"{percent(goal)} ({tables.name_of(name)})" for name, goal in goals.items()],
        "whole_range_on": sorted(map(tables.name_of, whole)),
        "whole_everywhere": len(whole) == every.workload.nunique(),
        "model_off": _model(rows),
        "fair": tables.FAIR,
        **_beside_first(rows),
        **_beside_adam(curves),
        "time_low": low.batch_size,
        "time_high": high.batch_size,
        "time_before": low.time,
        "time_after": high.time,
        **_soap(curves),
        **_lars(every[every.sparsity == 0]),
    }
    return told.plain(found)


def _model(rows: pd.DataFrame) -> list[str]:
    """How far networks are from the critical batch sizes of the noisy quadratic model."""
    says = tables.predictions().set_index("algorithm").critical
    own = rows[(rows.what == "critical") & rows.algorithm.isin(["adam", "kfac"])]
    return [
        f"{brief(says[m])} with {named(m)} (measured: {between(*ratios)})"
        for m, ratios in own.groupby("algorithm").ratio
    ]


def _beside_first(rows: pd.DataFrame) -> dict[str, str]:
    """How far other methods raise the critical batch size over SGD's, and their steps at small
    batches.
    """
    critical = rows[rows.what == "critical"]
    layers = rows[rows.algorithm.isin(["lars", "clars"])]
    ratios = layers.groupby("what").ratio.agg(list)
    return {
        "kfac_raised": between(*critical.ratio[critical.algorithm == "kfac"]),
        "layers_raised": between(*ratios["critical"]),
        "layers_small": between(*ratios["small"]),
    }


def _beside_adam(curves: dict) -> dict[str, object]:
    """Steps at the smallest batches over Adam's, of methods that O7 leaves out, and K-FAC's
    critical batch size over Adam's, of SEVERAL searches.
    """
    critical = _over_adam(curves, "kfac", "critical")
    small = {}
    for method in ("kfac", "soap", "lars", "clars"):
        effects = _over_adam(curves, method, "small").values()
        small[f"{method}_at_small"] = between(*(np.exp(effect.value) for effect in effects))
    return {
        "reordered": any(effect.high < 0 for effect in critical.values()),
        "kfac_over": [f"{told.times(e)} ({tables.name_of(name)})" for name, e in critical.items()],
        **small,
    }


def _over_adam(curves: dict, method: str, what: str) -> dict[str, Effect]:
    found = method_results.between(curves, method, "adam", method_results.QUANTITIES[what])
    return {name: effect for name, effect in found.items() if effect.n >= tables.SEVERAL}


def _soap(curves: dict) -> dict[str, object]:
    """SOAP's ratios to Adam, and how many of the page's three predictions they bear out."""
    effects = {}
    for name, (method, what) in SOAP.items():
        of = method_results.QUANTITIES[what]
        effects[name] = method_results.between(curves, method, "adam", of)[FIRST]
    small, large, critical, seldom = (np.exp(effect.value) for effect in effects.values())
    held = [
        large < 1 / ALIKE and small < 1 / 2,
        critical <= ALIKE,
        1 / ALIKE <= seldom <= ALIKE,
    ]
    ratios = {name: told.times(effect) for name, effect in effects.items()}
    return {"soap_held": sum(held), **ratios}


def _lars(searches: pd.DataFrame) -> dict[str, object]:
    """The share of LARS's draws with rates above any that reached a goal, and that goal."""
    goal = catalogue.workload(FIRST).goals[1]
    own = searches[(searches.algorithm == "lars") & (searches.workload == FIRST)]
    own = pd.concat(store.read(store.DATA / place)[1] for place in own.record)
    highest = own.learning_rate[own[f"steps@{goal:g}"].notna()].max()
    return {"lars_lost": percent((own.learning_rate > highest).mean()), "lars_goal": percent(goal)}
