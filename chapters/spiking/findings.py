"""What the page on spiking networks says, as numbers and words, with its figure and its tables."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from chapters.spiking import activity, searches
from chapters.spiking.searches import (
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
from lib.page import charts, tips, told
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


def findings(rows: pd.DataFrame) -> dict[str, object]:
    """All values of the page's sentences; rows: of the records."""
    plain, sparse, one = (0, SPARSITY), (TIME, SPARSITY), [PRUNED_SIZE]
    both = [(time, 0.0, "cnn") for time in (TIME, 0)]
    longer = (LONGER,), (TIME,)
    effects = {
        "steps_over": activity.over(rows, "steps"),
        "small_over": activity.over(rows, "steps", sizes=[SMALL]),
        "large_over": activity.over(rows, "steps", sizes=[LARGE]),
        "rate_over": activity.over(rows, "rate"),
        "longer_steps": activity.over(rows, "steps", *longer, FEW),
        "longer_rate": activity.over(rows, "rate", *longer, FEW),
        "longer_more": activity.over(rows, "steps", *longer, MORE),
        "plain_pruned": activity.over(rows, "steps", plain, sizes=one),
        "spiking_pruned": activity.over(rows, "steps", sparse, (TIME,), one),
        "cnn_steps": activity.over(rows, "steps", *both, CNN_SIZES),
        "cnn_small": activity.over(rows, "steps", *both, CNN_SIZES[:1]),
        "cnn_large": activity.over(rows, "steps", *both, CNN_SIZES[-1:]),
        "cnn_rate": activity.over(rows, "rate", *both, CNN_SIZES),
    }
    values = told.ratios(effects, ("steps_over", "rate_over", "cnn_steps"))
    over, first = values["rate_over"], mean(rows, TIME, "first")
    return {
        **values,
        "goal": percent(GOALS[0]),
        "time": TIME,
        "longer": LONGER,
        "searches": effects["rate_over"].n if effects["rate_over"] else None,
        "planned": len(searches.REPLICATES),
        "trials": searches.Search(TIME, SMALL).trials,
        "small": SMALL,
        "large": LARGE,
        "rate": _percent(mean(rows, TIME, "rate")),
        "on": _percent(mean(rows, 0, "rate")),
        "summed": over and TIME * over,
        "uses": first and TIME * first,
        "silent": _percent(mean(rows, TIME, "silent")),
        "never_on": _percent(mean(rows, 0, "silent")),
        "silent_small": _percent(mean(rows, TIME, "silent", [SMALL])),
        "silent_large": _percent(mean(rows, TIME, "silent", [LARGE])),
        "sparsity": percent(SPARSITY),
        "pruned_size": PRUNED_SIZE,
        "pruned_steps": PRUNED["max_steps"],
        "pruned_searches": int((rows.sparsity > 0).sum() / 2 / len(GOALS)),
        "plain_met": len(activity.at_goal(rows, *plain)),
        "spiking_met": len(activity.at_goal(rows, *sparse)),
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
    found = replicates.means(activity.at_goal(rows, time), value, sizes)
    return float(found.mean()) if len(found) else None


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{brief(100 * share)}\u00a0%"


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Steps, their interval and searches of every dense network, one below the other."""
    found = [
        replicates.by_size(activity.at_goal(rows, time), "steps").assign(network=name)
        for time, name in NETWORKS.items()
    ]
    return pd.concat(found, ignore_index=True).rename(columns=ENDS)


def chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Steps to result against batch size, a curve per kind of network."""
    drawn = points(rows)
    if not len(drawn):
        return charts.nothing("Nothing is measured yet.")
    bounds = [drawn.steps.min() / 1.6, drawn.steps.max() * 1.6]
    drawn = drawn.assign(low=drawn.low.clip(lower=bounds[0]), high=drawn.high.clip(upper=bounds[1]))
    scale = charts.log(domain=bounds)
    y = alt.Y("steps:Q", title="steps to result (training steps)", scale=scale)
    tooltip = [tips.NETWORK, tips.BATCH_SIZE, tips.STEPS, tips.tip("searches:Q", "searches")]
    colour = charts.by_name("network", COLOURS, columns=1)
    base = alt.Chart(drawn).encode(x=charts.batch_axis(drawn.batch_size), color=colour)
    layers = charts.curve(base, y, scale, tooltip)
    return alt.layer(*layers).properties(width="container", height=340)


def table(
    rows: pd.DataFrame, model: str = "mlp", sizes: Sequence[int] = BATCH_SIZES
) -> pd.DataFrame:
    """Steps and activity of rectifiers and of spikes, a row per batch size."""
    found = []
    for size in sizes:
        row = {"batch size": size}
        for time, word in ((0, "rectifiers"), (TIME, "spikes")):
            own = activity.at_goal(rows, time, model=model)
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


def predictions(rows: pd.DataFrame) -> pd.DataFrame:
    """What was written down before the records, what came, and whether it fits."""
    known = findings(rows)
    silent, never = (mean(rows, time, "silent") for time in (TIME, 0))
    plain, spiking = known["plain_pruned"], known["spiking_pruned"]
    listed = (
        ("steps of spikes over rectifiers", 0.5, 2, known["steps_over"]),
        (f"the same, batch size {SMALL}", 1, np.inf, known["small_over"]),
        (f"the same, batch size {LARGE:,}", 0, 1, known["large_over"]),
        ("firing over rectifiers on", 0, 0.5, known["rate_over"]),
        ("silent units, over rectifiers never on", 1, np.inf, silent and never and silent / never),
        (f"steps, {LONGER} over {TIME} time steps", 1 / 1.5, 1.5, known["longer_steps"]),
        (
            "what pruning costs spikes, over rectifiers",
            1,
            np.inf,
            plain and spiking and spiking / plain,
        ),
        ("CNN: steps of spikes over rectifiers", 0.5, 2, known["cnn_steps"]),
        ("CNN: firing over rectifiers on", 0, 0.8, known["cnn_rate"]),
        (
            f"steps, {LONGER} over {TIME} time steps, batch size {MORE[0]}",
            1 / 1.5,
            1.5,
            known["longer_more"],
        ),
    )
    return told.predictions(listed)
