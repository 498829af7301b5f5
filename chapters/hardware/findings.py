"""What the page on hardware says, as numbers and words."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd

from chapters.hardware import volunteers
from chapters.hardware.hardware_tables import Case
from lib.analysis import hardware, scaling
from lib.claims.judging import kept
from lib.wording import percent, span, with_interval
from lib.workloads.catalogue import Workload


def findings(work: Workload, case: Case) -> dict:
    """Values in the sentences on devices."""
    fast, cheap = (case.best(case.densest, what) for what in ("seconds", "price"))
    curve = case.curves[case.densest]
    # The fastest setting over the cheapest, in time and price
    points = case.of(case.densest)
    steps, weights = points.loc[cheap.batch_size, ["steps", "parameters"]]
    machine = replace(case.machine, devices=cheap.devices)
    slow, _ = hardware.to_goal(machine, cheap.batch_size, steps, weights, case.timed)
    share = fast.value / float(slow)
    return {
        "network": work.title,
        "method": case.densest[1],
        "timed": case.timed is not None,
        "borrowed": curve.n < scaling.ENOUGH,
        "fastest": span(fast.sizes),
        "cheapest": span(cheap.sizes),
        "time_share": percent(share),
        "price_ratio": share * fast.devices / cheap.devices,
        "goal": work.asks.written(case.points.goal.iloc[0]),
    }


def rounds(team: volunteers.Team, points: pd.DataFrame) -> pd.DataFrame:
    """`volunteers.of_settings` for a team at the batch sizes of these points, simulated once."""
    setting = team, sorted(map(int, points.batch_size.unique()))
    name = f"rounds-{hashlib.sha256(repr(setting).encode()).hexdigest()[:12]}"
    return pd.DataFrame(kept(name, lambda: volunteers.of_settings(*setting).to_dict("list")))


def lost(points: pd.DataFrame, rounds: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """How much longer the formula's batch size takes than the fastest one; points: from
    `volunteers.fitted`; rounds: from `rounds`; compared: from `volunteers.compared` on these.
    """
    smooth = points.assign(steps=points.c1 / points.batch_size + points.c2)
    line = volunteers.compared(smooth, rounds).lost.quantile(0.9)
    leaving = compared.groupby("departures").lost.quantile(0.9).max()
    logs = np.log1p(compared.lost).groupby(compared.curve).mean()
    mean, low, high = (percent(time - 1) for time in scaling.mean_of(logs).row("time").values())
    worst = compared.loc[compared.lost.idxmax()]
    picked = (points.curve == worst.curve) & (points.batch_size == worst.picked)
    steps = with_interval(*points.loc[picked, ["steps", "low", "high"]].iloc[0])
    rows = {
        "measured steps, mean over curves": f"{mean} ({low} to {high})",
        "measured steps, nine of ten settings, any departure rate": f"at most {percent(leaving)}",
        "fitted steps, nine of ten settings": f"at most {percent(line)}",
        f"measured steps, worst setting: {worst.curve}, {steps} steps": percent(worst.lost),
    }
    return pd.DataFrame(rows.items(), columns=["simulated with", "longer than the fastest"])
