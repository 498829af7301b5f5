"""Steps and critical batch sizes with adapters beside training in full, and what the page says."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.lora import experiments
from chapters.lora.experiments import FULL, GOALS, MOST_STEPS, RANKS
from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.page import charts, tips, told

NAMES = {FULL: "in full"} | {rank: f"rank {rank}" for rank in RANKS}
HUES = (charts.GUIDE, charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED)
COLOURS = dict(zip(NAMES.values(), HUES))
LOW, *_, HIGH = RANKS
# What was predicted before the records, by the name of a finding, and the range
RANGES = {
    "critical_1": ("critical batch size at rank 1, over that in full", 1.5, 4.0),
    "critical_4": ("critical batch size at rank 4, over that in full", 0.8, 2.0),
    "critical_16": ("critical batch size at rank 16, over that in full", 0.5, 1.25),
    "critical_64": ("critical batch size at rank 64, over that in full", 0.5, 1.25),
    "high_low": ("critical batch size at rank 64, over that at rank 1", 0.15, 0.8),
    "steps_1": ("steps at rank 1, over those in full, mean over batch sizes", 2.0, 5.0),
    "steps_64": ("steps at rank 64, over those in full, mean over batch sizes", 0.8, 2.0),
}


def measured() -> pd.DataFrame:
    """A row per search and goal on record."""
    return experiments.CONTINUED.results()


def curves(found: pd.DataFrame, goal: float = GOALS[0]) -> dict[int, Curve]:
    """K* against batch size, by rank; found: of `measured`."""
    if not len(found):
        return {}
    own = found[found.goal == goal]
    last = own.batch_size.map(MOST_STEPS)
    rows = own.assign(workload="shakespeare", split=own.replicate, last_step=last)
    return {rank: scaling.curve_of(some) for rank, some in rows.groupby("rank")}


def critical_ratio(known: dict[int, Curve], above: int, below: int) -> Effect | None:
    """ln of one rank's critical batch size over another's; None where too little is measured."""
    if not {above, below} <= known.keys():
        return None
    return scaling.critical_ratio(known[above], known[below])


def steps_ratio(known: dict[int, Curve], rank: int) -> Effect | None:
    """ln of a rank's steps over those in full, the mean over batch sizes."""
    if not {rank, FULL} <= known.keys():
        return None
    return scaling.mean_steps_ratio(known[rank], known[FULL])


def points(known: dict[int, Curve]) -> pd.DataFrame:
    """What the first figure draws: the points of every curve, and trained (of NAMES)."""
    rows = [curve.points().assign(trained=NAMES[rank]) for rank, curve in known.items()]
    return pd.concat(rows, ignore_index=True)


def steps_chart(known: dict[int, Curve]) -> alt.LayerChart:
    """Steps to the goal against batch size, a line for each rank and one for training in full."""
    rows = points(known)
    color = charts.by_name("trained", charts_of(rows), 3)
    base = alt.Chart(rows).encode(x=charts.batch_axis(rows.batch_size), color=color)
    scale = charts.log(10)
    y = alt.Y("steps:Q", title="steps to the goal", scale=scale)
    tooltip = [tips.tip("trained:N", "trained"), tips.BATCH_SIZE, tips.STEPS, tips.SEARCHES]
    return charts.sized(alt.layer(*charts.curve(base, y, scale, tooltip)), 340)


def charts_of(rows: pd.DataFrame) -> dict[str, str]:
    """The colours of those that are drawn, in the order of NAMES."""
    return {name: hue for name, hue in COLOURS.items() if name in set(rows.trained)}


def criticals(known: dict[int, Curve]) -> pd.DataFrame:
    """What the second figure draws: trained (of NAMES), critical, critical_low, critical_high and
    searches, of curves with three batch sizes or more.
    """
    rows = [
        {"trained": NAMES[rank], "searches": curve.n, **scaling.critical(curve).row("critical")}
        for rank, curve in known.items()
        if curve.met.sum() >= 3
    ]
    columns = ["trained", "searches", "critical", "critical_low", "critical_high"]
    return pd.DataFrame(rows, columns=columns)


def critical_chart(known: dict[int, Curve]) -> alt.LayerChart:
    """Critical batch sizes with their intervals, a row each, cut at the batch sizes measured."""
    rows = criticals(known)
    ends = min(MOST_STEPS) / 2, max(MOST_STEPS) * 2
    values = ["critical", "critical_low", "critical_high"]
    rows[values] = rows[values].clip(*ends)
    scale = charts.log(10, domain=list(ends))
    title = "critical batch size (examples)"
    axis = alt.Axis(values=sorted(MOST_STEPS), format=",")
    x = alt.X("critical:Q", title=title, scale=scale, axis=axis)
    y = alt.Y("trained:N", title=None, sort=list(NAMES.values()))
    hue = alt.Color("trained:N", scale=charts.among(rows.trained, COLOURS), legend=None)
    tooltip = [tips.tip("trained:N", "trained"), tips.tip("critical:Q", title, ",.1f")]
    tooltip += [*tips.ends("critical_low", "critical_high"), tips.tip("searches:Q", "searches")]
    low = alt.X("critical_low:Q", scale=scale)
    base = alt.Chart(rows).encode(y=y, color=hue)
    return charts.sized(alt.layer(*charts.ranges(base, "critical", x, low, tooltip)), 200)


def predictions(values: dict[str, object]) -> pd.DataFrame:
    """What was written down before the records, beside what came; values: of `findings`."""
    return told.predictions((*RANGES[name], values[name]) for name in RANGES)


def findings(found: pd.DataFrame, goal: float) -> dict[str, object]:
    """All values of the page's sentences; found: of `measured`."""
    known = curves(found, goal)
    bends = {rank: critical_ratio(known, rank, FULL) for rank in RANKS}
    means = {rank: steps_ratio(known, rank) for rank in RANKS}
    own = found[found.goal == goal]
    values = told.ratios({f"critical_{rank}": bends[rank] for rank in RANKS}, ())
    values |= told.ratios({f"steps_{rank}": means[rank] for rank in RANKS}, ())
    high = critical_ratio(known, HIGH, LOW)
    values |= told.ratios({"high_low": high}, ("high_low",))
    rates = {rank: rate_ratio(own, rank) for rank in RANKS}
    return {
        **values,
        "bends": [values[f"critical_{rank}"] for rank in RANKS if bends[rank]],
        "slower": [values[f"steps_{rank}"] for rank in RANKS if means[rank]],
        "bend_low": told.times(bends[LOW]),
        "bend_high": told.times(bends[HIGH]),
        "ends": ends_of(known),
        "rates": [rate for rate in rates.values() if rate],
        "under": sum(bool(effect and effect.high < 0) for effect in bends.values()),
        "ranks": len(RANKS),
        "goal": f"{goal:g} nats",
        "trials": int(found.trials.max()),
        "searches": int(found.replicate.nunique()),
        "planned": len(experiments.planned()),
        "lacking": len(experiments.CONTINUED.missing()),
        "missed": int(own.steps.isna().sum()),
    }


def ends_of(known: dict[int, Curve]) -> list[float]:
    """Steps at the highest rank over those in full, at the smallest and at the largest batch."""
    if not {HIGH, FULL} <= known.keys():
        return []
    table = scaling.steps_ratio(known[HIGH], known[FULL])
    return table.ratio.iloc[[0, -1]].tolist() if len(table) > 1 else []


def rate_ratio(own: pd.DataFrame, rank: int) -> float | None:
    """The geometric mean of the best rates at a rank over those in full, search by search."""
    table = own.pivot(index=["replicate", "batch_size"], columns="rank", values="learning_rate")
    if not {rank, FULL} <= set(table):
        return None
    logs = np.log(table[rank] / table[FULL]).dropna()
    return float(np.exp(logs.mean())) if len(logs) else None
