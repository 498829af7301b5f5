"""Steps and critical batch sizes with adapters beside training in full, and what the page says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from chapters.lora import experiments
from chapters.lora.experiments import FULL, GOALS, MOST_STEPS, RANKS
from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect, critical_ratio, mean_steps_ratio
from lib.page import told
from lib.page.charts import BLUE, GUIDE, ORANGE, RED, TEAL

NAMES = {FULL: "in full"} | {rank: f"rank {rank}" for rank in RANKS}
COLOURS = dict(zip(NAMES.values(), (GUIDE, BLUE, TEAL, ORANGE, RED)))
LOW, *_, HIGH = RANKS
ENDS = min(MOST_STEPS) / 2, 2 * max(MOST_STEPS)  # of the axis of critical batch sizes
AXIS = "batch size (windows of 64 characters)"
# What was predicted before the records, and the range
RANGES = {
    "critical batch size at rank 1, over that in full": (1.5, 4.0),
    "critical batch size at rank 4, over that in full": (0.8, 2.0),
    "critical batch size at rank 16, over that in full": (0.5, 1.25),
    "critical batch size at rank 64, over that in full": (0.5, 1.25),
    "critical batch size at rank 64, over that at rank 1": (0.15, 0.8),
    "steps at rank 1, over those in full, mean over batch sizes": (2.0, 5.0),
    "steps at rank 64, over those in full, mean over batch sizes": (0.8, 2.0),
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


def over(known: dict[int, Curve], of: Callable, above: int, below: int = FULL) -> Effect | None:
    """A logarithm `of` the curves of two ranks; None where one is lacking."""
    both = {above, below} <= known.keys()
    return of(known[above], known[below]) if both else None


def bends(known: dict[int, Curve]) -> list[Effect | None]:
    """ln of each rank's critical batch size over that in full."""
    return [over(known, critical_ratio, rank) for rank in RANKS]


def points(known: dict[int, Curve]) -> pd.DataFrame:
    """What the first figure draws: the points of every curve, and trained (of NAMES)."""
    return pd.concat(curve.points().assign(trained=NAMES[rank]) for rank, curve in known.items())


def criticals(known: dict[int, Curve]) -> pd.DataFrame:
    """What the second figure draws: trained (of NAMES), searches, critical and its ends."""
    found = {NAMES[rank]: scaling.critical(curve) for rank, curve in known.items()}
    rows = pd.DataFrame([effect.row("critical") for effect in found.values()]).clip(*ENDS)
    return rows.assign(trained=list(found), searches=[effect.n for effect in found.values()])


def predictions(known: dict[int, Curve]) -> pd.DataFrame:
    """What was written down before the records, beside what came."""
    came = [*bends(known), over(known, critical_ratio, HIGH, LOW)]
    came += [over(known, mean_steps_ratio, rank) for rank in (LOW, HIGH)]
    rows = zip(RANGES.items(), came, strict=True)
    return told.predictions((what, *at, told.interval(effect)) for (what, at), effect in rows)


def findings(found: pd.DataFrame, goal: float) -> dict:
    """All values of the page's sentences; found: of `measured`."""
    known = curves(found, goal)
    bent, easy = bends(known), bends(curves(found, GOALS[-1]))
    means = [over(known, mean_steps_ratio, rank) for rank in RANKS]
    own = found[found.goal == goal]
    ends = [own[own.batch_size == of(MOST_STEPS)] for of in (min, max)]
    small, large = (beside_full(some, "steps") for some in ends)
    high = {"high_low": over(known, critical_ratio, HIGH, LOW)}
    return {
        **told.ratios(high, ("high_low",)),
        "high_low_open": bool(high["high_low"])
        and high["high_low"].low < 0 < high["high_low"].high,
        "bends": _ratios(bent),
        "slower": _ratios(means),
        "bend_low": told.times(bent[0]),
        "bend_high": told.times(bent[-1]),
        "rates": beside_full(own, "learning_rate"),
        "slower_small": small,
        "slower_large": large,
        "small_dearer": bool(small) and all(one > other for one, other in zip(small, large)),
        "under": sum(effect.high < 0 for effect in bent if effect),
        "over": sum(effect.low > 0 for effect in bent if effect),
        "bends_easy": _ratios(easy),
        "easy": f"{GOALS[-1]:g} nats",
        "goal": f"{goal:g} nats",
        "trials": int(found.trials.max()),
        "searches": found.replicate.nunique(),
        "planned": len(experiments.planned()),
        "lacking": len(experiments.CONTINUED.missing()),
        "missed": int(own.steps.isna().sum()),
    }


def _ratios(effects: list[Effect | None]) -> list[float]:
    """Those that are known."""
    return [np.exp(effect.value) for effect in effects if effect]


def beside_full(own: pd.DataFrame, value: str) -> list[float]:
    """Geometric means of a column at each rank over those in full, search by search."""
    logs = np.log(own.set_index(["replicate", "batch_size", "rank"])[value].unstack())
    found = logs.reindex(columns=NAMES).sub(logs[FULL], axis=0).mean().drop(FULL)
    return np.exp(found.dropna()).tolist()
