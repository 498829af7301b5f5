"""What local steps with an outer step save and cost."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import pandas as pd

from chapters.disputed import arms
from chapters.disputed import local_steps_experiments as measured
from chapters.disputed.local_steps_experiments import (
    DILOCO,
    INNER,
    OFTEN,
    RARELY,
    SELDOM,
    SPARSE,
)
from lib.analysis import replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio
from lib.page import charts, tips, told
from lib.wording import percent

GOAL = 0.05
ARM = ["way", "replicas", "local_steps", "batch_size", "density"]
COLOURS = [charts.GUIDE, charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED]
WHOLE = (DILOCO, measured.REPLICAS[-1], SELDOM, measured.MIDDLE, 1.0)
PART = (SPARSE, *WHOLE[1:4])
# One replica beside Adam, in rounds of either length
ALONE = [
    ((DILOCO, 1, steps, size, 1.0), (INNER, 1, steps, size, 1.0))
    for steps in (OFTEN, SELDOM)
    for size in measured.SIZES
]
RANGES = (  # two arms, and the steps of the first over the second as predicted
    (*ALONE[1], 0.6, 1.2),
    (*ALONE[4], 1.0, 2.5),
    ((DILOCO, 8, 5, 64, 1.0), (DILOCO, 1, 5, 64, 1.0), 1.2, 2.0),
    ((DILOCO, 8, 30, 256, 1.0), (DILOCO, 1, 30, 256, 1.0), 0.7, 1.2),
    ((DILOCO, 8, 100, 64, 1.0), (DILOCO, 8, 5, 64, 1.0), 3.0, 8.0),
    ((*PART, 0.01), WHOLE, 1.25, 3.0),
    ((*PART, 0.03), WHOLE, 0.9, 1.6),
    ((*PART, 0.1), WHOLE, None, None),
    ((*PART, 1.0), WHOLE, 0.6, 1.1),
)


def searched(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search: ARM, replicate, steps and rounds to the goal, sent (bytes of a replica by
    then) and met.  A search that misses the goal counts as its last step.  trials: of LOCAL.
    """
    if not len(trials):
        return trials
    trials = trials.rename(columns={f"rounds@{GOAL:g}": "rounds"})
    found = trials.groupby([*ARM, "replicate"], as_index=False)[["rounds", "bytes"]].min()
    last = found.batch_size.map(measured.MOST_STEPS) // found.local_steps
    found = found.assign(met=found.rounds.notna(), rounds=found.rounds.fillna(last))
    sent = found.rounds * found.bytes
    return found.assign(steps=found.rounds * found.local_steps, sent=sent)


def searches(found: pd.DataFrame, arm: tuple) -> pd.DataFrame:
    """Those of an arm, as ARM has it."""
    return arms.searches(found, **dict(zip(ARM, arm)))


def over(found: pd.DataFrame, one: tuple, other: tuple, cost: str = "steps") -> Effect | None:
    """ln of what an arm costs over another, open on the side that searches which miss the goal
    leave unknown; found: of `searched`.
    """
    above, below = searches(found, one), searches(found, other)
    effect = replicates.over(above, below, cost)
    return effect and replace(effect, above=not above.met.all(), below=not below.met.all())


def critical(found: pd.DataFrame) -> Effect | None:
    """ln of one replica's critical batch size over that of Adam alone, in rounds of OFTEN."""
    rows = arms.searches(found, replicas=1, local_steps=OFTEN)
    steps = rows.steps.where(rows.met)
    known = arms.curves(rows.assign(steps=steps, last_step=rows.steps, goal=GOAL), "way", GOAL)
    return arms.over(known, scaling.critical_ratio, DILOCO, INNER)


def groups(pairs: list[tuple[tuple, tuple]]) -> list[Group]:
    """Of each pair of arms, steps of the first over the second; [] without records."""
    found = searched(measured.LOCAL.results())
    return [_group(found, *pair) for pair in pairs] if len(found) else []


def _group(found: pd.DataFrame, one: tuple, other: tuple) -> Group:
    missed = sum((~searches(found, arm).met).sum() for arm in (one, other))
    note = f"searches that miss the goal: {missed}" if missed else ""
    return ratio(words(one), over(found, one, other), note=note)


def parts(arm: tuple) -> list[str]:
    """An arm in words: the method, the rounds, the batch size."""
    way, replicas, steps, size, density = arm
    how = f", {percent(density)}" if way == SPARSE else ""
    return [f"{way}{how}", f"{replicas} × {steps} steps", f"batch size {size}"]


def words(one: tuple, other: tuple | None = None) -> str:
    """An arm as groups name it; beside another, of which is named what differs, as tables do."""
    name = ", ".join(parts(one))
    differs = [part for part in parts(other or one) if part not in parts(one)]
    return f"{name}, over {', '.join(differs)}" if other else name


def values(found: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; found: of `searched`."""
    alone = [over(found, *pair) for pair in ALONE]
    few = {f"few_{cost}": over(found, (*PART, 0.03), WHOLE, cost) for cost in ("steps", "sent")}
    return {
        "local_alone": [*told.ratios(dict(enumerate(alone))).values()],
        **told.ratios(few),
    }


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Ratios of steps beside what was predicted; found: of `searched`."""
    rows: list[arms.Row] = [
        (words(one, other), *ends, over(found, one, other)) for one, other, *ends in RANGES
    ]
    rows.append(("critical batch size of one replica, over Adam’s", 0.7, 1.5, critical(found)))
    return arms.table(rows)


def chart(found: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, a line for Adam alone and one for each number of replicas; a menu
    chooses the length of rounds.
    """
    names = {(INNER, 1): "Adam alone"}
    names |= {(DILOCO, n): f"{n} replica{'s' * (n > 1)}" for n in measured.REPLICAS}
    dense = found[(found.way != SPARSE) & (found.local_steps != RARELY)]
    rows = replicates.by_size(dense, "steps", by=("way", "replicas", "local_steps"))
    rows = rows.rename(columns={"steps_low": "low", "steps_high": "high"})
    rows["line"] = [names[key] for key in zip(rows.way, rows.replicas)]
    rows["round"] = [f"rounds of {steps} steps" for steps in rows.local_steps]
    colour = charts.by_name("line", dict(zip(names.values(), COLOURS)), 2)
    base = alt.Chart(rows).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    scale = charts.log(padding=12, base=10)
    y = alt.Y("steps:Q", scale=scale, title="steps to the goal")
    tooltip = [tips.tip("line:N", "training"), tips.BATCH_SIZE, tips.STEPS]
    tooltip.append(tips.tip("searches:Q", "searches"))
    rounds = [f"rounds of {steps} steps" for steps in (OFTEN, SELDOM)]
    menu = charts.menu("round", rounds, rounds[0], "rounds")
    return charts.sized(charts.controlled(charts.curve(base, y, scale, tooltip), menu), 340)
