"""What the page on volunteers says, as numbers and words, and its tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from chapters.volunteers import volunteers
from lib.analysis import goals, hardware, ranges, scaling
from lib.claims import judging
from lib.claims.cache import kept
from lib.records import on_record
from lib.studies import plans
from lib.wording import brief, percent, span

MICRO_BATCHES = (1, 4, 16)  # examples


def rounds(team: volunteers.Team, points: pd.DataFrame, start: Mapping[str, float]) -> pd.DataFrame:
    """`volunteers.of_settings` of a team at the batch sizes of these points, simulated once."""
    sizes = sorted(map(int, points.batch_size.unique()))
    asked = (team, sizes, *volunteers.settings(start).values())
    name = f"rounds-{hashlib.sha256(repr(asked).encode()).hexdigest()[:12]}"
    return pd.DataFrame(kept(name, lambda: volunteers.of_settings(*asked).to_dict("list")))


def measured(workload: str) -> pd.DataFrame:
    """All dense trials at their goals, a reader's own workload among them."""
    own = on_record.gathered(hardware.readers(workload), sparsity=0.0, **plans.USUAL)
    low = judging.low()
    return goals.at_goals(ranges.whole(judging.to_goals(own), low[low.sparsity == 0]))


def fitted(trials: pd.DataFrame, micro_batch: int) -> pd.DataFrame:
    """The points of `volunteers.fitted`, at batch sizes of whole micro-batches."""
    curves = scaling.across_replicates(scaling.steps_to_result(trials))
    curves = curves[curves.batch_size % micro_batch == 0]
    return volunteers.fitted(curves.assign(curve=scaling.curve_names(curves)))


def findings(
    chosen: Any, points: pd.DataFrame, rounds: pd.DataFrame, compared: pd.DataFrame
) -> dict:
    """All values of the page's sentences.

    Args:
        chosen: the page's parameters.
        points: of `fitted`.
        rounds: of `claims.rounds`.
        compared: of `volunteers.compared`, all curves and settings.
    """
    own = (points.workload == chosen.workload) & (points.algorithm == chosen.algorithm)
    curve, c1, c2 = points.loc[own, ["curve", "c1", "c2"]].iloc[0]
    critical = float(c1 / c2)
    exchange = (chosen.latency, chosen.speed)
    best, filled = (
        float(volunteers.best_batch(critical, *exchange, overlap)) for overlap in (False, True)
    )
    waiting = volunteers.to_goal(c1, c2, best, *exchange)
    busy = volunteers.to_goal(c1, c2, filled, *exchange, overlap=True)
    return {
        "curve": curve,
        "c1": float(c1),
        "c2": float(c2),
        "critical": critical,
        "peers": chosen.peers,
        "latency": chosen.latency,
        "speed": chosen.speed,
        "best": best,
        "off_root": percent(volunteers.most_lost(2**0.5)),
        "off_two": percent(volunteers.most_lost(2)),
        "off_four": percent(volunteers.most_lost(4)),
        "filled": filled,
        "overlap_share": percent(float(busy / waiting)),
        "floor_factor": float(1 + 2 * (c1 / c2 / filled) ** 0.5),
        **_at_first(chosen, compared[compared.curve == curve]),
        **_of_all(points, rounds, compared),
    }


def _at_first(chosen: Any, compared: pd.DataFrame) -> dict:
    """What simulation finds on one curve with the settings asked for."""
    keys = ["latency", "speed", "departures"]
    asked = [getattr(chosen, key) for key in keys]
    here = compared[(compared[keys] == asked).all(axis=1)]
    return {
        "inside": bool(len(here)),
        "fastest": bool(len(here) and here.lost.iloc[0] == 0),
        "near": int(here.picked.iloc[0]) if len(here) else None,
        "slower": percent(here.lost.iloc[0]) if len(here) else None,
    }


def _of_all(points: pd.DataFrame, rounds: pd.DataFrame, compared: pd.DataFrame) -> dict:
    """What the formula's batch loses over all curves and settings."""
    smooth = points.assign(steps=points.c1 / points.batch_size + points.c2)
    line = volunteers.compared(smooth, rounds).lost.quantile(0.9)
    most = compared.lost.quantile(0.9)
    logs = np.log1p(compared.lost).groupby(compared.curve).mean()
    mean, low, high = scaling.mean_of(logs).row("time").values()
    return {
        "curves": int(compared.curve.nunique()),
        "lost": percent(most),
        "worst": percent(compared.lost.max()),
        "time": f"{mean:.2f}",
        "time_range": f"{low:.2f} to {high:.2f}",
        "exact": percent((compared.picked == compared.found).mean()),
        "line_lost": percent(line),
        "scatter": bool(line < most / 2),
    }


# --- tables ---------------------------------------------------------------------------------------


def by_departures(compared: pd.DataFrame) -> pd.DataFrame:
    """The formula's batch beside the fastest, by how often peers leave."""
    compared = compared.assign(ratio=compared.found / compared.best)
    rows = [
        {
            "a peer stays": f"{brief(60 / rate)} s on average" if rate else "for good",
            "settings": len(own),
            "fastest over formula’s batch": brief(own.ratio.median()),
            "5–95 %": span(own.ratio.quantile([0.05, 0.95])),
            "median loss": percent(own.lost.median()),
            "nine in ten lose at most": percent(own.lost.quantile(0.9)),
            "largest loss": percent(own.lost.max()),
        }
        for rate, own in compared.groupby("departures")
    ]
    return pd.DataFrame(rows)


def by_micro_batch(team: volunteers.Team, c1: float, c2: float, latency: float) -> pd.DataFrame:
    """The formula without and with the latency that unfinished micro-batches add."""
    found = volunteers.with_micro_batches(team, c1, c2, latency, MICRO_BATCHES)
    return pd.DataFrame(
        {
            "micro-batch": found.micro_batch,
            "lost a round (s)": found.unfinished.map(brief),
            "formula": found.plain.map(brief),
            "loses": found.lost.map(percent),
            "with added latency": found.corrected.map(brief),
            "it loses": found.lost_corrected.map(percent),
            "fastest simulated": found.found.astype(float).map(brief),
        }
    )
