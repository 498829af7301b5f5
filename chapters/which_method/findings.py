"""What the page on training methods says, as numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.which_method import best_settings
from chapters.which_method import method_tables as tables
from lib.analysis import method_results, scaling, splits
from lib.claims import front
from lib.methods import method
from lib.page import boxes, charts
from lib.probes.unseen import UNSEEN
from lib.wording import between, brief, named, percent
from lib.workloads.catalogue import Workload

RATES = method("lars").space["learning_rate"]
TURN = 64  # examples from which on the ratio of Muon's rate to Adam's is asked to stay


@dataclass(frozen=True)
class Measured:
    """What the page is written from.

    Attributes:
        work: the network that the page begins with.
        known: the trials of the methods asked for.
        every: these, momentum over its whole range where that is measured.
        curves: theirs.
        over: of `tables.compared`.
        timed: of `method_results.in_time`, each network by its name.
        rates: Muon's best learning rate beside Adam's.
        fast: the fastest trials of K-FAC.
    """

    work: Workload
    known: pd.DataFrame
    every: pd.DataFrame
    curves: dict
    over: pd.DataFrame
    timed: pd.DataFrame
    rates: pd.DataFrame
    fast: pd.DataFrame

    @property
    def dense(self) -> pd.DataFrame:
        return self.over[self.over.sparsity == 0]


def measured(
    work: Workload, known: pd.DataFrame, every: pd.DataFrame, times: pd.DataFrame
) -> Measured:
    """The curves of these trials; times: of `lib.probes.timings.over_sgd`."""
    curves, dense = scaling.curves(every), known[known.sparsity == 0]
    timed = method_results.in_time(curves, times)
    timed = timed.assign(network=timed.workload.map(tables.name_of))
    rates = best_settings.beside(dense, "muon", "adam")
    kfac = best_settings.at_known_goals(dense[dense.algorithm == "kfac"])
    fast = best_settings.fastest(kfac, best_settings.FAST)
    return Measured(work, known, every, curves, tables.compared(curves), timed, rates, fast)


def findings(data: Measured) -> dict[str, object]:
    """All values of the page's sentences."""
    dense, timed = data.dense, data.timed
    common = tables.in_common(dense, data.work.name)
    first, gains = tables.best_of(common)
    slow = timed[timed.workload.isin(common.workload) & (timed.algorithm == first)]
    slow = slow.drop_duplicates("workload")
    last = common[(common.what == "large") & (common.algorithm == first)]
    own = _alone(dense)
    return {
        "ranked": bool(len(gains)),
        "several": bool(common.n.min() >= tables.SEVERAL),
        "first": method_results.title(first),
        "first_name": first,
        "raised": between(*gains.ratio),
        "raised_alone": _told(own[own.algorithm == first], "network"),
        "timed": bool(len(slow)),
        "dear": between(*slow.time) if len(slow) else None,
        "ends_measured": bool(len(last)),
        "last_steps": each(last, "ratio"),
        "few_trials": tables.TRIES,
        "hard_draw": front.harder_than(),
        "unclipped": _unclipped(data.curves),
        **_measured(data),
        **_model(dense),
        **_dearest(common),
        **_time(timed, data.work.name, first),
        **_muon(data.rates),
        **_damping(data.fast, data.work.title),
        **_lars(data.known, data.work),
    }


def _alone(dense: pd.DataFrame) -> pd.DataFrame:
    """Critical batch sizes over SGD's by too few searches for titles."""
    return dense[(dense.what == "critical") & (dense.n < tables.SEVERAL)]


def _told(rows: pd.DataFrame, column: str) -> list[str]:
    return [f"{name}: {told}" for name, told in zip(rows[column], rows.told)]


def each(table: pd.DataFrame, column: str) -> list[str]:
    """A column's values, each with its network: "1.5 (MLP on digits)"."""
    return [f"{brief(v)} ({n})" for n, v in zip(table.network, table[column])]


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


def _measured(data: Measured) -> dict[str, object]:
    every = data.every
    goals = every.groupby("workload").goal.first()
    whole = every.workload[every.space == "whole"].unique()
    unseen = splits.unseen(UNSEEN.results(), "digits-mlp")
    return {
        "methods": int(every.algorithm.nunique()),
        "searches_most": max((curve.n for curve in data.curves.values()), default=1),
        "trials": boxes.trials(data.known),
        "goals": [f"{percent(goal)} ({tables.name_of(name)})" for name, goal in goals.items()],
        "whole_range": bool(len(whole)),
        "whole_range_on": sorted({tables.name_of(name) for name in whole}),
        "unseen_goal": unseen["unseen_goal"],
        "unseen_dense": unseen["unseen_dense"],
    }


def _model(dense: pd.DataFrame) -> dict[str, object]:
    """What the noisy quadratic model says, and how far networks are from it."""
    powers = tables.by_power().set_index("power")
    says = tables.predictions().set_index("algorithm").over_critical
    own = dense[(dense.what == "critical") & dense.algorithm.isin(["adam", "kfac"])]
    off = own[own.n >= tables.SEVERAL].groupby("algorithm").ratio
    return {
        "floor_plain": float(powers.c2[0.0]),
        "floor_known": int(powers.c2[1.0]),
        "critical_plain": float(powers.critical[0.0]),
        "critical_known": float(powers.critical[1.0]),
        "half_power_share": f"{100 * powers.c1[0.5] / powers.c1[0.0]:.0f} %",
        "model_compared": bool(len(off)),
        "model_off": "; ".join(
            f"{brief(says[m])} with {named(m)} (measured: {between(*ratios)})" for m, ratios in off
        ),
        "model_alone": _told(_alone(own), "method"),
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
    times = timed.pivot(index=["network", "batch_size"], columns="algorithm", values="time")
    both = times.reindex(columns=["kfac", "momentum"]).dropna().groupby("network").tail(1)
    beside = both.assign(over=both.kfac / both.momentum).reset_index()
    return {
        "time_measured": bool(len(own)),
        "time_network": own.network.iloc[0] if len(own) else None,
        "time_method": method_results.title(own.algorithm.iloc[0]) if len(own) else None,
        **ends(own, "time", "time"),
        "kfac_measured": bool(len(beside)),
        "kfac_over_momentum": each(beside, "over"),
    }


def _muon(rates: pd.DataFrame) -> dict[str, object]:
    """Muon's best rate over Adam's, and how it moves."""
    ratio = best_settings.by_size(rates).middle
    moves = [best_settings.per_doubling(rates, least) for least in (1, TURN)]
    whole, late = (rows.assign(network=rows.workload.map(tables.name_of)) for rows in moves)
    return {
        "muon_measured": bool(len(ratio)),
        "muon_least": float(ratio.min()),
        "muon_most": float(ratio.max()),
        "muon_moves": bool(len(whole) and len(late)),
        "muon_growth": each(whole, "middle"),
        "muon_late": each(late, "middle"),
        "muon_turn": TURN,
    }


def _damping(fast: pd.DataFrame, title: str) -> dict[str, object]:
    """How K-FAC's damping moves with the batch, and with its rate among fast trials."""
    moving = tables.damping_and_rate(fast)
    network = title if title in set(moving.network) else moving.network.min()
    own = moving[(moving.what == "damping") & (moving.network == network)]
    related = best_settings.by_size(
        best_settings.correlations(fast, "damping", "learning_rate") if len(fast) else fast, np.tanh
    )
    return {
        "damping_measured": bool(len(own)),
        "damping_network": network if len(own) else None,
        **ends(own, "damping", "middle"),
        "fastest": best_settings.FAST,
        "related": bool(len(related)),
        "related_least": float(related.middle.min()),
        "related_most": float(related.middle.max()),
        "related_cases": len(related),
        "related_apart": int(((related.low > 0) | (related.high < 0)).sum()),
    }


def _unclipped(curves: dict) -> list[str]:
    """What K-FAC takes at its largest batches without the clip, by network."""
    largest = method_results.at_end(1)
    found = method_results.between(curves, "kfac-unclipped", "kfac", largest)
    return [f"{brief(np.exp(e.value))} ({tables.name_of(name)})" for name, e in found.items()]


def _lars(known: pd.DataFrame, work: Workload) -> dict[str, object]:
    """How much of LARS's range of rates was too high."""
    easier = work.goals[min(1, len(work.goals) - 1)]
    own = known[(known.algorithm == "lars") & (known.workload == work.name) & (known.sparsity == 0)]
    trials = scaling.at_goal(own, easier) if len(own) else own
    highest, top = trials.learning_rate[trials.steps.notna()].max(), RATES.high
    return {
        "lars_size": tables.LARS_SIZE,
        "lars_cut": bool(highest < top),
        "lars_network": work.title,
        "lars_goal": percent(easier),
        "lars_highest": float(highest),
        "lars_top": top,
        "lars_above": percent((trials.learning_rate > highest).mean()),
    }
