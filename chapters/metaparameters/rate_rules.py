"""What following a rule for the learning rate costs: the best settings of a small batch, moved to
other sizes and retrained.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from lib.analysis.rate_rules import POWERS, effective, fast, winners
from lib.analysis.scaling import SEARCH, mean_of
from lib.measuring import sweeps
from lib.methods import method, spaces
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
MOST = 20_000  # steps after which a rule has missed the goal
COSTS = "workload rule batch_size over base beyond".split()


def start(trials: pd.DataFrame) -> pd.Series:
    """The winner from which the rules start: that of batch size BASE, or else of the smallest.

    trials: of which at least one met its goal.
    """
    best = winners(trials)
    at_base = best[best.batch_size == BASE]
    return (at_base if len(at_base) else best).iloc[0]


def rules(algorithm: str) -> list[str]:
    """The rules that say something of a method: all of POWERS, and those of HALF_LIVES whose
    averages it has.
    """
    tuned = set(method(algorithm).space)
    return [*POWERS, *(rule for rule, averages in HALF_LIVES.items() if tuned.issuperset(averages))]


def moved(first: pd.Series, batch_size: int, rule: str) -> dict[str, float]:
    """What a rule makes of a winner's hyperparameters, by name, at another batch size; the others
    are kept.

    first: a row of trials, with its algorithm and batch size.
    """
    ratio = batch_size / int(first.batch_size)
    tuned = {name: float(first[name]) for name in method(first.algorithm).space}
    tuned["learning_rate"] *= ratio ** POWERS.get(rule, 0.5)
    return tuned | {name: tuned[name] ** ratio for name in HALF_LIVES.get(rule, ())}


def best_rates(trials: pd.DataFrame) -> pd.DataFrame:
    """The effective learning rate of the fastest trial against batch size, of those that are
    `fast`.

    Returns:
        A row per workload, algorithm and batch_size: rate (the geometric mean over searches), low
        and high (its 90 % interval; the rate itself of a single search), searches.
    """
    near = fast(trials)
    point = ["workload", "algorithm", "batch_size"]
    best = near.loc[near.groupby([*point, *SEARCH]).steps.idxmin()]
    rows = []
    for key, logs in np.log(effective(best)).groupby([best[name] for name in point], sort=False):
        mean = mean_of(logs)
        reach = mean.reach if mean.n > 1 else 0.0
        ends = np.exp([mean.value, mean.value - reach, mean.value + reach])
        rows.append((*key, *ends.tolist(), mean.n))
    return pd.DataFrame(rows, columns=[*point, "rate", "low", "high", "searches"])


def retraining(searches: pd.DataFrame) -> dict[tuple[str, str, int], Study]:
    """The searches that tell what following a rule costs: (workload, rule of `rules`, batch size)
    -> a study of one cell.

    Of every workload that met its goal, at each batch size where it did: the winner at the start
    (`start`) `moved` by the rule, with REPEATS initialisations.
    """
    found = {}
    met = searches.dropna(subset="steps") if len(searches) else searches
    for name, trials in met.groupby("workload", sort=False) if len(met) else ():
        first = start(trials)
        sizes = sorted(map(int, trials.batch_size.unique()))
        for rule, b in itertools.product(rules(first.algorithm), sizes):
            cell = Cell(
                name,
                b,
                first.algorithm,
                space=spaces.point(**moved(first, b, rule)),
                trials=REPEATS,
                hits=REPEATS,
                max_steps=MOST,
            )
            found[name, rule, b] = Study(rule, rule, (cell,))
    return found


def costs(searches: pd.DataFrame, budget: str) -> pd.DataFrame:
    """Steps under each rule over the tuned ones, on every workload of which a trial met the goal:
    COSTS.

    over: the median over the repeats (infinite: missed) over the steps of the luckiest of many
    trials.  base: whether it is the batch size where the rules start.  beyond: over, divided by
    that of "no change" at the base: there no rule acts, and only the winner's luck is lost.
    """
    found = [pd.DataFrame(columns=COSTS)]
    again = []
    for (name, rule, _), study in retraining(searches).items():
        trials = sweeps.results(study, budget)
        if len(trials):
            again.append(trials.assign(workload=name, rule=rule))
    for name, own in pd.concat(again).groupby("workload", sort=False) if again else ():
        tuned = searches[searches.workload == name]
        best = winners(tuned).set_index("batch_size").steps
        steps = own.steps.fillna(np.inf).groupby([own.rule, own.batch_size])
        table = steps.quantile(0.5, interpolation="nearest").rename("over").reset_index()
        table["over"] /= table.batch_size.map(best)
        table["base"] = table.batch_size == start(tuned).batch_size
        alone = table.over[(table.rule == "no change") & table.base]
        if np.isfinite(alone).any():  # else what luck is worth is not known
            beyond = table.over / alone.item()
            found.append(table.assign(workload=name, beyond=beyond))
    return pd.concat([part for part in found if len(part)] or found, ignore_index=True)
