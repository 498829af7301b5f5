"""Steps with masks that move, beside a mask that stays."""

from __future__ import annotations

import functools
import math

import pandas as pd

from chapters.disputed import arms
from chapters.disputed import masks_experiments as searches
from chapters.disputed.masks_experiments import GOALS, HORIZON, MASKS, Search
from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect, critical_ratio, mean_steps_ratio
from lib.claims.claim import Group, ratio
from lib.claims.names import title
from lib.page import told
from lib.wording import percent

STAYS = MASKS[0]
NAMES = {
    "steps": f"rewired every {searches.STEPS} steps",
    "examples": f"rewired every {searches.EXAMPLES} examples",
    "thinned": "thinned out",
}
# Predicted of steps over those of the mask that stays
RANGES = {"steps": (0.8, math.inf), "examples": (0.8, math.inf), "thinned": (0.8, 1.25)}


def measured(found: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal, as of `arms.curves`; masked: which of MASKS, twice where that is
    the same; found: of `searches.MASKED`.
    """
    if not len(found):
        return found
    every = [(mask, searches.search(mask, size, 1)) for mask in MASKS for size in HORIZON]
    rows = [(mask, one.mask, one.every, one.batch_size) for mask, one in every]
    both = found.merge(pd.DataFrame(rows, columns=["masked", "mask", "every", "batch_size"]))
    last = both.batch_size.map(HORIZON) * searches.LONGEST
    return both.assign(workload=Search.workload, last_step=last)


def curves(found: pd.DataFrame, goal: float = GOALS[0]) -> dict[str, Curve]:
    """K* against batch size, by mask; found: of `measured`."""
    return arms.curves(found, "masked", goal)


def at_end(one: Curve, other: Curve, place: int) -> Effect:
    """ln of the ratio of steps at the smallest (0) or the largest (-1) batch size."""
    return scaling.steps_ratio(one, other).effect.iloc[place]


def rows(found: pd.DataFrame, goal: float) -> list[arms.Row]:
    """Ratios beside what was predicted of them; found: of `measured`."""
    over = functools.partial(arms.over, curves(found, goal))
    every = [
        (f"steps, {NAMES[mask]}", *ends, over(mean_steps_ratio, mask, STAYS))
        for mask, ends in RANGES.items()
    ]
    every += [
        (f"critical batch size, {name}", 0, 1.5, over(critical_ratio, mask, STAYS))
        for mask, name in NAMES.items()
    ]
    for word, place in (("smallest", 0), ("largest", -1)):
        at = functools.partial(at_end, place=place)
        what = f"steps at the {word} batch, {NAMES['steps']}, over {NAMES['examples']}"
        every.append((what, 1 / 1.5, 1.5, over(at, "steps", "examples")))
    return every


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Ratios at every goal; found: of `measured`."""
    goals = {goal: f"to {percent(goal)} error" for goal in GOALS}
    return arms.by_goal(functools.partial(rows, found), goals)


def groups(*rows: tuple[str, str, str]) -> list[Group]:
    """A row for the name of a mask, and two masks: the steps of the first over those of the second,
    the mean over batch sizes.
    """
    known = curves(measured(searches.MASKED.results()))
    effects = {name: arms.over(known, mean_steps_ratio, *pair) for name, *pair in rows}
    work = title(Search.workload)
    return [ratio(f"{name}, {work}", effect) for name, effect in effects.items() if effect]


def values(found: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; found: of `measured`."""
    known = curves(found)
    means = {mask: arms.over(known, mean_steps_ratio, mask, STAYS) for mask in NAMES}
    steps = told.ratios(means, ())
    return {"thinned": steps["thinned"], "rewired": [steps["steps"], steps["examples"]]}
