"""What the page on hardware says, as numbers and words."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd

from chapters.hardware import volunteers
from chapters.hardware.hardware_tables import Case, Optimum
from chapters.hardware.volunteers import START
from lib.analysis import hardware, scaling
from lib.claims.judging import kept
from lib.page import told
from lib.wording import percent, with_interval
from lib.workloads import catalogue
from lib.workloads.catalogue import Workload


def findings(work: Workload, case: Case, zeros: pd.DataFrame, dearer: pd.DataFrame) -> dict:
    """What the sentences on devices name.

    Args:
        work: the network asked for.
        case: it on the hardware asked for.
        zeros: of `hardware_tables.skipped`.
        dearer: of `hardware_tables.dearer`.
    """
    fast, cheap = (case.best(case.densest, what) for what in ("seconds", "price"))
    curve = case.curves[case.densest]
    adaptive = isinstance(curve, scaling.AdaptiveCurve)
    return {
        "network": work.title,
        "method": case.densest[1],
        "most_devices": case.machine.devices,
        "timed": case.timed is not None,
        "borrowed": curve.n < scaling.ENOUGH and not adaptive,
        "fastest": fast.batch_size,
        "fast_devices": _devices(fast.devices),
        "cheapest": cheap.batch_size,
        "cheap_devices": _devices(cheap.devices),
        **_traded(case, fast, cheap),
        "goal": work.asks.written(case.points.goal.iloc[0]),
        "pairs": len(zeros),
        "later": int((zeros.ratio_low > 1).sum()),
        "sooner": int((zeros.ratio_high < 1).sum()),
        "code": zeros.attrs["code"],
        **_dearer(dearer),
    }


def _traded(case: Case, fast: Optimum, cheap: Optimum) -> dict[str, object]:
    """What the fastest setting takes over the cheapest, in time and in price."""
    steps, weights = case.of(case.densest).loc[cheap.batch_size, ["steps", "parameters"]]
    machine = replace(case.machine, devices=cheap.devices)
    slow, _ = hardware.to_goal(machine, cheap.batch_size, steps, weights, case.timed)
    share = fast.value / float(slow)
    return {"time_share": percent(share), "price_ratio": share * fast.devices / cheap.devices}


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count:,} devices"


def _dearer(times: pd.DataFrame) -> dict[str, object]:
    """Of the method that needs the fewest steps, where it was measured, and whether it pays only
    with many examples on each device.
    """
    least = times[times.algorithm == times.algorithm.iloc[0]]
    few, many = least.iloc[0], least.iloc[-1]
    return {
        "dearer_network": catalogue.workload(few.workload).title,
        "dearer_size": int(few.batch_size),
        "dearer_pays": bool(many.time < 1 < few.time),
    }


def rounds(team: volunteers.Team, points: pd.DataFrame) -> pd.DataFrame:
    """`volunteers.of_settings` of a team at the batch sizes of these points, simulated once."""
    asked = team, sorted(map(int, points.batch_size.unique()))
    name = f"rounds-{hashlib.sha256(repr(asked).encode()).hexdigest()[:12]}"
    return pd.DataFrame(kept(name, lambda: volunteers.of_settings(*asked).to_dict("list")))


def of_volunteers(
    case: Case, team: volunteers.Team, points: pd.DataFrame, compared: pd.DataFrame
) -> dict:
    """What the sentences on volunteers name.

    Args:
        case: the network asked for.
        team: the volunteers.
        points: of `volunteers.fitted`.
        compared: of `volunteers.compared`, all curves and settings.
    """
    own = (points[scaling.CURVE] == list(case.densest)).all(axis=1)
    row = (points[own] if own.any() else points).iloc[0]  # another's, where it has no such line
    best = volunteers.best_batch(row.c1 / row.c2, START["latency"], START["speed"])
    sizes = points.batch_size[points.curve == row.curve]
    return told.plain(
        {
            "curve": row.curve,
            "peers": team.peers,
            "pause": START["latency"],
            "speed": START["speed"],
            "best": best,
            "beyond": not sizes.min() <= best <= sizes.max(),
            "curves": points.curve.nunique(),
            "lost": percent(compared.lost.quantile(0.9)),
        }
    )


def lost(points: pd.DataFrame, rounds: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """How much longer than with the fastest batch size it takes with the formula's.

    Args:
        points: of `volunteers.fitted`.
        rounds: of the function of that name.
        compared: of `volunteers.compared`, of both.
    """
    smooth = points.assign(steps=points.c1 / points.batch_size + points.c2)
    line = volunteers.compared(smooth, rounds).lost.quantile(0.9)
    leaving = compared.groupby("departures").lost.quantile(0.9).max()
    logs = np.log1p(compared.lost).groupby(compared.curve).mean()
    mean, low, high = (percent(time - 1) for time in scaling.mean_of(logs).row("time").values())
    worst = compared.loc[compared.lost.idxmax()]
    at = points[(points.curve == worst.curve) & (points.batch_size == worst.picked)].iloc[0]
    steps = with_interval(at.steps, at.low, at.high)
    rows = {
        "measured steps, the mean of curves": f"{mean} ({low} to {high})",
        "measured steps, nine of ten settings": f"at most {percent(compared.lost.quantile(0.9))}",
        "the same, however often peers leave": f"at most {percent(leaving)}",
        "steps of the fitted lines, nine of ten settings": f"at most {percent(line)}",
        f"the worst setting: {worst.curve}, of {steps} steps": percent(worst.lost),
    }
    return pd.DataFrame(rows.items(), columns=["simulated with", "longer than the fastest"])
