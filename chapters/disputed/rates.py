"""Which learning rates and weight decays win, and how they go with the batch size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from chapters.disputed.decay_experiments import BATCH_SIZES, DECAYED
from lib.analysis import method_results, ranges, replicates, scaling
from lib.analysis.scaling import Effect
from lib.claims.judging import kept
from lib.records import results
from lib.wording import named
from lib.workloads.catalogue import workload

BEST = 4  # trials of a search that count as good, of those with decay
VALUES = ["timescale", "weight_decay", "learning_rate"]
KEYS = ["workload", "algorithm", "batch_size", "replicate"]
GROWTH = ["workload", "algorithm", "sizes", "effect"]
GROWN = ["workload", "algorithm", "sizes", "searches", "effect"]
NEAR = 3  # times the fastest trial's steps
SIZES = 4  # batch sizes of a search whose slope counts


def good(found: pd.DataFrame) -> pd.DataFrame:
    """A row per search: KEYS, the geometric means of VALUES over its BEST trials with decay; loss,
    plain: the least validation loss with decay and without.

    found: the trials of `decay_experiments.DECAYED`.
    """
    trials = found.dropna(subset="loss").sort_values("loss", kind="stable")
    decaying = trials[trials.weight_decay > 0]
    best = decaying.groupby(KEYS).head(BEST)
    examples = best.epochs * [workload(name).train_size for name in best.workload]
    steps = examples / best.batch_size
    best["timescale"] = 1 / (best.learning_rate * best.weight_decay * steps)
    logs = np.log(best.set_index(KEYS)[VALUES])
    rows = np.exp(logs.groupby(KEYS).mean())
    rows["loss"] = decaying.groupby(KEYS).loss.min()
    rows["plain"] = trials[trials.weight_decay == 0].groupby(KEYS).loss.min()
    return rows.reset_index()


def effects(own: pd.DataFrame) -> dict[str, Effect | None]:
    """What one method's rows of `good` say, by name; None of what they do not tell.
    moves: ln of the timescale at the largest batch over that at the smallest.
    gain: ln of the least loss without decay over that with it.
    decay, rate: as which power of the batch these grow.
    """
    least = own[own.batch_size == min(BATCH_SIZES)]
    largest = own[own.batch_size == max(BATCH_SIZES)]
    gains = np.log(own.plain / own.loss)
    return {
        "moves": replicates.over(largest, least, "timescale"),
        "gain": replicates.compared(gains.groupby(own.replicate).mean(), 0.0),
        "decay": _slope(own, "weight_decay"),
        "rate": _slope(own, "learning_rate"),
    }


def _slope(own: pd.DataFrame, value: str) -> Effect | None:
    """Of a value over the batch size, both as logarithms, the mean over searches."""
    slopes = [
        np.polyfit(np.log(one.batch_size), np.log(one[value]), 1)[0]
        for _, one in own.groupby("replicate")
        if len(one) > 2
    ]
    return replicates.compared(pd.Series(slopes, dtype=float), 0.0)


def by_method() -> Iterator[tuple[str, dict[str, Effect | None], str]]:
    """Of each method on record: its network and name, its `effects`, and a note on its gain."""
    trials = DECAYED.results()
    for name, own in good(trials).groupby("algorithm") if len(trials) else ():
        known = effects(own)
        gain = known["gain"]
        note = "whether decay lowers the loss here is unclear" if gain and gain.low <= 0 else ""
        yield f"MLP on digits, {named(name)}", known, note


def growths() -> pd.DataFrame:
    """How the best rate grows, a row per dense network and method with enough searches: GROWTH.
    sizes: how many batch sizes.  effect: ln of the growth per doubling of the batch, an `Effect`,
    open above where winners crowd at an end of the range, since others could have made it steeper.
    """
    found = pd.DataFrame(kept("rate-exponents", _growths)["rows"], columns=GROWTH)
    return found.assign(effect=[Effect(**one) for one in found.effect])


def _growths() -> dict[str, list]:
    halves = (method_results.studied(), ranges.low_momentum())
    read = [results.read(study, without=scaling.WITHIN_BUDGETS) for study in halves]
    trials = scaling.at_goals(ranges.whole(scaling.at_goals(read[0]), read[1]))
    trials, rows = trials[trials.sparsity == 0], []
    edges = ranges.at_edges(trials).query("hyperparameter == 'learning_rate' and marked")
    crowded = {*zip(edges.workload, edges.algorithm)}
    # Muon's step is as long whatever the momentum: its rate is not divided by 1 - momentum
    muon = trials.algorithm == "muon"
    grown = growth(trials.assign(momentum=trials.momentum.mask(muon)))
    for row in grown[grown.searches >= scaling.ENOUGH].itertuples():
        key = row.workload, row.algorithm
        rows.append((*key, row.sizes, vars(replace(row.effect, above=key in crowded))))
    return {"rows": rows}


def fast(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials that met the goal within NEAR times the steps of the fastest of their search, and
    are `ranges.built_up`.
    """
    met = trials.dropna(subset="steps").reset_index(drop=True)
    point = ["workload", "algorithm", "batch_size", *scaling.SEARCH]
    return ranges.built_up(met[met.steps <= NEAR * met.groupby(point).steps.transform("min")])


def growth(trials: pd.DataFrame) -> pd.DataFrame:
    """How fast the best effective learning rate grows, a row per network and training method.

    trials: at their goals; of those NEAR the fastest of their search, the ones that are
    `ranges.built_up` count. Columns: workload, algorithm; sizes, searches (counts of those that
    tell); effect (ln of a factor per doubling).  The slope of a search of SIZES batch sizes or more is one value,
    Student's t over searches; of a single search the interval is that of the scatter of its trials.
    """
    if trials.empty:
        return pd.DataFrame(columns=GROWN)
    rows = []
    for key, own in fast(trials).groupby(["workload", "algorithm"], sort=False):
        found = [
            scaling.slope(np.log2(search.batch_size), np.log(ranges.effective(search)))
            for _, search in own.groupby([*scaling.SEARCH])
            if search.batch_size.nunique() >= SIZES
        ]
        if found:
            rows.append((*key, own.batch_size.nunique(), len(found), scaling.mean_over(found)))
    return pd.DataFrame(rows, columns=GROWN)
