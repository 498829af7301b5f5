"""What local steps followed by an outer step save and cost."""

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
from lib.claims.claim import Group
from lib.claims.claim import ratio as group
from lib.page import charts, estimates, tips
from lib.wording import exactly, percent, span

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
PREDICTED = {  # steps of the first arm over the second, predicted before measuring
    ALONE[1]: (0.6, 1.2),
    ALONE[4]: (1.0, 2.5),
    ((*PART, 0.01), WHOLE): (1.25, 3.0),
    ((*PART, 0.03), WHOLE): (0.9, 1.6),
}
ROWS = {  # ratios that no box shows, and the predicted range; None: nothing was predicted
    "8 × 5 steps at batch size 64, over 1 × 5": (
        (DILOCO, 8, 5, 64, 1.0),
        ALONE[1][0],
        (1.2, 2),
    ),
    "8 × 30 steps at 256, over 1 × 30": ((DILOCO, 8, 30, 256, 1.0), ALONE[5][0], (0.7, 1.2)),
    "8 × 100 steps at 64, over 8 × 5": (
        (DILOCO, 8, 100, 64, 1.0),
        (DILOCO, 8, 5, 64, 1.0),
        (3, 8),
    ),
    "sparse form, 10 %, over whole changes": ((*PART, 0.1), WHOLE, None),
    "sparse form, 100 %, over whole changes": ((*PART, 1.0), WHOLE, (0.6, 1.1)),
}


def searched(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search: ARM, replicate, steps and rounds to the goal, sent (bytes per replica up to
    the goal) and met.  A search that misses the goal counts as its last step.  trials: from LOCAL.
    """
    trials = trials.rename(columns={f"rounds@{GOAL:g}": "rounds"})
    rows = trials.groupby([*ARM, "replicate"], as_index=False)[["rounds", "bytes"]].min()
    last = rows.batch_size.map(measured.MOST_STEPS) // rows.local_steps
    rows = rows.assign(met=rows.rounds.notna(), rounds=rows.rounds.fillna(last))
    return rows.assign(steps=rows.rounds * rows.local_steps, sent=rows.rounds * rows.bytes)


def ratio(rows: pd.DataFrame, above: tuple, below: tuple, cost: str = "steps") -> Effect | None:
    """ln of one arm's cost over another's; a bound if searches of either miss the goal; rows: from
    `searched`.
    """
    pair = [arms.searches(rows, **dict(zip(ARM, arm))) for arm in (above, below)]
    effect, missed = replicates.over(*pair, cost), [not arm.met.all() for arm in pair]
    return effect and replace(effect, above=missed[0], below=missed[1])


def groups(pairs: list[tuple[tuple, tuple]]) -> list[Group]:
    """Steps of the first arm over the second, a group per pair; [] without records."""
    trials, judged = measured.LOCAL.results(), []
    rows = searched(trials) if len(trials) else trials
    for pair in pairs if len(trials) else ():
        searches = [arms.searches(rows, **dict(zip(ARM, arm))) for arm in pair]
        missed = sum((~arm.met).sum() for arm in searches)
        notes = [f"predicted: {exactly(PREDICTED[pair])}"] if pair in PREDICTED else []
        notes += [f"searches that miss the goal: {missed}"] if missed else []
        name = ", ".join(words(pair[0]))
        judged.append(group(name, ratio(rows, *pair), note="; ".join(notes)))
    return judged


def words(arm: tuple) -> list[str]:
    """An arm in words: the method, the rounds, the batch size."""
    way, replicas, steps, size, density = arm
    share = f", {percent(density)}" if way == SPARSE else ""
    return [f"{way}{share}", f"{replicas} × {steps} steps", f"batch size {size}"]


def values(rows: pd.DataFrame) -> dict[str, object]:
    """Values in the section's sentences; rows: from `searched`."""
    alone = {n: ratio(rows, *pair) for n, pair in enumerate(ALONE)}
    few = {f"few_{cost}": ratio(rows, (*PART, 0.03), WHOLE, cost) for cost in ("steps", "sent")}
    return {"local_alone": [*estimates.ratios(alone).values()], **estimates.ratios(few)}


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Ratios that no box shows, beside their predicted ranges; rows: from `searched`."""
    cells = [
        (what, exactly(ends) if ends else "—", ratio(rows, *pair))
        for what, (*pair, ends) in ROWS.items()
    ]
    alone = arms.searches(rows, replicas=1, local_steps=OFTEN)
    alone = alone.assign(steps=alone.steps.where(alone.met), last_step=alone.steps, goal=GOAL)
    curves = arms.curves(alone, "way", GOAL)
    critical = arms.ratio(curves, scaling.critical_ratio, DILOCO, INNER)
    cells.append(("critical batch size, one replica over Adam", span((0.7, 1.5)), critical))
    frame = pd.DataFrame(cells, columns=["what", "predicted", "measured"])
    return frame.assign(measured=frame.measured.map(estimates.times))


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, one line for Adam alone and one per number of replicas; a menu
    chooses the length of rounds.
    """
    names = {(INNER, 1): "Adam alone"}
    names |= {(DILOCO, n): f"{n} replica{'s' * (n > 1)}" for n in measured.REPLICAS}
    dense = rows[(rows.way != SPARSE) & (rows.local_steps != RARELY)]
    points = replicates.by_size(dense, "steps", by=("way", "replicas", "local_steps"))
    points["line"] = [names[key] for key in zip(points.way, points.replicas)]
    points["round"] = points.local_steps.map("rounds of {} steps".format)
    colour = charts.by_name("line", dict(zip(names.values(), COLOURS)), 2)
    base = alt.Chart(points).encode(x=charts.batch_axis(points.batch_size), color=colour)
    scale = charts.log(12)
    y = alt.Y("steps:Q", scale=scale, title="steps to the goal").axis(values=charts.DECADES)
    tooltip = [
        tips.tip("line:N", "training"),
        tips.BATCH_SIZE,
        tips.STEPS,
        tips.tip("searches:Q", "searches"),
    ]
    layers = charts.curve(base, y, scale, tooltip)
    rounds = [f"rounds of {steps} steps" for steps in (OFTEN, SELDOM)]
    menu = charts.menu("round", rounds, rounds[0], "rounds")
    return charts.sized(charts.controlled(layers, menu), 340)
