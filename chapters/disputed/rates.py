"""Which learning rates and weight decays win, and how they and the timescale follow the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import altair as alt
import numpy as np
import pandas as pd

from chapters.disputed.decay_experiments import BATCH_SIZES, DECAYED, SPACES
from lib.analysis import method_results, ranges, replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.judging import kept
from lib.page import charts, estimates, tips
from lib.records import results
from lib.wording import named, ranged, span
from lib.workloads.catalogue import workload

BEST = 4  # trials of a search that count as good, of those with decay
VALUES = ["timescale", "weight_decay", "learning_rate"]
KEYS = ["workload", "algorithm", "batch_size", "replicate"]
GROWTH = ["workload", "algorithm", "sizes", "effect"]
NEAR = 3  # times the fastest trial's steps
SIZES = 4  # batch sizes of a search whose slope counts
SMALL, *_, LARGE = BATCH_SIZES
RANGES = {  # of `effects`, as predicted of either method; None: no prediction
    "decay": ("power of the batch in the best decay", (0.3, 0.9)),
    "rate": ("power of the batch in the best rate", None),
    "gain": ("least loss without decay, over that with it", (1.05, 1.5)),
}
MOVES = (0.5, 2)  # predicted of the timescale at the largest batches, over that at the smallest


def good(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per search: KEYS, the geometric means of VALUES over its BEST trials with decay; loss,
    plain: the least validation loss with decay and without.

    trials: of `decay_experiments.DECAYED`.
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
    """What one method's rows of `good` say, by name; None of what they do not tell.
    moves: ln of the timescale at the largest batch over that at the smallest.
    gain: ln of the least loss without decay over that with it.
    decay, rate: as which power of the batch these grow.
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
    """As which power of the batch a column grows, the mean over searches."""
    slopes = [
        np.polyfit(np.log(search.batch_size), np.log(search[column]), 1)[0]
        for _, search in searches.groupby("replicate")
        if len(search) > 2
    ]
    return replicates.compared(pd.Series(slopes, dtype=float), 0.0)


def by_method() -> Iterator[tuple[str, dict[str, Effect | None]]]:
    """Of each method on record: its network and name, and its `effects`."""
    trials = DECAYED.results()
    for name, searches in good(trials).groupby("algorithm") if len(trials) else ():
        yield f"MLP on digits, {named(name)}", effects(searches)


def growths() -> pd.DataFrame:
    """How the best rate grows, a row per dense network and method with enough searches: GROWTH.
    sizes: how many batch sizes.  effect: ln of the growth per doubling of the batch, an `Effect`,
    open above where winners crowd at an end of the range, since others could have made it steeper.
    """
    rows = pd.DataFrame(kept("rate-exponents", _growths)["rows"], columns=GROWTH)
    return rows.assign(effect=[Effect(**fields) for fields in rows.effect])


def _growths() -> dict[str, list]:
    studies = (method_results.studied(), ranges.low_momentum())
    usual, low = (results.read(study, without=scaling.WITHIN_BUDGETS) for study in studies)
    trials = scaling.at_goals(ranges.whole(scaling.at_goals(usual), low))
    trials = trials[trials.sparsity == 0]
    edges = ranges.at_edges(trials).query("hyperparameter == 'learning_rate' and marked")
    crowded = {*zip(edges.workload, edges.algorithm)}
    # Muon's step is as long whatever the momentum: its rate is not divided by 1 - momentum
    rows = growth(trials.assign(momentum=trials.momentum.mask(trials.algorithm == "muon")))
    rows = rows[rows.searches >= scaling.ENOUGH]
    keys = [*zip(rows.workload, rows.algorithm)]
    slopes = (replace(slope, above=key in crowded) for key, slope in zip(keys, rows.effect))
    return {
        "rows": [(*key, n, vars(s)) for key, n, s in zip(keys, rows.sizes.tolist(), slopes)]
    }


def fast(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials that met the goal within NEAR times the steps of the fastest of their search, and
    are `ranges.built_up`.
    """
    met = trials.dropna(subset="steps").reset_index(drop=True)
    search = ["workload", "algorithm", "batch_size", *scaling.SEARCH]
    return ranges.built_up(met[met.steps <= NEAR * met.groupby(search).steps.transform("min")])


def growth(trials: pd.DataFrame) -> pd.DataFrame:
    """How fast the best effective learning rate grows, a row per network and training method.

    trials: at their goals; the `fast` ones count.  Columns: workload, algorithm; sizes, searches
    (counts of those that tell); effect (ln of a factor per doubling).  The slope of a search of
    SIZES batch sizes or more is one value, Student's t over searches; of a single search the
    interval is that of the scatter of its trials.
    """
    rows = []
    by_curve = (
        fast(trials).groupby(["workload", "algorithm"], sort=False) if len(trials) else ()
    )
    for key, curve in by_curve:
        slopes = [
            scaling.slope(np.log2(search.batch_size), np.log(ranges.effective(search)))
            for _, search in curve.groupby([*scaling.SEARCH])
            if search.batch_size.nunique() >= SIZES
        ]
        if slopes:
            mean = scaling.mean_over(slopes)
            rows.append((*key, curve.batch_size.nunique(), len(slopes), mean))
    columns = ["workload", "algorithm", "sizes", "searches", "effect"]
    return pd.DataFrame(rows, columns=columns)


def values(good: pd.DataFrame) -> dict[str, object]:
    """What the section's sentences name; good: of `good`."""
    adam = effects(good[good.algorithm == "adam"])
    return {"adam_moves": estimates.times(adam["moves"])}


def table(good: pd.DataFrame) -> pd.DataFrame:
    """What rates and decays of the best trials say, beside what was predicted of either method."""
    by_name = {named(name): effects(good[good.algorithm == name]) for name in SPACES}
    rows = []
    for key, (what, predicted) in RANGES.items():
        row = {"what": what, "predicted": span(predicted) if predicted else "—"}
        for name, values in by_name.items():
            row[name] = ranged(*estimates.interval(values[key], log=key == "gain"))
        rows.append(row)
    return pd.DataFrame(rows)


def chart(good: pd.DataFrame) -> alt.LayerChart:
    """The timescale of the best trials against batch size, a colour for each method; faint: single
    searches.
    """
    rows = replicates.by_size(good, "timescale", by=("algorithm",))
    rows["low"] = rows.timescale_low.clip(lower=good.timescale.min() / 3)
    rows["high"] = rows.timescale_high.clip(upper=good.timescale.max() * 3)
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
