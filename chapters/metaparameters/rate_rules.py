"""The searches of the page on learning rates, and what following a rule costs: the best settings of
a small batch, moved to other sizes and retrained.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pandas as pd

from lib.analysis.ranges import POWERS, effective, fast, growth, winners
from lib.analysis.scaling import SEARCH, mean_of
from lib.measuring import sweeps
from lib.methods import method, spaces
from lib.records import selection
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study

# square-root rules that also keep, counted in examples, the half-life of averages: beta ** (ratio
# of batch sizes)
HALF_LIVES = {
    "square root, β₂ too": ("beta2",),
    "square root, β₁ and β₂ too": ("beta1", "beta2"),
}
BASE = 16  # batch size from whose winner the rules start
REPEATS = 5  # initialisations with which a rule's settings are trained
SIDE, SEVERAL = 3, 3  # batch sizes and searches that tell a growth on either side of a bend


def searched(chosen, workloads: Iterable[str], algorithm: str) -> Study:
    """A method's searches of these dense networks."""
    sizes, trials = chosen.batch_sizes, chosen.trials
    grids = [selection.grid(w, sizes, [algorithm], [0.0], trials=trials) for w in workloads]
    return Study("searched", algorithm, tuple(cell for grid in grids for cell in grid.cells))


def to_budgets(chosen) -> Study:
    """All trials of every batch size, run to their budgets."""
    own = {"trials": chosen.trials, "stop": "budget"}
    cells = (
        Cell(chosen.workload, size, chosen.algorithm, max_steps=max(4096, 2**17 // size), **own)
        for size in chosen.batch_sizes
    )
    return Study("map", "", tuple(cells))


def on_digits(chosen, algorithm: str) -> Study:
    """A method's searches on digits that are not the page's own; none of a toy."""
    own = chosen.workload, chosen.algorithm
    others = [name for name in plans.DIGITS if (name, algorithm) != own]
    return searched(chosen, others if chosen.budget != "smoke" else (), algorithm)


def best_rates(trials: pd.DataFrame) -> pd.DataFrame:
    """The effective learning rate of the fastest of `fast` trials, a row per workload, algorithm
    and batch_size: rate (the geometric mean over searches), low and high (its 90 % interval; the
    rate itself of a single search), searches.
    """
    near = fast(trials)
    point = ["workload", "algorithm", "batch_size"]
    best = near.loc[near.groupby([*point, *SEARCH]).steps.idxmin()]
    rows = []
    for key, logs in np.log(effective(best)).groupby(
        [best[name] for name in point], sort=False
    ):
        mean = mean_of(logs)
        reach = mean.reach if mean.n > 1 else 0.0
        ends = np.exp([mean.value, mean.value - reach, mean.value + reach])
        rows.append((*key, *ends.tolist(), mean.n))
    return pd.DataFrame(rows, columns=[*point, "rate", "low", "high", "searches"])


def halves(trials: pd.DataFrame, critical: pd.DataFrame) -> pd.DataFrame:
    """The best rate's growth per doubling up to the critical batch size and from there on, a row
    per dense network and method of which SEVERAL searches tell both.

    trials: at their goals.  critical: of `lib.claims.front.critical`.  Columns: workload,
    algorithm; at (the batch size nearest the critical one, part of both sides); below and above
    (factors), each with _low, _high and _n (searches).
    """
    rows = []
    dense = trials[trials.sparsity == 0]
    for curve in critical[critical.identified & (critical.sparsity == 0)].itertuples():
        same = dense.algorithm == curve.algorithm
        own = dense[same & (dense.workload == curve.workload)]
        sizes = own.batch_size
        at = sizes.iloc[np.log(sizes / curve.critical).abs().argmin()]
        below = growth(own[sizes <= at], SIDE)
        above = growth(own[sizes >= at], SIDE)
        both = pd.concat([below, above])
        if len(both) < 2 or both.searches.min() < SEVERAL:
            continue
        row = {
            "workload": curve.workload,
            "algorithm": curve.algorithm,
            "at": int(at),
            "below_n": below.searches.item(),
            "above_n": above.searches.item(),
        }
        row |= below.effect.item().row("below")
        row |= above.effect.item().row("above")
        rows.append(row)
    return pd.DataFrame(rows)


def start(trials: pd.DataFrame) -> pd.Series:
    """The winner from which the rules start: that of batch size BASE, or else of the smallest."""
    best = winners(trials)
    at_base = best[best.batch_size == BASE]
    return (at_base if len(at_base) else best).iloc[0]


def moved(first: pd.Series, batch_size: int, rule: str) -> dict[str, float]:
    """What a rule makes of a winner's hyperparameters, by name, at another batch size; first: its
    row of trials.
    """
    ratio = batch_size / int(first.batch_size)
    tuned = {name: float(first[name]) for name in method(first.algorithm).space}
    tuned["learning_rate"] *= ratio ** POWERS.get(rule, 0.5)
    return tuned | {name: tuned[name] ** ratio for name in HALF_LIVES.get(rule, ())}


def retraining(trials: pd.DataFrame) -> list[Study]:
    """The searches that tell what following a rule costs, of one workload that met its goal: of a
    cell each, called after its rule.

    At each batch size where it did: the winner at the start (`start`) `moved` by the rule, with
    REPEATS initialisations; by all of POWERS, and those of HALF_LIVES whose averages the method
    has.
    """
    first = start(trials)
    sizes = sorted(map(int, trials.batch_size.unique()))
    tuned = set(method(first.algorithm).space)
    halves = [rule for rule, averages in HALF_LIVES.items() if tuned.issuperset(averages)]
    found = []
    for rule, b in itertools.product([*POWERS, *halves], sizes):
        space = spaces.point(**moved(first, b, rule))
        own = {"trials": REPEATS, "hits": REPEATS, "max_steps": 20_000}
        cell = Cell(first.workload, b, first.algorithm, space=space, **own)
        found.append(Study(rule, rule, (cell,)))
    return found


def costs(searches: pd.DataFrame, budget: str) -> pd.DataFrame:
    """Steps under each rule over the tuned ones, on every workload of which a trial met the goal:
    a row per workload, rule and batch_size.

    over: the median over the repeats (infinite: missed) over the steps of the luckiest of many
    trials.  base: whether it is the batch size where the rules start.  beyond: over, divided by
    that of "no change" at the base: there no rule acts, and only the winner's luck is lost.
    """
    found = []
    met = searches.dropna(subset="steps") if len(searches) else searches
    for name, tuned in met.groupby("workload", sort=False) if len(met) else ():
        again = [sweeps.results(s, budget).assign(rule=s.name) for s in retraining(tuned)]
        if not (again := [own for own in again if len(own)]):
            continue
        own = pd.concat(again)
        steps = own.steps.fillna(np.inf).groupby([own.rule, own.batch_size])
        table = steps.quantile(0.5, interpolation="nearest").rename("over").reset_index()
        table["over"] /= table.batch_size.map(winners(tuned).set_index("batch_size").steps)
        table["base"] = table.batch_size == start(tuned).batch_size
        alone = table.over[(table.rule == "no change") & table.base]
        if np.isfinite(alone).any():  # else what luck is worth is not known
            found.append(table.assign(workload=name, beyond=table.over / alone.item()))
    names = ["workload", "rule", "batch_size", "over", "base", "beyond"]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=names)
