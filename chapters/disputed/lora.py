"""Steps and critical batch sizes with adapters, compared with full training."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from chapters.disputed import arms
from chapters.disputed.lora_experiments import CONTINUED, FULL, GOALS, MOST_STEPS, RANKS
from lib.analysis import replicates
from lib.analysis.scaling import Curve, Effect, critical_ratio, mean_steps_ratio
from lib.claims.claim import Group, ratio, unmeasured
from lib.page import charts, tips
from lib.wording import exactly

NAMES = {FULL: "in full"} | {rank: f"rank {rank}" for rank in RANKS}
SHADES = (charts.GUIDE, charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED)
PREDICTED = {  # range of the ratio of critical batch sizes at two ranks
    (1, FULL): (1.5, 4.0),
    (4, FULL): (0.8, 2.0),
    (16, FULL): (0.5, 1.25),
    (64, FULL): (0.5, 1.25),
    (64, 1): (0.15, 0.8),
}


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal, as `arms.curves` takes them; rows: from `CONTINUED`."""
    if not len(rows):
        return rows
    return rows.assign(workload="shakespeare", last_step=rows.batch_size.map(MOST_STEPS))


def curves(rows: pd.DataFrame, goal: float = GOALS[0]) -> dict[int, Curve]:
    """K* against batch size, by rank; rows: from `measured`."""
    return arms.curves(rows, "rank", goal)


def rates(rows: pd.DataFrame, rank: int) -> Effect | None:
    """ln of the best rate at a rank over that of full training, the mean over batch sizes."""
    searches = (arms.searches(rows, goal=GOALS[0], rank=number) for number in (rank, FULL))
    sizes = sorted(MOST_STEPS)
    logs = (replicates.means(search, "learning_rate", sizes) for search in searches)
    return replicates.compared(*logs)


def groups(*pairs: tuple[int, int]) -> list[Group]:
    """Ratios of critical batch sizes, a group per pair of ranks; [] without records."""
    by_rank, judged = curves(measured(CONTINUED.results())), []
    for pair in pairs if by_rank else ():
        effect = arms.ratio(by_rank, critical_ratio, *pair)
        name = " over ".join(NAMES[rank] for rank in pair)
        note = f"predicted: {exactly(PREDICTED[pair])}" if pair in PREDICTED else ""
        judged.append(ratio(name, effect, note=note) if effect else unmeasured(name))
    return judged


def values(rows: pd.DataFrame) -> dict[str, object]:
    """Values in the section's sentences, a ratio for each rank, and lora_clear, at how many critical
    batch sizes are clearly larger; rows: from `measured`.
    """
    hardest, easiest = curves(rows), curves(rows, GOALS[-1])
    effects = {
        "lora_critical": [arms.ratio(hardest, critical_ratio, rank, FULL) for rank in RANKS],
        "lora_easiest": [arms.ratio(easiest, critical_ratio, rank, FULL) for rank in RANKS],
        "lora_steps": [arms.ratio(hardest, mean_steps_ratio, rank, FULL) for rank in RANKS],
        "lora_rates": [rates(rows, rank) for rank in RANKS],
    }
    ratios = {name: [e and math.exp(e.value) for e in each] for name, each in effects.items()}
    return ratios | {"lora_clear": sum(e.low > 0 for e in effects["lora_critical"] if e)}


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, one line per rank and one for full training."""
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
