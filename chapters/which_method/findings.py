"""What the page on training methods says, as numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.which_method import best_settings
from chapters.which_method import method_tables as tables
from lib.analysis import method_results, scaling, unseen_errors
from lib.page import boxes, charts
from lib.probes.unseen import UNSEEN
from lib.wording import between, brief, named, percent
from lib.workloads.catalogue import Workload

TURN = 64  # examples from which on the ratio of Muon's rate to Adam's is asked to stay


@dataclass(frozen=True)
class Measured:
    """What the page is written from.

    Attributes:
        work: the network that the page begins with.
        methods: the training methods asked for.
        recorded: all trials on record.
        known: those of the methods asked for.
        every: these, momentum over its whole range where that is measured.
        curves: theirs.
        times: of `lib.probes.method_times.over_sgd`.
    """

    work: Workload
    methods: list[str]
    recorded: pd.DataFrame
    known: pd.DataFrame
    every: pd.DataFrame
    curves: dict
    times: pd.DataFrame


def findings(
    data: Measured,
    over: pd.DataFrame,
    timed: pd.DataFrame,
    rates: pd.DataFrame,
    fast: pd.DataFrame,
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        data: the records and their curves.
        over: of `tables.compared`.
        timed: of `tables.in_time`.
        rates: of `best_settings.beside`, Muon's beside Adam's.
        fast: of `best_settings.fastest`, K-FAC's.
    """
    dense = over[over.sparsity == 0]
    common = tables.in_common(dense, data.work.name)
    first, gains = tables.best_of(common)
    slow = timed[timed.workload.isin(common.workload) & (timed.algorithm == first)]
    slow = slow.drop_duplicates("workload")
    last = common[(common.what == "large") & (common.algorithm == first)]
    return {
        "ranked": bool(len(gains)),
        "first": method_results.title(first),
        "raised": between(*gains.ratio),
        "timed": bool(len(slow)),
        "dear": between(*slow.time) if len(slow) else None,
        "ends_measured": bool(len(last)),
        "last_steps": each(last, "ratio"),
        "few_trials": method_results.TRIES,
        **_measured(data, dense),
        **_model(dense),
        **_dearest(common),
        **_time(timed, data.work.name, first),
        **_muon(rates),
        **_damping(fast, data.work.title),
        **_clip(data.curves),
        **_lars(data.known, data.work),
    }


def each(table: pd.DataFrame, column: str) -> list[str]:
    """A column's values, each with its network: "1.5 (MLP on digits)"."""
    if not len(table):
        return []
    return [f"{brief(v)} ({n})" for n, v in zip(table.network, table[column], strict=True)]


def ends(rows: pd.DataFrame, what: str, column: str) -> dict[str, object]:
    """The smallest and largest batch size of a curve and a column there; None where it is empty.

    Keys: WHAT_low and WHAT_high (examples), WHAT_before and WHAT_after (the column).
    """
    keys = [f"{what}_{end}" for end in ("low", "high", "before", "after")]
    if not len(rows):
        return dict.fromkeys(keys)
    both = rows.iloc[[0, -1]]
    sizes = [int(size) for size in both.batch_size]
    return dict(zip(keys, [*sizes, *both[column].tolist()], strict=True))


def _measured(data: Measured, dense: pd.DataFrame) -> dict[str, object]:
    every = data.every
    goals = every.groupby("workload").goal.first() if len(every) else pd.Series(dtype=float)
    whole = every.workload[every.space == "whole"] if "space" in every else []
    lacking = method_results.unmeasured(data.recorded, data.methods)
    unseen = unseen_errors.told(UNSEEN.results(), "digits-mlp")
    return {
        "methods": int(every.algorithm.nunique()),
        "several_methods": bool(every.algorithm.nunique() > 1),
        "searches_most": int(dense.searches.max()) if len(dense) else 1,
        "trials": boxes.trials(data.known),
        "goals": [f"{percent(goal)} ({tables.name_of(name)})" for name, goal in goals.items()],
        "whole_range": bool(len(whole)),
        "whole_range_on": sorted({tables.name_of(name) for name in whole}),
        "all_measured": not lacking,
        "unmeasured": list(dict.fromkeys(named(m) for m in lacking)),
        "unseen_goal": unseen["unseen_goal"],
        "unseen_dense": unseen["unseen_dense"],
    }


def _model(dense: pd.DataFrame) -> dict[str, object]:
    """What the noisy quadratic model says, and how far networks are from it."""
    powers = tables.by_power().set_index("power")
    says = tables.predictions().set_index("algorithm").over_critical
    own = dense[(dense.what == "critical") & (dense.searches >= method_results.SEVERAL)]
    off = {m: own.ratio[own.algorithm == m] for m in ("adam", "kfac") if m in set(own.algorithm)}
    return {
        "floor_plain": float(powers.c2[0.0]),
        "floor_known": int(powers.c2[1.0]),
        "critical_plain": float(powers.critical[0.0]),
        "critical_known": float(powers.critical[1.0]),
        "half_power_share": f"{powers.c1[0.5] / powers.c1[0.0]:.0%}".replace("%", " %"),
        "model_compared": bool(off),
        "model_off": "; ".join(
            f"{brief(says[m])} with {named(m)}, where networks show {between(*ratios)}"
            for m, ratios in off.items()
        ),
    }


def _dearest(common: pd.DataFrame) -> dict[str, object]:
    """The method whose smallest batches cost most."""
    costly = common[(common.what == "small") & (common.ratio > 1.25)]
    costly = costly.sort_values("ratio", ascending=False)
    worst = costly[costly.algorithm == costly.algorithm.iloc[0]] if len(costly) else costly
    return {
        "some_dear": bool(len(costly)),
        "dearest": method_results.title(worst.algorithm.iloc[0]) if len(costly) else None,
        "dearest_steps": each(worst, "ratio"),
    }


def _time(timed: pd.DataFrame, workload: str, first: str) -> dict[str, object]:
    """Time over SGD's at the ends of the curve that is drawn first, and K-FAC's over momentum's."""
    timed = timed[~timed.algorithm.isin(charts.VARIANTS)]
    known = (timed.workload == workload).any()
    own = timed[timed.workload == (workload if known else timed.workload.min())]
    own = own[own.algorithm == (first if first in set(own.algorithm) else own.algorithm.min())]
    size = timed.groupby(["workload", "algorithm"]).batch_size.transform("max")
    beside = timed[timed.batch_size == size].pivot(
        index=["network", "batch_size"], columns="algorithm", values="time"
    )
    both = {"kfac", "momentum"} <= {*beside}
    beside = beside.assign(over=beside.kfac / beside.momentum).dropna() if both else beside[:0]
    return {
        "time_measured": bool(len(own)),
        "time_network": own.network.iloc[0] if len(own) else None,
        "time_method": method_results.title(own.algorithm.iloc[0]) if len(own) else None,
        **ends(own, "time", "time"),
        "kfac_measured": bool(len(beside)),
        "kfac_over_momentum": each(beside.reset_index(), "over"),
    }


def _muon(rates: pd.DataFrame) -> dict[str, object]:
    """Muon's best rate over Adam's, and how it moves."""
    ratio = best_settings.by_size(rates)
    whole, late = (
        best_settings.per_doubling(rates, least).assign(
            network=lambda t: [tables.name_of(name) for name in t.workload]
        )
        for least in (1, TURN)
    )
    return {
        "muon_measured": bool(len(ratio)),
        "muon_least": float(ratio.middle.min()),
        "muon_most": float(ratio.middle.max()),
        "muon_moves": bool(len(whole) and len(late)),
        "muon_growth": each(whole, "middle"),
        "muon_late": each(late, "middle"),
        "muon_turn": TURN,
    }


def _damping(fast: pd.DataFrame, title: str) -> dict[str, object]:
    """How K-FAC's damping moves with the batch, and with its rate."""
    moving = tables.damping_and_rate(fast)
    network = title if title in set(moving.network) else moving.network.min()
    own = moving[(moving.what == "damping") & (moving.network == network)]
    return {
        "damping_measured": bool(len(own)),
        "damping_network": network if len(own) else None,
        **ends(own, "damping", "middle"),
        "fastest": best_settings.FAST,
        **_related(fast),
    }


def _related(fast: pd.DataFrame) -> dict[str, object]:
    """How K-FAC's damping and rate are correlated among fast trials."""
    names = ("related_least", "related_most", "related_cases", "related_apart")
    if not len(fast):
        return {"related": False, **dict.fromkeys(names)}
    logs = best_settings.correlations(fast, "damping", "learning_rate")
    rows = best_settings.by_size(logs, np.tanh)
    apart = (rows.low > 0) | (rows.high < 0)
    values = (float(rows.middle.min()), float(rows.middle.max()), len(rows), int(apart.sum()))
    return {"related": bool(len(rows)), **dict(zip(names, values, strict=True))}


def _clip(curves: dict) -> dict[str, object]:
    """What K-FAC takes at its largest batches without the clip."""
    loose = tables.on_networks(curves, "kfac-unclipped", "kfac", method_results.at_end(1))
    return {"unclipped_measured": bool(len(loose)), "unclipped": each(loose, "ratio")}


def _lars(known: pd.DataFrame, work: Workload) -> dict[str, object]:
    """How much of LARS's range of rates was too high."""
    easier = work.goals[min(1, len(work.goals) - 1)]
    own = (known.algorithm == "lars") & (known.workload == work.name) & (known.sparsity == 0)
    highest, top, above = None, None, None
    if own.any():
        trials = scaling.at_goal(known[own], easier)
        highest, top, above = best_settings.highest_rate(trials, "lars")
    cut = own.any() and highest < top
    return {
        "lars_size": tables.LARS_SIZE,
        "lars_cut": bool(cut),
        "lars_network": work.title,
        "lars_goal": percent(easier),
        "lars_highest": highest if cut else None,
        "lars_top": top if cut else None,
        "lars_above": percent(above) if cut else None,
    }
