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
from lib.wording import brief, percent

GOAL = 0.05  # at which D1 and D2 are judged
POINT = ["way", "replicas", "local_steps", "batch_size", "density"]
COSTS = {"steps": "steps", "rounds": "rounds", "sent": "bytes sent by a replica"}
COLOURS = [charts.GUIDE, charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED]
MANY = experiments.REPLICAS[-1]
# What is predicted of points, as POINT has them: steps of the first over the second, and the range
RANGES = {
    ((DILOCO, 1, 5, 64, 1.0), (INNER, 1, 5, 64, 1.0)): (0.6, 1.2),
    ((DILOCO, 1, 30, 64, 1.0), (INNER, 1, 30, 64, 1.0)): (1.0, 2.5),
    ((DILOCO, 8, 5, 64, 1.0), (DILOCO, 1, 5, 64, 1.0)): (1.2, 2.0),
    ((DILOCO, 8, 30, 256, 1.0), (DILOCO, 1, 30, 256, 1.0)): (0.7, 1.2),
    ((DILOCO, 8, 100, 64, 1.0), (DILOCO, 8, 5, 64, 1.0)): (3.0, 8.0),
    ((SPARSE, 8, 30, 64, 0.01), (DILOCO, 8, 30, 64, 1.0)): (1.25, 3.0),
    ((SPARSE, 8, 30, 64, 0.03), (DILOCO, 8, 30, 64, 1.0)): (0.9, 1.6),
    ((SPARSE, 8, 30, 64, 1.0), (DILOCO, 8, 30, 64, 1.0)): (0.6, 1.1),
}
CRITICAL = (0.7, 1.5)  # one replica's critical batch size over Adam's, rounds of 5


def searched(trials: pd.DataFrame, goal: float) -> pd.DataFrame:
    """A row per search: steps and rounds to the goal, sent (bytes of a replica by then) and met.  A
    search that misses the goal counts as its last step.
    """
    if not len(trials):
        return trials
    found = trials.groupby([*POINT, "replicate"])[[f"rounds@{goal:g}", "bytes"]].min()
    found = found.set_axis(["rounds", "bytes"], axis=1).reset_index()
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


def with_misses(found: pd.DataFrame, one: tuple, other: tuple) -> Effect | None:
    """As `over`, open on the side that searches which miss the goal leave unknown."""
    effect = over(found, one, other)
    above, below = (not of(found, point).met.all() for point in (one, other))
    return effect and replace(effect, above=above, below=below)


def groups(pairs: list[tuple[tuple, tuple]]) -> list[Group]:
    """Of each pair of points, steps of the first over the second, to GOAL; [] without records."""
    trials = experiments.LOCAL.results()
    found = searched(trials, GOAL)
    return [_group(found, *both) for both in pairs] if len(trials) else []


def _group(found: pd.DataFrame, one: tuple, other: tuple) -> Group:
    missed = int((~pd.concat([of(found, one), of(found, other)]).met).sum())
    note = f"searches that miss the goal: {missed}" if missed else ""
    if bounded(found, one, other):
        note += f", all of the {one[0]}, so that the ratio is a bound from below"
    return ratio(words(one), over(found, one, other), note=note)


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


def line(way: str, replicas: int) -> str:
    """What the figure calls a way and its replicas."""
    return "Adam alone" if way == INNER else f"{replicas} replica{'s' if replicas > 1 else ''}"


def points(found: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: line, rounds, batch_size, cost, value (geometric mean), low, high,
    searches, met.
    """
    rows = []
    dense = found[(found.way != SPARSE) & (found.local_steps != RARELY)]
    for (way, replicas, steps, size), own in dense.groupby(POINT[:4]):
        about = line(way, replicas), f"rounds of {steps} steps", size
        for what, name in COSTS.items():
            ends = scaling.mean_of(np.log(own[what])).row().values()
            rows.append((*about, name, *ends, len(own), own.met.sum()))
    names = "line round batch_size cost value low high searches met"
    return pd.DataFrame(rows, columns=names.split())


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """A cost against batch size, a line per number of replicas; menus: cost and length of rounds."""
    names = [line(INNER, 1), *(line(DILOCO, count) for count in experiments.REPLICAS)]
    scale = charts.log(padding=12, base=10)
    base = alt.Chart(rows).encode(
        x=charts.batch_axis(rows.batch_size),
        color=charts.by_name("line", dict(zip(names, COLOURS)), 2),
    )
    y = alt.Y("value:Q", scale=scale, title="cost to the goal")
    tooltip = [
        tips.tip("line:N", "training"),
        tips.BATCH_SIZE,
        tips.tip("value:Q", "cost", ",.0f"),
        tips.tip("searches:Q", "searches"),
        tips.tip("met:Q", "of them met the goal"),
    ]
    what = charts.menu("cost", list(COSTS.values()), COSTS["steps"], "compare")
    rounds = list(rows["round"].unique())
    often = charts.menu("round", rounds, rounds[0], "rounds")
    layers = charts.curve(base, y, scale, tooltip)
    return charts.sized(charts.controlled(layers, what, often), 340)


def sparse(found: pd.DataFrame) -> pd.DataFrame:
    """What the sparse form costs over DiLoCo, a row per share of the entries that is sent; "at
    least" where no search meets the goal.
    """
    rows = []
    dense = (DILOCO, MANY, SELDOM, MIDDLE, 1.0)
    for density in experiments.DENSITIES:
        row = {"share sent": percent(density)}
        own = (SPARSE, *dense[1:4], density)
        for what in ("steps", "sent"):
            row[COSTS[what]] = _cost(found, own, dense, what)
        rows.append(row)
    return pd.DataFrame(rows)


def _cost(found: pd.DataFrame, one: tuple, other: tuple, what: str) -> str:
    """What a point costs over another, told, as a bound where it is one."""
    effect = over(found, one, other, what)
    if bounded(found, one, other):
        return f"at least {brief(float(np.exp(effect.value)))}"
    return told.times(effect)


def curve(found: pd.DataFrame, way: str, replicas: int) -> scaling.Curve:
    """Steps against batch size with rounds of OFTEN."""
    own = found[(found.way == way) & (found.replicas == replicas) & (found.local_steps == OFTEN)]
    steps = {"steps": own.steps.where(own.met), "last_step": own.steps, "split": own.replicate}
    return scaling.curve_of(own.assign(**steps))


def critical(found: pd.DataFrame, replicas: int) -> Effect | None:
    """ln of replicas' critical batch size over that of Adam alone."""
    return scaling.critical_ratio(curve(found, DILOCO, replicas), curve(found, INNER, 1))


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Steps to the goal over those of Adam alone that is looked at as often, a row per number of
    replicas and length of a round; and the critical batch size over Adam's.
    """
    rows = []
    for replicas in experiments.REPLICAS:
        for steps in (OFTEN, SELDOM, RARELY):
            row = {"replicas": replicas, "steps a round": steps}
            for size in experiments.SIZES:
                point = (steps, size, 1.0)
                effect = over(found, (DILOCO, replicas, *point), (INNER, 1, *point))
                row[f"batch size {size}"] = told.times(effect)
            effect = critical(found, replicas) if steps == OFTEN else None
            rows.append({**row, "critical batch size": told.times(effect)})
    return pd.DataFrame(rows)


def predictions(found: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came."""
    effects = {f"{words(a)}, over {words(b)}": with_misses(found, a, b) for a, b in RANGES}
    effects["critical batch size of one replica, over Adam’s"] = critical(found, 1)
    rows = zip(effects.items(), [*RANGES.values(), CRITICAL], strict=True)
    return told.predictions((what, *at, told.interval(effect)) for (what, effect), at in rows)


def findings(found: pd.DataFrame, trials: pd.DataFrame, goal: float) -> dict:
    """All values of the page's sentences; found: of `searched`, trials: the records."""
    often, seldom = ([(n, size) for size in experiments.SIZES] for n in (OFTEN, SELDOM))
    whole = (DILOCO, MANY, SELDOM, MIDDLE, 1.0)
    few = (SPARSE, *whole[1:4], 0.03)
    fewer = (*few[:4], 0.01)
    effects = {
        "sparse_3": over(found, few, whole),
        "sparse_3_sent": over(found, few, whole, "sent"),
        "sparse_1": over(found, fewer, whole),
        "critical": critical(found, 1),
    }
    column = f"rounds@{goal:g}"
    best = trials.dropna(subset=column).sort_values(column, kind="stable")
    outer = best[best.way == DILOCO].groupby([*POINT, "replicate"]).outer_rate.first()
    return {
        **told.ratios(effects, ("critical",)),
        "sparse_1_bounded": bounded(found, fewer, whole),
        **_alone(found, often + seldom),
        "many_often": _ratios(found, often, (DILOCO, MANY), (DILOCO, 1)),
        "many_seldom": _ratios(found, seldom, (DILOCO, MANY), (DILOCO, 1)),
        "exchanged": _exchanged(found),
        "goal": percent(goal),
        "searches": int(trials.replicate.nunique()),
        "trials": int(trials.trial.max()) + 1,
        "missed": int((~found.met).sum()),
        "all": len(found),
        "outer_high": percent((outer > 0.9).mean()),
        "outer": float(outer.median()),
    }


def _alone(found: pd.DataFrame, places: list[tuple]) -> dict:
    """One replica over Adam alone, and whether rounds of RARELY can tell them apart."""
    logs = _effects(found, places, (DILOCO, 1), (INNER, 1))
    rarely = found[(found.local_steps == RARELY) & (found.replicas == 1)]
    return {
        "alone": [float(np.exp(log.value)) for log in logs],
        "alone_points": len(logs),
        "alone_open": sum(log.low <= 0 <= log.high for log in logs),
        "rarely_one": bool(len(rarely) and (rarely.rounds == 1).all()),
    }


def _effects(found: pd.DataFrame, places: list[tuple], one: tuple, other: tuple) -> list[Effect]:
    """ln of the steps of a way over another's, each with its replicas, at local steps and batch
    sizes.
    """
    logs = [over(found, (*one, *at, 1.0), (*other, *at, 1.0)) for at in places]
    return [log for log in logs if log]


def _ratios(found: pd.DataFrame, places: list[tuple], one: tuple, other: tuple) -> list[float]:
    """The same, as ratios."""
    return [float(np.exp(log.value)) for log in _effects(found, places, one, other)]


def _exchanged(found: pd.DataFrame) -> list[float]:
    """Rounds of MANY replicas over steps of Adam alone, which exchanges at each."""
    alone = (INNER, 1, OFTEN, MIDDLE, 1.0)
    logs = {n: over(found, (DILOCO, MANY, n, MIDDLE, 1.0), alone) for n in (OFTEN, SELDOM)}
    return [float(np.exp(log.value)) / n for n, log in logs.items() if log]
