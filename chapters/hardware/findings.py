"""What the page on hardware says, as numbers and words."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from chapters.hardware.hardware_tables import Case, Optimum
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
    curve = case.curves[case.densest]
    adaptive = isinstance(curve, scaling.AdaptiveCurve)
    return {
        "network": work.title,
        "method": case.densest[1],
        "searches": curve.n,
        "adaptive": adaptive,
        "most_devices": case.machine.devices,
        "timed": case.timed is not None,
        "untimed": case.timed is None and device == "measured",
        "own": bool(work.source),
        "alone": _alone(case),
        "borrowed": curve.n < scaling.ENOUGH and not adaptive,
        "fastest": fast.batch_size,
        "fastest_range": span(fast.sizes),
        "cheapest_range": span(cheap.sizes),
        "tied": _tied(case, fast),
        "fast_devices": _devices(fast.devices),
        "cheapest": cheap.batch_size,
        "cheap_devices": _devices(cheap.devices),
        **_traded(case, fast, cheap),
        "goal": work.asks.written(case.points.goal.iloc[0]),
        **_zeros(zeros),
        **_dearer(dearer),
    }


def _traded(case: Case, fast: Optimum, cheap: Optimum) -> dict[str, object]:
    """What the fastest setting takes over the cheapest, in time and in price."""
    steps, weights = case.of(case.densest).loc[cheap.batch_size, ["steps", "parameters"]]
    machine = replace(case.machine, devices=cheap.devices)
    slow, _ = hardware.to_goal(machine, cheap.batch_size, steps, weights, case.timed)
    share = fast.value / float(slow)
    return {"time_share": percent(share), "price_ratio": share * fast.devices / cheap.devices}


def _tied(case: Case, fast: Optimum) -> list[str]:
    """Other batch sizes whose time reads like that of the fastest, in two digits."""
    times = case.of(case.densest).steps * case.step(case.densest).seconds
    same = times.index[times.map(brief) == brief(fast.value)]
    return [number(int(size)) for size in same if size != fast.batch_size]


def _alone(case: Case) -> list[str]:
    """Sparsities that were searched once, where the dense network was several times."""
    dense = case.densest
    sparse = [key for key in case.curves if key[:3] == dense[:3] and key[3] > dense[3]]
    once = [f"{key[3]:g}" for key in sorted(sparse) if case.curves[key].n == 1]
    return once if case.curves[dense].n > 1 else []


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count:,} devices"


def _zeros(zeros: pd.DataFrame) -> dict[str, object]:
    """What pruned networks take over dense ones if zeros are skipped."""
    return {
        "sparsest": f"{zeros.sparsity.max():g}",
        "over_dense": between(*zeros.ratio),
        "pairs": len(zeros),
        "later": int((zeros.ratio_low > 1).sum()),
        "sooner": int((zeros.ratio_high < 1).sum()),
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
