"""Steps and critical batch sizes with adapters, beside training in full."""

from __future__ import annotations

import functools

import altair as alt
import pandas as pd

from chapters.disputed import arms
from chapters.disputed.lora_experiments import CONTINUED, FULL, GOALS, MOST_STEPS, RANKS
from lib.analysis import replicates
from lib.analysis.scaling import Curve, Effect, critical_ratio, mean_steps_ratio
from lib.claims.claim import Group, ratio, unmeasured
from lib.page import charts, tips, told

NAMES = {FULL: "in full"} | {rank: f"rank {rank}" for rank in RANKS}
SHADES = (charts.GUIDE, charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED)
LOW, *_, HIGH = RANKS
# As predicted, of two ranks; None: no prediction
CRITICAL = {
    (1, FULL): (1.5, 4.0),
    (4, FULL): (0.8, 2.0),
    (16, FULL): (0.5, 1.25),
    (64, FULL): (0.5, 1.25),
    (HIGH, LOW): (0.15, 0.8),
}
STEPS = {1: (2.0, 5.0), 4: (None, None), 16: (None, None), 64: (0.8, 2.0)}


def measured(found: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal, as of `arms.curves`; found: of `CONTINUED`."""
    if not len(found):
        return found
    return found.assign(workload="shakespeare", last_step=found.batch_size.map(MOST_STEPS))


def curves(found: pd.DataFrame, goal: float = GOALS[0]) -> dict[int, Curve]:
    """K* against batch size, by rank; found: of `measured`."""
    return arms.curves(found, "rank", goal)


def rates(found: pd.DataFrame, goal: float, rank: int) -> Effect | None:
    """ln of the best rate at a rank over that in full, the mean over batch sizes."""
    logs = [
        replicates.means(own, "learning_rate", sorted(MOST_STEPS), log=True)
        for own in (arms.searches(found, goal=goal, rank=one) for one in (rank, FULL))
    ]
    return replicates.compared(*logs)


def rows(found: pd.DataFrame, goal: float) -> list[arms.Row]:
    """Ratios beside what was predicted of them; found: of `measured`."""
    over = functools.partial(arms.over, curves(found, goal))
    every = []
    for (one, other), ends in CRITICAL.items():
        what = f"critical batch size, {NAMES[one]} over {NAMES[other]}"
        every.append((what, *ends, over(critical_ratio, one, other)))
    for rank, ends in STEPS.items():
        what = f"steps, {NAMES[rank]} over in full"
        every.append((what, *ends, over(mean_steps_ratio, rank, FULL)))
    for rank in RANKS:
        what = f"best rate, {NAMES[rank]} over in full"
        every.append((what, None, None, rates(found, goal, rank)))
    return every


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Ratios at every goal; found: of `measured`."""
    goals = {goal: f"to {goal:g} nats" for goal in GOALS}
    return arms.by_goal(functools.partial(rows, found), goals)


def groups(*pairs: tuple[int, int]) -> list[Group]:
    """Critical batch sizes of each rank over those of another; [] without records."""
    known, rows = curves(measured(CONTINUED.results())), []
    for pair in pairs if known else ():
        effect = arms.over(known, critical_ratio, *pair)
        name = " over ".join(NAMES[rank] for rank in pair)
        rows.append(ratio(name, effect) if effect else unmeasured(name))
    return rows


def values(found: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; found: of `measured`."""
    known, values = curves(found), {}
    ratios = {
        "lora_critical": critical_ratio,
        "lora_steps": mean_steps_ratio,
    }
    for name, of in ratios.items():
        effects = {rank: arms.over(known, of, rank, FULL) for rank in RANKS}
        values[name] = [*told.ratios(effects).values()]
    return values


def chart(found: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, a line for each rank and one for training in full."""
    rows = pd.concat(
        curve.points().assign(trained=NAMES[rank]) for rank, curve in curves(found).items()
    )
    x = charts.batch_axis(rows.batch_size, "batch size (windows of 64 characters)")
    colour = charts.by_name("trained", dict(zip(NAMES.values(), SHADES)), 3)
    base = alt.Chart(rows).encode(x=x, color=colour)
    scale = charts.log(10)
    y = alt.Y("steps:Q", title="steps to the goal", scale=scale)
    tooltip = [tips.tip("trained:N", "trained"), tips.BATCH_SIZE, tips.STEPS, *tips.ends()]
    layers = charts.curve(base, y, scale, [*tooltip, tips.SEARCHES])
    return charts.sized(alt.layer(*layers), 340)
