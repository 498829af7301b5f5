"""What the page on hardware says, as numbers and words."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from chapters.hardware import advice
from chapters.hardware.hardware_tables import Case, Optimum
from chapters.hardware.pruned_times import GOAL, ROUGH, SCORED
from lib.analysis import hardware, method_results, scaling
from lib.wording import between, brief, number, percent, span
from lib.workloads import catalogue
from lib.workloads.catalogue import Workload


def findings(
    work: Workload, case: Case, device: str, zeros: pd.DataFrame, dearer: pd.DataFrame
) -> dict[str, object]:
    """All values of the page's sentences.

    Args:
        work: the network asked for.
        case: it on the hardware asked for.
        device: "measured" or "entered", as asked for.
        zeros: of `hardware_tables.skipped`.
        dearer: of `hardware_tables.dearer`.
    """
    fast, cheap = (case.best(case.densest, what) for what in ("seconds", "price"))
    given, searches = case.advice(case.densest), case.curves[case.densest].n
    adaptive = isinstance(case.curves[case.densest], scaling.AdaptiveCurve)
    return {
        "network": work.title,
        "method": case.densest[1],
        "searches": searches,
        "several_searches": searches > 1,
        "adaptive": adaptive,
        "most_devices": case.machine.devices,
        "timed": case.timed is not None,
        "untimed": case.timed is None and device == "measured",
        "own": bool(work.source),
        "borrowed": searches < scaling.ENOUGH and not adaptive,
        "fastest": fast.batch_size,
        "fastest_range": span(fast.sizes),
        "cheapest_range": span(cheap.sizes),
        "tied": _tied(case, fast),
        "fast_devices": _devices(fast.devices),
        "cheapest": cheap.batch_size,
        "cheap_devices": _devices(cheap.devices),
        "more_devices": fast.devices > cheap.devices,
        **_traded(case, fast, cheap),
        "goal": work.asks.written(case.points.goal.iloc[0]),
        "time": fast.value,
        "critical_known": given.inside,
        "critical": brief(given.critical) if given.inside else None,
        "advice": advice.sentences(given),
        **_zeros(zeros),
        **_dearer(dearer),
    }


def _traded(case: Case, fast: Optimum, cheap: Optimum) -> dict[str, object]:
    """What the fastest setting takes over the cheapest, in time and in price."""
    points, at = case.of(case.densest), []
    for one in (fast, cheap):
        machine = replace(case.machine, devices=one.devices)
        steps, weights = points.loc[one.batch_size, ["steps", "parameters"]]
        at.append(hardware.to_goal(machine, one.batch_size, steps, weights, case.timed))
    (seconds, price), (slow, least) = at
    ratio = float(price / least) if least else None
    return {"time_share": percent(float(seconds / slow)), "price_ratio": ratio}


def _tied(case: Case, fast: Optimum) -> list[str]:
    """Other batch sizes whose time reads like that of the fastest, in two digits."""
    times = case.of(case.densest).steps * case.step(case.densest).seconds
    same = times.index[times.map(brief) == brief(fast.value)]
    return [number(int(size)) for size in same if size != fast.batch_size]


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count:,} devices"


def _zeros(zeros: pd.DataFrame) -> dict[str, object]:
    """What pruned networks take over dense ones if zeros are skipped."""
    goal, *others = (zeros[zeros.what == what] for what in (GOAL, SCORED, ROUGH))
    return {
        "sparsest": f"{zeros.sparsity.max():g}",
        "over_dense": between(*goal.ratio),
        "pairs": len(goal),
        "later": int((goal.ratio_low > 1).sum()),
        "sooner": int((goal.ratio_high < 1).sum()),
        "over_dense_scored": between(*others[0].ratio),
        "over_dense_rough": between(*others[1].ratio),
        "code": zeros.attrs["code"],
    }


def _dearer(times: pd.DataFrame) -> dict[str, object]:
    """What the method takes that needs the fewest steps, by examples on each device."""
    least = times[times.algorithm == times.algorithm.iloc[0]]
    few, many = least.iloc[0], least.iloc[-1]
    return {
        "dearer_network": catalogue.workload(few.workload).title,
        "dearer_size": int(few.batch_size),
        "dearer_method": method_results.title(few.algorithm),
        "dearer_few": int(few.share),
        "dearer_many": int(many.share),
        "dearer_slow": float(few.time),
        "dearer_fast": float(many.time),
        "dearer_pays": bool(many.time < 1 < few.time),
    }
