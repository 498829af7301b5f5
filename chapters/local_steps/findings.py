"""What local steps save and cost, and what the page says of it."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from chapters.local_steps import local
from chapters.local_steps.local import DILOCO, INNER, MIDDLE, OFTEN, RARELY, SELDOM, SPARSE
from lib.analysis import replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.claim import Group, ratio, unmeasured
from lib.page import charts, tips, told
from lib.wording import percent, with_interval

GOAL = 0.05  # at which D1 and D2 are judged
POINT = ["way", "replicas", "local_steps", "batch_size", "density"]
COSTS = {"steps": "steps", "rounds": "rounds", "sent": "bytes sent by a replica"}
COLOURS = [charts.GUIDE, charts.BLUE, charts.TEAL, charts.ORANGE, charts.RED]
MANY = local.REPLICAS[-1]
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
    each = {"rounds": (f"rounds@{goal:g}", "min"), "bytes": ("bytes", "first")}
    found = trials.groupby([*POINT, "replicate"]).agg(**each).reset_index()
    most = found.batch_size.map(local.MOST_STEPS) // found.local_steps
    found = found.assign(met=found.rounds.notna(), rounds=found.rounds.fillna(most))
    found["steps"] = found.rounds * found.local_steps
    found["sent"] = found.rounds * found.bytes
    return found


def of(found: pd.DataFrame, point: tuple) -> pd.DataFrame:
    """The searches of a point, as POINT has it."""
    return found[(found[POINT] == list(point)).all(axis=1)]


def over(found: pd.DataFrame, one: tuple, other: tuple, what: str = "steps") -> Effect | None:
    """ln of what a point costs over another; None where either has no searches."""
    return replicates.over(of(found, one), of(found, other), what)


def groups(pairs: list[tuple[tuple, tuple]]) -> list[Group]:
    """Of each pair of points, steps of the first over the second, to GOAL; [] without records."""
    trials = local.LOCAL.results()
    found = searched(trials, GOAL)
    return [_group(found, *both) for both in pairs] if len(trials) else []


def _group(found: pd.DataFrame, one: tuple, other: tuple) -> Group:
    effect = over(found, one, other)
    missed = int((~pd.concat([of(found, one), of(found, other)]).met).sum())
    note = f"searches that miss the goal: {missed}" if missed else ""
    return ratio(words(one), effect, note=note) if effect else unmeasured(words(one), note=note)


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
    dense = found[(found.way != SPARSE) & found.local_steps.isin((OFTEN, SELDOM))]
    for (way, replicas, steps, size), own in dense.groupby(POINT[:4]):
        for what, name in COSTS.items() if way == DILOCO or replicas == 1 else ():
            ends = scaling.mean_of(np.log(own[what])).row().values()
            about = (line(way, replicas), f"rounds of {steps} steps", size, name)
            rows.append((*about, *ends, len(own), own.met.sum()))
    names = ["line", "round", "batch_size", "cost", "value", "low", "high", "searches", "met"]
    return pd.DataFrame(rows, columns=names)


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """A cost against batch size, a line per number of replicas; menus: cost and length of rounds."""
    names = [line(INNER, 1), *(line(DILOCO, count) for count in local.REPLICAS)]
    scale = charts.log(padding=12, base=None)
    y = alt.Y("value:Q", scale=scale, title="cost to the goal")
    colour = charts.by_name("line", dict(zip(names, COLOURS)), 2)
    base = alt.Chart(rows).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    tooltip = [tips.tip("line:N", "training"), tips.BATCH_SIZE, tips.tip("value:Q", "cost", ",.0f")]
    tooltip += [tips.tip("searches:Q", "searches"), tips.tip("met:Q", "of them met the goal")]
    what = charts.menu("cost", list(COSTS.values()), COSTS["steps"], "compare")
    often = charts.menu("round", list(rows["round"].unique()), rows["round"].iloc[0], "rounds")
    layers = charts.curve(base, y, scale, tooltip)
    return charts.sized(charts.controlled(layers, what, often), 340)


def sparse(found: pd.DataFrame) -> pd.DataFrame:
    """What the second figure draws: density (told), cost, value over DiLoCo's, value_low,
    value_high.
    """
    rows, dense = [], (DILOCO, MANY, SELDOM, MIDDLE, 1.0)
    for density in local.DENSITIES:
        for what in ("steps", "sent"):
            if effect := over(found, (SPARSE, *dense[1:4], density), dense, what):
                rows.append((percent(density), COSTS[what], *effect.row().values()))
    value = ["value", "value_low", "value_high"]
    return pd.DataFrame(rows, columns=["density", "cost", *value])


def sparse_chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps and bytes of the sparse form over DiLoCo's, a row per density."""
    scale = charts.log(padding=12, base=None)
    title = "over DiLoCo with whole changes"
    x, low = (alt.X(f"{name}:Q", scale=scale, title=title) for name in ("value", "value_low"))
    colours = {COSTS["steps"]: charts.BLUE, COSTS["sent"]: charts.ORANGE}
    y = alt.Y("density:N", title="share sent", sort=[percent(one) for one in local.DENSITIES])
    base = alt.Chart(rows).encode(y=y, yOffset="cost:N", color=charts.by_name("cost", colours, 1))
    tooltip = [tips.tip("density:N", "share sent"), tips.tip("cost:N", "cost")]
    tooltip += [tips.tip("value:Q", title, ".2f")]
    return charts.sized(alt.layer(*charts.ranges(base, "value", x, low, tooltip)), 240)


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
    for replicas in local.REPLICAS:
        for steps in (OFTEN, SELDOM, RARELY):
            row = {"replicas": replicas, "steps a round": steps}
            for size in local.SIZES:
                point = (steps, size, 1.0)
                effect = over(found, (DILOCO, replicas, *point), (INNER, 1, *point))
                row[f"batch size {size}"] = effect and with_interval(*effect.row().values())
            effect = critical(found, replicas) if steps == OFTEN else None
            row["critical batch size"] = effect and with_interval(*effect.row().values())
            rows.append(row)
    return pd.DataFrame(rows).fillna("—")


def predictions(found: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, beside what came."""
    rows = []
    for (one, other), (low, high) in RANGES.items():
        value = told.ratios({"": over(found, one, other)}, ())[""]
        rows.append((f"{words(one)}, over {words(other)}", low, high, value))
    value = told.ratios({"": critical(found, 1)}, ())[""]
    rows.append(("critical batch size of one replica, over Adam’s", *CRITICAL, value))
    return told.predictions(rows)


def findings(found: pd.DataFrame, trials: pd.DataFrame, goal: float) -> dict[str, object]:
    """All values of the page's sentences; found: of `searched`, trials: the records."""
    every = [(n, size) for n in (OFTEN, SELDOM) for size in local.SIZES]
    whole = (MANY, SELDOM, MIDDLE)
    effects = {
        "sparse_3": over(found, (SPARSE, *whole, 0.03), (DILOCO, *whole, 1.0)),
        "sparse_3_sent": over(found, (SPARSE, *whole, 0.03), (DILOCO, *whole, 1.0), "sent"),
        "sparse_1": over(found, (SPARSE, *whole, 0.01), (DILOCO, *whole, 1.0)),
        "critical": critical(found, 1),
    }
    pairs = {
        "alone": [((DILOCO, 1, *one, 1.0), (INNER, 1, *one, 1.0)) for one in every],
        "many_often": [_several(OFTEN, size) for size in local.SIZES],
        "many_seldom": [_several(SELDOM, size) for size in local.SIZES],
    }
    values = told.ratios(effects, ("critical",))
    for name, points in pairs.items():
        logs = [over(found, *both) for both in points]
        values[name] = [float(np.exp(one.value)) for one in logs if one]
    exchanged = [_exchanged(found, steps) for steps in (OFTEN, SELDOM)]
    best = trials.dropna(subset=f"rounds@{goal:g}").sort_values(f"rounds@{goal:g}", kind="stable")
    outer = best[best.way == DILOCO].groupby([*POINT, "replicate"]).outer_rate.first()
    return {
        **values,
        "exchanged": [float(np.exp(one.value)) for one in exchanged if one],
        "goal": percent(goal),
        "searches": int(trials.replicate.nunique()),
        "trials": int(trials.trial.max()) + 1,
        "missed": int((~found.met).sum()),
        "all": len(found),
        "outer_high": percent((outer > 0.9).mean()),
        "outer": float(outer.median()),
    }


def _several(steps: int, size: int) -> tuple[tuple, tuple]:
    """The point of MANY replicas, and that of one."""
    return (DILOCO, MANY, steps, size, 1.0), (DILOCO, 1, steps, size, 1.0)


def _exchanged(found: pd.DataFrame, steps: int) -> Effect | None:
    """ln of rounds of MANY replicas over steps of Adam alone, which exchanges at each."""
    own = of(found, (DILOCO, MANY, steps, MIDDLE, 1.0))
    alone = of(found, (INNER, 1, OFTEN, MIDDLE, 1.0))
    return replicates.over(own.assign(steps=own.rounds), alone, "steps")
