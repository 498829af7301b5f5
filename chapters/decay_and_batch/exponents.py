"""The power of the batch size with which the best learning rate grows, for every method."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import edges, method_results, rate_rules, scaling
from lib.analysis.scaling import Effect
from lib.claims import judging
from lib.claims.cache import kept

# Methods whose step is as long whatever the momentum: their rate is not divided by 1 - momentum
OF_FIXED_LENGTH = ("muon",)
WIDE = 0.25  # of a power of the batch size
COLUMNS = "workload algorithm value error freedom n sizes edge".split()


def growths() -> pd.DataFrame:
    """ln of the best rate's growth per doubling of the batch, a row per network and method of
    dense networks with scaling.ENOUGH searches: COLUMNS, among them the fields of an `Effect`;
    sizes, how many batch sizes; edge, whether winners crowd at an end of the rate's interval.
    """
    return pd.DataFrame(kept("rate-exponents", _growths))


def _growths() -> dict[str, list]:
    trials = method_results.compared()
    trials = method_results.whole_range(trials, judging.low())
    return of_trials(trials[trials.sparsity == 0]).to_dict("list")


def of_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """As `growths`, of these trials at their goals."""
    crowded = _crowded(trials)
    if "momentum" in trials:
        fixed = trials.algorithm.isin(OF_FIXED_LENGTH)
        trials = trials.assign(momentum=trials.momentum.mask(fixed))
    growth, rows = rate_rules.growth(trials), []
    for row in growth[growth.searches >= scaling.ENOUGH].itertuples():
        effect = row.effect
        about = row.workload, row.algorithm, effect.value, effect.error, effect.freedom, effect.n
        rows.append((*about, int(row.sizes), (row.workload, row.algorithm) in crowded))
    return pd.DataFrame(rows, columns=COLUMNS)


def _crowded(trials: pd.DataFrame) -> set[tuple]:
    """Networks and methods whose winners crowd at an end of the interval of their rates."""
    ends = edges.at_edges(trials)
    marked = ends[(ends.hyperparameter == "learning_rate") & ends.marked.astype(bool)]
    return set(zip(marked.workload, marked.algorithm))


def effect(row) -> Effect:
    """Of a row of `growths`; open above where winners crowd at an end, since rates beyond it would
    have made it steeper.
    """
    return Effect(row.value, row.error, row.freedom, row.n, above=bool(row.edge))


def known(row) -> bool:
    """Whether a row's power is told to within WIDE, and not as a bound."""
    value, low, high = powers(row)
    return high - value <= WIDE and value - low <= WIDE


def powers(row) -> tuple[float, float, float]:
    """The exponent of a row of `growths`, with the ends of its interval."""
    one = effect(row)
    return tuple(float(value / np.log(2)) for value in (one.value, one.low, one.high))
