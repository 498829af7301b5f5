"""What the page on training methods says, as numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.which_method import method_tables as tables
from lib.analysis import method_results, scaling
from lib.methods import method
from lib.page import boxes, charts
from lib.wording import between, brief, named, percent, with_interval
from lib.workloads.catalogue import Workload

RATES = method("lars").space["learning_rate"]
TIME = "time_network time_method time_low time_before time_high time_after".split()
LARS_SIZE = 256  # examples at which LARS is compared with momentum


@dataclass(frozen=True)
class Measured:
    """What the page is written from, on dense networks.

    Attributes:
        work: the network that the page begins with.
        known: the trials of the methods asked for.
        every: these and those of pruned networks, momentum over its whole range where that is
            measured.
        curves: theirs.
        over: of `tables.compared`.
        timed: of `method_results.in_time`, each network by its name.
    """

    work: Workload
    known: pd.DataFrame
    every: pd.DataFrame
    curves: dict
    over: pd.DataFrame
    timed: pd.DataFrame


def measured(
    work: Workload, known: pd.DataFrame, every: pd.DataFrame, times: pd.DataFrame
) -> Measured:
    """The curves of these trials; times: of `lib.probes.timings.over_sgd`."""
    curves = {key: curve for key, curve in scaling.curves(every).items() if not key[3]}
    timed = method_results.in_time(curves, times)
    timed = timed.assign(network=timed.workload.map(tables.name_of))
    dense = known[known.sparsity == 0]
    return Measured(work, dense, every, curves, tables.compared(curves), timed)


def findings(data: Measured) -> dict[str, object]:
    """All values of the page's sentences."""
    timed = data.timed
    rows = tables.reliable(data.over, data.work.name)
    common = tables.everywhere(rows)
    first, gains = tables.best_of(common)
    slow = timed[timed.workload.isin(common.workload) & (timed.algorithm == first)]
    slow = slow.drop_duplicates("workload")
    last = common[(common.what == "large") & (common.algorithm == first)]
    rates = tables.beside(data.known, "muon", "adam")
    return {
        "ranked": bool(len(gains)),
        "several": bool(rows.n.min() >= tables.SEVERAL),
        "first": method_results.title(first),
        "first_name": first,
        "raised": between(*gains.ratio),
        "dear": between(*slow.time) if len(slow) else None,
        "last_steps": each(last, "ratio"),
        "muon_rates": between(*rates) if len(rates) else None,
        "unclipped": _unclipped(data.curves),
        **_measured(data),
        **_model(data.over),
        **_dearest(rows),
        **_time(timed, data.work.name, first),
        **_lars(data),
    }


def each(table: pd.DataFrame, column: str) -> list[str]:
    """A column's values, each with its network: "1.5 (MLP on digits)"."""
    return [f"{brief(v)} ({n})" for n, v in zip(table.network, table[column])]


def _measured(data: Measured) -> dict[str, object]:
    every = data.every
    goals = every.groupby("workload").goal.first()
    whole = every.workload[every.space == "whole"].unique()
    return {
        "methods": int(every.algorithm.nunique()),
        "searches_most": max((curve.n for curve in data.curves.values()), default=1),
        "trials": boxes.trials(data.known),
        "goals": [f"{percent(goal)} ({tables.name_of(name)})" for name, goal in goals.items()],
        "whole_range_on": sorted(map(tables.name_of, whole)),
    }


def _model(over: pd.DataFrame) -> dict[str, object]:
    """How far networks are from what the noisy quadratic model says."""
    says = tables.predictions().set_index("algorithm").over_critical
    own = over[(over.what == "critical") & over.algorithm.isin(["adam", "kfac"])]
    enough = own.n >= tables.SEVERAL
    off = own[enough].groupby("algorithm").ratio
    alone = own[~enough]
    ranges = alone[["ratio", "ratio_low", "ratio_high"]].to_numpy()
    return {
        "model_off": "; ".join(
            f"{brief(says[m])} with {named(m)} (measured: {between(*ratios)})" for m, ratios in off
        ),
        "model_alone": [
            f"{name}: {with_interval(*row)}" for name, row in zip(alone.method, ranges)
        ],
    }


def _dearest(rows: pd.DataFrame) -> dict[str, object]:
    """The method whose smallest batches cost most."""
    small = rows[rows.what == "small"].sort_values("ratio", ascending=False)
    costly = small.algorithm[small.ratio > 1.25]
    worst = costly.iloc[0] if len(costly) else None
    return {
        "dearest": worst and method_results.title(worst),
        "dearest_steps": each(small[small.algorithm == worst], "ratio"),
    }


def _time(timed: pd.DataFrame, workload: str, first: str) -> dict[str, object]:
    """Time over SGD's at the ends of the curve that is drawn first, and K-FAC's over momentum's."""
    timed = timed[~timed.algorithm.isin(charts.VARIANTS)]
    known = (timed.workload == workload).any()
    own = timed[timed.workload == (workload if known else timed.workload.min())]
    own = own[own.algorithm == (first if first in set(own.algorithm) else own.algorithm.min())]
    told = dict.fromkeys(TIME)
    if len(own):
        low, high = own.iloc[0], own.iloc[-1]
        about = (low.network, method_results.title(low.algorithm))
        ends = (int(low.batch_size), low.time, int(high.batch_size), high.time)
        told = dict(zip(told, [*about, *ends]))
    times = timed.pivot(index=["network", "batch_size"], columns="algorithm", values="time")
    both = times.reindex(columns=["kfac", "momentum"]).dropna().groupby("network").tail(1)
    beside = both.assign(over=both.kfac / both.momentum).reset_index()
    return {**told, "kfac_over_momentum": each(beside, "over")}


def _unclipped(curves: dict) -> list[str]:
    """What K-FAC takes at its largest batches without the clip, by network."""
    largest = method_results.at_end(1)
    found = method_results.between(curves, "kfac-unclipped", "kfac", largest)
    return [f"{brief(np.exp(e.value))} ({tables.name_of(name)})" for name, e in found.items()]


def _lars(data: Measured) -> dict[str, object]:
    """LARS beside momentum, and how much of its range of rates was too high."""

    def steps(above: scaling.Curve, below: scaling.Curve) -> scaling.Effect | None:
        shared = above.logs.columns.intersection(below.logs.columns)
        return scaling.mean_steps_ratio(above, below, [LARS_SIZE]) if LARS_SIZE in shared else None

    over = method_results.between(data.curves, "lars", "momentum", steps)
    known, work = data.known, data.work
    easier = work.goals[min(1, len(work.goals) - 1)]
    own = known[(known.algorithm == "lars") & (known.workload == work.name)]
    trials = scaling.at_goal(own, easier) if len(own) else own
    highest, top = trials.learning_rate[trials.steps.notna()].max(), RATES.high
    return {
        "lars_size": LARS_SIZE,
        "lars_over": between(*(np.exp(e.value) for e in over.values())) if over else None,
        "lars_cut": bool(highest < top),
        "lars_network": work.title,
        "lars_goal": percent(easier),
        "lars_highest": float(highest),
        "lars_top": top,
        "lars_above": percent((trials.learning_rate > highest).mean()),
    }
