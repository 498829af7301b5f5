"""Steps and critical batch sizes with adapters, beside training in full."""

from __future__ import annotations

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
# As predicted, of two ranks; None: no prediction
CRITICAL = {
    (1, FULL): (1.5, 4.0),
    (4, FULL): (0.8, 2.0),
    (16, FULL): (0.5, 1.25),
    (64, FULL): (0.5, 1.25),
    (64, 1): (0.15, 0.8),
}
STEPS = {1: (2.0, 5.0), 4: (None, None), 16: (None, None), 64: (0.8, 2.0)}


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal, as of `arms.curves`; rows: of `CONTINUED`."""
    if not len(rows):
        return rows
    return rows.assign(workload="shakespeare", last_step=rows.batch_size.map(MOST_STEPS))


def curves(rows: pd.DataFrame, goal: float = GOALS[0]) -> dict[int, Curve]:
    """K* against batch size, by rank; rows: of `measured`."""
    return arms.curves(rows, "rank", goal)


def rates(rows: pd.DataFrame, goal: float, rank: int) -> Effect | None:
    """ln of the best rate at a rank over that in full, the mean over batch sizes."""
    searches = (arms.searches(rows, goal=goal, rank=number) for number in (rank, FULL))
    sizes = sorted(MOST_STEPS)
    logs = (replicates.means(search, "learning_rate", sizes, log=True) for search in searches)
    return replicates.compared(*logs)


def estimates(rows: pd.DataFrame, goal: float) -> list[arms.Row]:
    """Ratios beside what was predicted of them; rows: of `measured`."""
    by_rank = curves(rows, goal)
    cells = [
        (
            f"critical batch size, {NAMES[above]} over {NAMES[below]}",
            *ends,
            arms.ratio(by_rank, critical_ratio, above, below),
        )
        for (above, below), ends in CRITICAL.items()
    ]
    for rank, ends in STEPS.items():
        steps = arms.ratio(by_rank, mean_steps_ratio, rank, FULL)
        cells.append((f"steps, {NAMES[rank]} over in full", *ends, steps))
    what = "best rate, {} over in full".format
    return cells + [(what(NAMES[rank]), None, None, rates(rows, goal, rank)) for rank in RANKS]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Ratios at every goal, with predictions at the first; rows: of `measured`."""
    first, *goals = GOALS
    frame = arms.table(estimates(rows, first))
    frame = frame.rename(columns={told.MEASURED: f"to {first:g} nats"})
    for goal in goals:
        frame[f"to {goal:g} nats"] = [
            told.times(effect) for *_, effect in estimates(rows, goal)
        ]
    return frame


def groups(*pairs: tuple[int, int]) -> list[Group]:
    """Critical batch sizes of each rank over those of another; [] without records."""
    by_rank, judged = curves(measured(CONTINUED.results())), []
    for pair in pairs if by_rank else ():
        effect = arms.ratio(by_rank, critical_ratio, *pair)
        name = " over ".join(NAMES[rank] for rank in pair)
        judged.append(ratio(name, effect) if effect else unmeasured(name))
    return judged


def values(rows: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; rows: of `measured`."""
    by_rank, values = curves(rows), {}
    ratios = {"lora_critical": critical_ratio, "lora_steps": mean_steps_ratio}
    for name, estimate in ratios.items():
        effects = {rank: arms.ratio(by_rank, estimate, rank, FULL) for rank in RANKS}
        values[name] = [*told.ratios(effects).values()]
    return values


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, a line for each rank and one for training in full."""
    by_rank = curves(rows).items()
    parts = [curve.points().assign(trained=NAMES[rank]) for rank, curve in by_rank]
    points = pd.concat(parts)
    x = charts.batch_axis(points.batch_size, "batch size (windows of 64 characters)")
    shades = dict(zip(NAMES.values(), SHADES))
    colour = charts.by_name("trained", shades, 3)
    base = alt.Chart(points).encode(x=x, color=colour)
    scale = charts.log(10)
    y = alt.Y("steps:Q", title="steps to the goal", scale=scale)
    tooltip = [tips.tip("trained:N", "trained"), tips.BATCH_SIZE, tips.STEPS, *tips.ends()]
    tooltip.append(tips.SEARCHES)
    layers = charts.curve(base, y, scale, tooltip)
    return charts.sized(alt.layer(*layers), 340)
