"""Steps with masks that move beside a mask that stays, and what the page says of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from chapters.moving_masks import experiments
from lib.analysis import scaling
from lib.analysis.scaling import Curve
from lib.page import told
from lib.wording import percent

NAMES = {
    "static": "stays",
    "steps": f"rewired every {experiments.STEPS} steps",
    "examples": f"rewired every {experiments.EXAMPLES} examples",
    "thinned": "thinned out",
}
MOVING = experiments.MASKS[1:]
# As predicted, logarithms: within which steps are alike, and beyond which ratios lie nowhere
ALIKE, FAR = math.log(1.25), math.log(1.5)


def measured() -> pd.DataFrame:
    """A row per search and goal on record; masked: which of NAMES, twice where that is the same."""
    found = experiments.MASKED.results()
    if not len(found):
        return found
    every = [(mask, size) for mask in NAMES for size in experiments.HORIZON]
    own = [(mask, experiments.search(mask, size, 1)) for mask, size in every]
    rows = [(mask, one.mask, one.every, one.batch_size) for mask, one in own]
    both = found.merge(pd.DataFrame(rows, columns=["masked", "mask", "every", "batch_size"]))
    both.attrs = found.attrs
    return both


def curves(found: pd.DataFrame, goal: float = experiments.GOALS[0]) -> dict[str, Curve]:
    """K* against batch size, by mask; found: of `measured`."""
    if not len(found):
        return {}
    own = found[found.goal == goal]
    last = own.batch_size.map(experiments.HORIZON) * experiments.LONGEST
    rows = own.assign(workload=experiments.Search.workload, split=own.replicate, last_step=last)
    return {mask: scaling.curve_of(some) for mask, some in rows.groupby("masked")}


def effects(known: dict[str, Curve], of: Callable, below: str = "static") -> dict:
    """`of` every mask that moves and the one below, by mask, where both are on record."""
    both = [mask for mask in MOVING if {mask, below} <= known.keys()]
    return {mask: of(known[mask], known[below]) for mask in both}


def ratios(known: dict[str, Curve]) -> pd.DataFrame:
    """What the figure draws: steps over those of the mask that stays."""
    rows = []
    for mask, own in effects(known, scaling.steps_ratio).items():
        for size, effect in zip(own.batch_size, own.effect):
            rows.append((NAMES[mask], size, *effect.row().values(), effect.n))
    columns = ["mask", "batch_size", "ratio", "low", "high", "searches"]
    return pd.DataFrame(rows, columns=columns)


def findings(found: pd.DataFrame, goal: float) -> dict[str, object]:
    """All values of the page's sentences; found: of `measured`."""
    known = curves(found, goal)
    means = effects(known, scaling.mean_steps_ratio)
    bends = effects(known, scaling.critical_ratio)
    apart = effects(known, scaling.steps_ratio, "examples").get("steps")
    ends = [None, None] if apart is None else apart.effect.iloc[[0, -1]].tolist()
    values, came = told.ratios(means, ()), held(means, bends, ends)
    thin = found[(found.masked == "thinned") & (found.goal == goal)].density
    return {
        **{f"steps_{mask}": told.times(means.get(mask)) for mask in MOVING},
        **{f"critical_{mask}": told.times(bends.get(mask)) for mask in MOVING},
        "timing_small": told.times(ends[0]),
        "timing_large": told.times(ends[1]),
        "rewired": [values[mask] for mask in ("steps", "examples") if mask in values],
        "thinned": values.get("thinned"),
        **_gradual(found, goal),
        "thin_least": percent(thin.min()),
        "thin_most": percent(thin.max()),
        "little": all(max(-own.low, own.high) <= ALIKE for own in means.values()),
        "ends_open": any(own.low <= 0 <= own.high for own in ends if own),
        "held": sum(came.values()),
        "failed": [what for what, held in came.items() if not held],
        "goal": percent(goal),
        "density": percent(experiments.DENSITY),
        "first": percent(experiments.FIRST),
        "last": percent(experiments.LAST),
        "drop": percent(experiments.DROP),
        "searches": int(found.replicate.nunique()),
        "trials": int(found.trials.max()),
    }


def _gradual(found: pd.DataFrame, goal: float) -> dict[str, object]:
    """How gradual pruning fares at the ends of the range of batch sizes, and at the other goals."""
    by_size = effects(curves(found, goal), scaling.steps_ratio).get("thinned")
    ends = [None, None] if by_size is None else by_size.ratio.iloc[[0, -1]].tolist()
    others = [curves(found, other) for other in sorted(set(found.goal) - {goal})]
    means = [effects(known, scaling.mean_steps_ratio).get("thinned") for known in others]
    bends = [effects(known, scaling.critical_ratio).get("thinned") for known in others]
    return {
        "thinned_small": ends[0],
        "thinned_large": ends[1],
        "thinned_elsewhere": [own.row("ratio")["ratio"] for own in means if own],
        "critical_elsewhere": list(map(told.times, bends)),
    }


def held(means: dict, bends: dict, ends: list) -> dict[str, bool]:
    """Which of the page's four predictions the estimates bear out, by what they are about."""
    pruned = "thinned" in means and abs(means["thinned"].value) <= ALIKE
    others = (own for mask, own in means.items() if mask != "thinned")
    rewired = all(own.value >= -ALIKE for own in others)
    apart = all(abs(own.value) < FAR for own in ends if own)
    bent = all(own.value <= FAR for own in bends.values() if own)
    return {
        "gradual pruning": pruned,
        "rewiring": rewired,
        "the ends of the range": apart,
        "critical batch sizes": bent,
    }
