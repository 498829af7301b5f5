"""Which learning rates and weight decays win, and how these and the timescale vary with batch."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import numpy as np
import pandas as pd

from chapters.disputed.decay_experiments import BATCH_SIZES, DECAYED, SPACES
from lib.analysis import replicates
from lib.analysis.scaling import Effect
from lib.page import charts, estimates, tips
from lib.wording import exactly, named, ranged
from lib.workloads.catalogue import workload

BEST = 4  # trials of a search that count as good, among those with decay
VALUES = ["timescale", "weight_decay", "learning_rate"]
KEYS = ["workload", "algorithm", "batch_size", "replicate"]
SMALL, *_, LARGE = BATCH_SIZES
RANGES = {  # of `effects`, as predicted for both methods; None: no prediction
    "decay": ("best decay as a power of the batch", (0.3, 0.9)),
    "rate": ("best rate as a power of the batch", None),
    "gain": ("lowest loss without decay, over that with it", (1.05, 1.5)),
}
MOVES = (0.5, 2)  # predicted range: timescale at the largest batches over that at the smallest


def good(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search: KEYS, the geometric means of VALUES over its BEST trials with decay, and
    loss and plain: the least validation loss with decay and without.

    trials: from `decay_experiments.DECAYED`.
    """
    trials = trials.dropna(subset="loss").sort_values("loss", kind="stable")
    decaying = trials[trials.weight_decay > 0]
    best = decaying.groupby(KEYS).head(BEST)
    examples = best.epochs * [workload(name).train_size for name in best.workload]
    steps = examples / best.batch_size
    best = best.assign(timescale=1 / (best.learning_rate * best.weight_decay * steps))
    logs = np.log(best.set_index(KEYS)[VALUES])
    searches = np.exp(logs.groupby(KEYS).mean())
    searches["loss"] = decaying.groupby(KEYS).loss.min()
    searches["plain"] = trials[trials.weight_decay == 0].groupby(KEYS).loss.min()
    return searches.reset_index()


def effects(searches: pd.DataFrame) -> dict[str, Effect | None]:
    """Effects from one method's rows of `good`, by name; None where these do not determine one.
    moves: ln of the timescale at the largest batch over that at the smallest.
    gain: ln of the least loss without decay over that with it.
    decay, rate: the power of the batch size with which the best ones grow.
    """
    largest, smallest = (searches[searches.batch_size == size] for size in (LARGE, SMALL))
    gains = np.log(searches.plain / searches.loss)
    return {
        "moves": replicates.over(largest, smallest, "timescale"),
        "gain": replicates.compared(gains.groupby(searches.replicate).mean(), 0.0),
        "decay": _power(searches, "weight_decay"),
        "rate": _power(searches, "learning_rate"),
    }


def _power(searches: pd.DataFrame, column: str) -> Effect | None:
    """The power of the batch size with which a column grows, the mean over replicates."""
    slopes = [
        np.polyfit(np.log(search.batch_size), np.log(search[column]), 1)[0]
        for _, search in searches.groupby("replicate")
        if len(search) > 2
    ]
    return replicates.compared(pd.Series(slopes, dtype=float), 0.0)


def by_method() -> Iterator[tuple[str, dict[str, Effect | None]]]:
    """For each method on record: network and method in words, and its `effects`."""
    trials = DECAYED.results()
    for name, searches in good(trials).groupby("algorithm") if len(trials) else ():
        yield f"MLP on digits, {named(name)}", effects(searches)


def values(good: pd.DataFrame) -> dict[str, object]:
    """Values in the section's sentences; good: from `good`."""
    adam = effects(good[good.algorithm == "adam"])
    return {"adam_moves": estimates.times(adam["moves"])}


def table(good: pd.DataFrame) -> pd.DataFrame:
    """The `effects` of both methods, beside their predicted ranges."""
    by_name = {named(name): effects(good[good.algorithm == name]) for name in SPACES}
    rows = []
    for key, (what, predicted) in RANGES.items():
        row = {"what": what, "predicted": exactly(predicted) if predicted else "—"}
        for name, values in by_name.items():
            row[name] = ranged(*estimates.interval(values[key], log=key == "gain"))
        rows.append(row)
    return pd.DataFrame(rows)


def chart(good: pd.DataFrame) -> alt.LayerChart:
    """The timescale of the best trials against batch size, one colour per method; faint points are
    single searches.
    """
    rows = replicates.by_size(good, "timescale", by=("algorithm",))
    rows["low"] = rows.low.clip(lower=good.timescale.min() / 3)
    rows["high"] = rows.high.clip(upper=good.timescale.max() * 3)
    rows["method"] = rows.algorithm.map(named)
    scale = charts.log(14, base=10)
    axis = alt.Axis(format="~g", values=charts.DECADES)
    y = alt.Y("timescale:Q", title="timescale (share of the training)", scale=scale, axis=axis)
    colour = charts.by_algorithm(list(rows.algorithm.unique()))
    base = alt.Chart(rows).encode(x=charts.batch_axis(rows.batch_size), color=colour)
    tooltip = [
        tips.tip("method:N", "training method"),
        tips.BATCH_SIZE,
        tips.tip("timescale:Q", "timescale", ".2g"),
        tips.tip("searches:Q", "searches"),
    ]
    single = good[["algorithm", "batch_size", "timescale"]]
    faint = base.properties(data=single).encode(y=y)
    faint = faint.mark_point(size=40, opacity=0.45)
    layers = charts.curve(base, y, scale, tooltip)
    return charts.sized(alt.layer(*layers, faint), 330)
