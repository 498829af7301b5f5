"""What spiking costs in steps and in time, and how sparse it is, beside rectifiers: what the page
says as numbers, and its tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from chapters.spiking import experiments
from chapters.spiking.experiments import (
    BATCH_SIZES,
    CNN,
    CNN_SIZES,
    FEW,
    GOALS,
    JUDGED,
    LONGER,
    MORE,
    PRUNED,
    TIME,
)
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import charts, told
from lib.wording import brief, percent, with_interval

NETWORKS = {
    0: "rectifiers",
    TIME: f"spikes, {TIME} time steps",
    LONGER: f"spikes, {LONGER} time steps",
}
COLOURS = dict(zip(NETWORKS.values(), (charts.BLUE, charts.ORANGE, charts.PURPLE), strict=True))
ACTIVE, IDLE = {0: "on", TIME: "firing"}, {0: "never on", TIME: "silent"}
ENDS = {"steps_low": "low", "steps_high": "high"}
SMALL, *_, LARGE = BATCH_SIZES
SPARSITY, PRUNED_SIZE = PRUNED["sparsity"], PRUNED["batch_size"]
RANGES = {  # as predicted before the records
    "steps_over": ("steps of spikes over rectifiers", 0.5, 2),
    "small_over": (f"the same, batch size {SMALL}", 1, np.inf),
    "large_over": (f"the same, batch size {LARGE:,}", 0, 1),
    "rate_over": ("firing over rectifiers on", 0, 0.5),
    "silent_over": ("silent units, over rectifiers never on", 1, np.inf),
    "longer_steps": (f"steps, {LONGER} over {TIME} time steps", 1 / 1.5, 1.5),
    "pruned_over": ("what pruning costs spikes, over rectifiers", 1, np.inf),
    "cnn_steps": ("CNN: steps of spikes over rectifiers", 0.5, 2),
    "cnn_rate": ("CNN: firing over rectifiers on", 0, 0.8),
    "longer_more": (
        f"steps, {LONGER} over {TIME} time steps, batch size {MORE[0]}",
        1 / 1.5,
        1.5,
    ),
}


def results() -> pd.DataFrame:
    """All that is on record: a row per search and goal, as of `experiments.Search.measure`."""
    columns = "time sparsity batch_size replicate model goal steps rate silent first".split()
    found = experiments.SPIKES.results()
    return found if len(found) else found.reindex(columns=columns)


def at_goal(
    rows: pd.DataFrame, time: int, sparsity: float = 0.0, model: str = "mlp"
) -> pd.DataFrame:
    """The searches of these networks that met the goal they are compared at."""
    chosen = (rows.time == time) & (rows.sparsity == sparsity) & (rows.model == model)
    return rows[chosen & (rows.goal == JUDGED[model])].dropna(subset="steps")


def over(
    rows: pd.DataFrame,
    value: str,
    above: tuple = (TIME,),
    below: tuple = (0,),
    sizes: Sequence[int] = BATCH_SIZES,
) -> Effect | None:
    """ln of a column's ratio, the mean over these batch sizes, of two networks as `at_goal` takes
    them; rows: of `results`.
    """
    pair = (at_goal(rows, *network) for network in (above, below))
    return replicates.compared(*(replicates.means(own, value, sizes, log=True) for own in pair))


def findings(rows: pd.DataFrame, times: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; rows: of `results`, times: of `SpikingTimes`."""
    plain, sparse, one = (0, SPARSITY), (TIME, SPARSITY), [PRUNED_SIZE]
    both = [(time, 0.0, "cnn") for time in (TIME, 0)]
    longer = (LONGER,), (TIME,)
    effects = {
        "steps_over": over(rows, "steps"),
        "small_over": over(rows, "steps", sizes=[SMALL]),
        "large_over": over(rows, "steps", sizes=[LARGE]),
        "rate_over": over(rows, "rate"),
        "longer_steps": over(rows, "steps", *longer, FEW),
        "longer_rate": over(rows, "rate", *longer, FEW),
        "longer_more": over(rows, "steps", *longer, MORE),
        "plain_pruned": over(rows, "steps", plain, sizes=one),
        "spiking_pruned": over(rows, "steps", sparse, (TIME,), one),
        "cnn_steps": over(rows, "steps", *both, CNN_SIZES),
        "cnn_small": over(rows, "steps", *both, CNN_SIZES[:1]),
        "cnn_large": over(rows, "steps", *both, CNN_SIZES[-1:]),
        "cnn_rate": over(rows, "rate", *both, CNN_SIZES),
    }
    values = told.ratios(effects, ("steps_over", "rate_over", "cnn_steps"))
    ratio, first = values["rate_over"], mean(rows, TIME, "first")
    return {
        **values,
        "slow_small": slower(times, TIME, SMALL),
        "slow_large": slower(times, TIME, LARGE),
        "slower_small": slower(times, LONGER, SMALL),
        "slower_large": slower(times, LONGER, LARGE),
        "goal": percent(GOALS[0]),
        "time": TIME,
        "longer": LONGER,
        "searches": effects["rate_over"].n if effects["rate_over"] else None,
        "planned": len(experiments.REPLICATES),
        "trials": experiments.Search(TIME, SMALL).trials,
        "small": SMALL,
        "large": LARGE,
        "rate": _percent(mean(rows, TIME, "rate")),
        "on": _percent(mean(rows, 0, "rate")),
        "summed": ratio and TIME * ratio,
        "uses": first and TIME * first,
        "silent": _percent(mean(rows, TIME, "silent")),
        "never_on": _percent(mean(rows, 0, "silent")),
        "silent_small": _percent(mean(rows, TIME, "silent", [SMALL])),
        "silent_large": _percent(mean(rows, TIME, "silent", [LARGE])),
        "sparsity": percent(SPARSITY),
        "pruned_size": PRUNED_SIZE,
        "pruned_steps": PRUNED["max_steps"],
        "pruned_searches": int((rows.sparsity > 0).sum() / 2 / len(GOALS)),
        "plain_met": len(at_goal(rows, *plain)),
        "spiking_met": len(at_goal(rows, *sparse)),
        "few": [f"{size:,}" for size in FEW],
        "more": MORE[0],
        "cnn_goal": percent(JUDGED["cnn"]),
        "cnn_searches": effects["cnn_steps"].n if effects["cnn_steps"] else 0,
        "cnn_trials": CNN["trials"],
        "cnn_first": CNN_SIZES[0],
        "cnn_last": CNN_SIZES[-1],
    }


def mean(
    rows: pd.DataFrame, time: int, value: str, sizes: Sequence[int] = BATCH_SIZES
) -> float | None:
    """The mean of a column over dense searches and these batch sizes; None of none."""
    found = replicates.means(at_goal(rows, time), value, sizes)
    return float(found.mean()) if len(found) else None


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{brief(100 * share)}\u00a0%"


def slower(times: pd.DataFrame, time: int, size: int) -> float | None:
    """Seconds of a gradient of so many time steps over those of rectifiers; None: not timed."""
    if times.empty:
        return None
    seconds = times[times.batch_size == size].set_index("time").seconds
    return float(seconds[time] / seconds[0])


def clock(times: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds of a gradient with their range: a row per batch size, a column per network."""
    rows = {}
    for one in times.itertuples():
        ends = (1000 * seconds for seconds in (one.seconds, one.low, one.high))
        row = rows.setdefault(one.batch_size, {"batch size": one.batch_size})
        row[NETWORKS[one.time]] = with_interval(*ends)
    return pd.DataFrame(rows.values())


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps, their interval and searches of every dense network, one below the other."""
    found = [
        replicates.by_size(at_goal(rows, time), "steps").assign(network=name)
        for time, name in NETWORKS.items()
    ]
    return pd.concat(found, ignore_index=True).rename(columns=ENDS)


def table(
    rows: pd.DataFrame, model: str = "mlp", sizes: Sequence[int] = BATCH_SIZES
) -> pd.DataFrame:
    """Steps and activity of rectifiers and of spikes, a row per batch size."""
    found = []
    for size in sizes:
        row = {"batch size": size}
        for time, word in ((0, "rectifiers"), (TIME, "spikes")):
            own = at_goal(rows, time, model=model)
            own = own[own.batch_size == size]
            ends = replicates.by_size(own, "steps")[["steps", *ENDS]]
            known = len(own) > 0
            row[f"{word}: steps"] = with_interval(*ends.iloc[0]) if known else "—"
            row[ACTIVE[time]] = _percent(own.rate.mean() if known else None)
            row[IDLE[time]] = _percent(own.silent.mean() if known else None)
        found.append(row)
    return pd.DataFrame(found).fillna("—")


def pruned(rows: pd.DataFrame) -> pd.DataFrame:
    """Dense and pruned networks at one batch size: steps, and units that never fire."""
    found = []
    at = rows[(rows.batch_size == PRUNED_SIZE) & (rows.goal == GOALS[0]) & (rows.model == "mlp")]
    for time, level in ((0, 0.0), (0, SPARSITY), (TIME, 0.0), (TIME, SPARSITY)):
        every = at[(at.time == time) & (at.sparsity == level)]
        met = every.dropna(subset="steps")
        # Records of searches that met no goal tell of a network before training
        seen, when = (met, "") if len(met) else (every, " before training")
        silent = f"{_percent(seen.silent.mean())}{when}" if len(seen) else "—"
        found.append(
            {
                "network": NETWORKS[time],
                "weights kept": percent(1 - level),
                "steps": brief(np.exp(np.log(met.steps).mean())) if len(met) else "—",
                "silent units": silent,
                "met the goal": f"{len(met)} of {len(every)}",
            }
        )
    return pd.DataFrame(found)


def predictions(rows: pd.DataFrame, known: dict[str, object]) -> pd.DataFrame:
    """What was written down before the records, beside what came; known: of `findings`."""
    pairs = {
        "silent_over": (mean(rows, TIME, "silent"), mean(rows, 0, "silent")),
        "pruned_over": (known["spiking_pruned"], known["plain_pruned"]),
    }
    ratios = {name: above and below and above / below for name, (above, below) in pairs.items()}
    return told.predictions((*RANGES[name], {**known, **ratios}[name]) for name in RANGES)
