"""What local steps save and cost, and what the page says of it."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import numpy as np
import pandas as pd

from chapters.local_steps import experiments
from chapters.local_steps.experiments import DILOCO, INNER, MIDDLE, OFTEN, RARELY, SELDOM, SPARSE
from lib.analysis import replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio
from lib.page import charts, tips, told
from lib.wording import percent

GOAL = 0.05
POINT = ["way", "replicas", "local_steps", "batch_size", "density"]
COLOURS = [charts.GUIDE, charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED]
MANY = experiments.REPLICAS[-1]
WHOLE = (DILOCO, MANY, SELDOM, MIDDLE, 1.0)
# What is predicted of points, as POINT has them: steps of the first over the second, and the range
RANGES = {
    ((DILOCO, 1, 5, 64, 1.0), (INNER, 1, 5, 64, 1.0)): (0.6, 1.2),
    ((DILOCO, 1, 30, 64, 1.0), (INNER, 1, 30, 64, 1.0)): (1.0, 2.5),
    ((DILOCO, 8, 5, 64, 1.0), (DILOCO, 1, 5, 64, 1.0)): (1.2, 2.0),
    ((DILOCO, 8, 30, 256, 1.0), (DILOCO, 1, 30, 256, 1.0)): (0.7, 1.2),
    ((DILOCO, 8, 100, 64, 1.0), (DILOCO, 8, 5, 64, 1.0)): (3.0, 8.0),
    ((SPARSE, 8, 30, 64, 0.01), WHOLE): (1.25, 3.0),
    ((SPARSE, 8, 30, 64, 0.03), WHOLE): (0.9, 1.6),
    ((SPARSE, 8, 30, 64, 1.0), WHOLE): (0.6, 1.1),
}
CRITICAL = (0.7, 1.5)  # one replica's critical batch size over Adam's, rounds of 5


def searched(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search: steps and rounds to the goal, sent (bytes of a replica by then) and met.  A
    search that misses the goal counts as its last step.
    """
    if not len(trials):
        return trials
    goal = f"rounds@{GOAL:g}"
    own = trials.rename(columns={goal: "rounds"})
    found = own.groupby([*POINT, "replicate"])[["rounds", "bytes"]].min()
    found = found.reset_index()
    most = found.batch_size.map(experiments.MOST_STEPS) // found.local_steps
    found["met"] = found.rounds.notna()
    found["rounds"] = found.rounds.fillna(most)
    found["steps"] = found.rounds * found.local_steps
    found["sent"] = found.rounds * found.bytes
    return found


def of(found: pd.DataFrame, point: tuple) -> pd.DataFrame:
    """The searches of a point, as POINT has it."""
    return found[(found[POINT] == list(point)).all(axis=1)]


def over(found: pd.DataFrame, one: tuple, other: tuple, what: str = "steps") -> Effect | None:
    """ln of what a point costs over another; None where either has no searches."""
    return replicates.over(of(found, one), of(found, other), what)


def with_misses(found: pd.DataFrame, one: tuple, other: tuple, what: str) -> Effect | None:
    """As `over`, open on the side that searches which miss the goal leave unknown."""
    effect = over(found, one, other, what)
    above, below = (not of(found, point).met.all() for point in (one, other))
    return effect and replace(effect, above=above, below=below)


def groups(pairs: list[tuple[tuple, tuple]]) -> list[Group]:
    """Of each pair of points, steps of the first over the second; [] without records."""
    trials = experiments.LOCAL.results()
    found = searched(trials)
    return [_group(found, *both) for both in pairs] if len(trials) else []


def _group(found: pd.DataFrame, one: tuple, other: tuple) -> Group:
    missed = int((~pd.concat([of(found, one), of(found, other)]).met).sum())
    note = f"searches that miss the goal: {missed}" if missed else ""
    if bounded(found, one, other):
        note += f", all of the {one[0]}, so that the ratio is a bound from below"
    return ratio(words(one), with_misses(found, one, other, "steps"), note=note)


def bounded(found: pd.DataFrame, one: tuple, other: tuple) -> bool:
    """Whether no search of a point meets the goal and all of the other do: over it, its cost is a
    bound from below.
    """
    own = of(found, one).met
    others = of(found, other).met
    return bool(len(own) and len(others) and not own.any() and others.all())


def words(point: tuple) -> str:
    """A point as tables and groups name it."""
    way, replicas, steps, size, density = point
    how = f", {percent(density)}" if way == SPARSE else ""
    return f"{way}{how}, {replicas} × {steps} steps, batch size {size}"


def chart(found: pd.DataFrame) -> alt.LayerChart:
    """Steps against batch size, a line for Adam alone and one for each number of replicas; a menu
    chooses the length of rounds.
    """
    names = {(INNER, 1): "Adam alone"}
    names |= {(DILOCO, n): f"{n} replica{'s' * (n > 1)}" for n in experiments.REPLICAS}
    dense = found[(found.way != SPARSE) & (found.local_steps != RARELY)]
    rows = replicates.by_size(dense, "steps", by=("way", "replicas", "local_steps"))
    rows = rows.rename(columns={"steps_low": "low", "steps_high": "high"})
    rows["line"] = [names[key] for key in zip(rows.way, rows.replicas)]
    rows["round"] = [f"rounds of {steps} steps" for steps in rows.local_steps]
    scale = charts.log(padding=12, base=10)
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_name("line", dict(zip(names.values(), COLOURS)), 2),
    )
    y = alt.Y("steps:Q", scale=scale, title="steps to the goal")
    tooltip = [tips.tip("line:N", "training"), tips.BATCH_SIZE, tips.STEPS]
    tooltip.append(tips.tip("searches:Q", "searches"))
    rounds = [f"rounds of {steps} steps" for steps in (OFTEN, SELDOM)]
    layers = charts.curve(base, y, scale, tooltip)
    often = charts.menu("round", rounds, rounds[0], "rounds")
    return charts.sized(charts.controlled(layers, often), 340)


def sparse(found: pd.DataFrame) -> pd.DataFrame:
    """What the sparse form costs over DiLoCo, a row per share of the entries that is sent."""
    rows = []
    for density in experiments.DENSITIES:
        own = (SPARSE, *WHOLE[1:4], density)
        costs = (told.times(with_misses(found, own, WHOLE, what)) for what in ("steps", "sent"))
        rows.append((percent(density), *costs))
    return pd.DataFrame(rows, columns=["share sent", "steps", "bytes sent by a replica"])


def critical(found: pd.DataFrame) -> Effect | None:
    """ln of one replica's critical batch size over that of Adam alone, with rounds of OFTEN."""
    curves = []
    for way in (DILOCO, INNER):
        own = found[(found.way == way) & (found.replicas == 1) & (found.local_steps == OFTEN)]
        steps = {"steps": own.steps.where(own.met), "last_step": own.steps, "split": own.replicate}
        curves.append(scaling.curve_of(own.assign(**steps)))
    return scaling.critical_ratio(*curves)


def predictions(found: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came."""
    effects = {f"{words(a)}, over {words(b)}": with_misses(found, a, b, "steps") for a, b in RANGES}
    effects["critical batch size of one replica, over Adam’s"] = critical(found)
    rows = zip(effects.items(), [*RANGES.values(), CRITICAL], strict=True)
    return told.predictions((what, *at, told.interval(effect)) for (what, effect), at in rows)


def findings(found: pd.DataFrame, trials: pd.DataFrame) -> dict:
    """All values of the page's sentences; found: of `searched`, trials: the records."""
    few, fewer = ((SPARSE, *WHOLE[1:4], density) for density in (0.03, 0.01))
    effects = {
        "sparse_3": over(found, few, WHOLE),
        "sparse_3_sent": over(found, few, WHOLE, "sent"),
        "sparse_1": over(found, fewer, WHOLE),
        "critical": critical(found),
    }
    alone = [log for n in (OFTEN, SELDOM) for log in _effects(found, n, (DILOCO, 1), (INNER, 1))]
    many = [_effects(found, n, (DILOCO, MANY), (DILOCO, 1)) for n in (OFTEN, SELDOM)]
    column = f"rounds@{GOAL:g}"
    best = trials.dropna(subset=column).sort_values(column, kind="stable")
    outer = best[best.way == DILOCO].groupby([*POINT, "replicate"]).outer_rate.first()
    return {
        **told.ratios(effects, ("critical",)),
        "sparse_1_bounded": bounded(found, fewer, WHOLE),
        "alone": _ratios(alone),
        "alone_points": len(alone),
        "alone_open": sum(log.low <= 0 <= log.high for log in alone),
        "many_often": _ratios(many[0]),
        "many_seldom": _ratios(many[1]),
        "exchanged": _exchanged(found),
        "goal": percent(GOAL),
        "searches": int(trials.replicate.nunique()),
        "trials": int(trials.trial.max()) + 1,
        "outer": float(outer.median()),
    }


def _effects(found: pd.DataFrame, steps: int, one: tuple, other: tuple) -> list[Effect]:
    """ln of the steps of a way over another's, each with its replicas, at every batch size."""
    places = [(steps, size, 1.0) for size in experiments.SIZES]
    logs = (over(found, (*one, *at), (*other, *at)) for at in places)
    return [log for log in logs if log]


def _ratios(logs: list[Effect]) -> list[float]:
    return [float(np.exp(log.value)) for log in logs]


def _exchanged(found: pd.DataFrame) -> list[float]:
    """Rounds of MANY replicas over steps of Adam alone, which exchanges at each."""
    alone = (INNER, 1, OFTEN, MIDDLE, 1.0)
    logs = {n: over(found, (DILOCO, MANY, n, MIDDLE, 1.0), alone) for n in (OFTEN, SELDOM)}
    return [float(np.exp(log.value)) / n for n, log in logs.items() if log]
