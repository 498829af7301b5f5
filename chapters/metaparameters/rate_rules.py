"""What following a rule for the learning rate costs: the best settings of a small batch, moved to
other sizes and retrained.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis.rate_rules import POWERS, effective, fast, winners
from lib.analysis.scaling import SEARCH, Effect, mean_of
from lib.methods import method, spaces
from lib.records import results as on_record
from lib.studies.cells import Cell
from lib.studies.study import Study

# square-root rules that also keep, counted in examples, the half-life of averages: beta ** (ratio
# of batch sizes)
HALF_LIVES = {
    "square root, β₂ too": ("beta2",),
    "square root, β₁ and β₂ too": ("beta1", "beta2"),
}
MOST = 20_000  # steps after which a rule has missed the goal
COSTS = "workload rule batch_size least middle most over base beyond".split()


def start(best: pd.DataFrame, base: int) -> pd.Series:
    """The winner from which the rules start: that of batch size `base`, or else of the smallest.

    best: a winner of at least one batch size.
    """
    at_base = best[best.batch_size == base]
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


def from_rules(rate: Effect) -> tuple[float, float, float]:
    """How far a growth per doubling, as a logarithm, lies from that of the nearer rule, linear or
    square root; low, high.
    """
    rules = np.log(2) * np.array([POWERS["linear rule"], POWERS["square-root rule"]])
    tried = np.append(np.linspace(rate.low, rate.high, 1001), rate.value)
    *inside, here = np.abs(tried[:, None] - rules).min(1).tolist()
    return here, min(inside), max(inside)


def retraining(
    searches: pd.DataFrame, base: int, repeats: int
) -> dict[tuple[str, str, int], Study]:
    """The searches that tell what following a rule costs: (workload, rule of `rules`, batch size)
    -> a study of one cell.

    Of every workload that met its goal, at each batch size where it did: the winner at the start
    (`start`) `moved` by the rule; each setting has `repeats` initialisations. Raises ValueError, of
    the repeats, as the trials of a `lib.studies.cells.Cell`.
    """
    found = {}
    met = searches.dropna(subset="steps") if len(searches) else searches
    for name, trials in met.groupby("workload", sort=False) if len(met) else ():
        best = winners(trials)
        first = start(best, base)
        counts = {"trials": repeats, "hits": repeats, "max_steps": MOST}
        for rule in rules(first.algorithm):
            for b in sorted(map(int, best.batch_size)):
                space = spaces.point(**moved(first, b, rule))
                how = first.algorithm, float(first.sparsity)
                cell = Cell(name, b, *how, space=space, **counts)
                found[name, rule, b] = Study(rule, rule, (cell,))
    return found


def costs(
    searches: pd.DataFrame,
    base: int,
    repeats: int,
    tables: dict[tuple[str, str, int], pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Steps under each rule on every workload of which a trial met the goal: COSTS.

    tables: the trials of each of `retraining`, as `lib.records.results.read` gives them; None:
    those on record.

    least, middle, most: over the repeats (inf: missed).  over: the middle over the tuned steps,
    which are those of the luckiest of many trials.  base: whether it is the batch size where the
    rules start.  beyond: over, divided by that of "no change" at the base: there no rule acts, and
    only the winner's luck is lost.
    """
    if tables is None:
        planned = retraining(searches, base, repeats)
        tables = {key: on_record.read(own) for key, own in planned.items()}
    again = [t.assign(workload=name, rule=rule) for (name, rule, _), t in tables.items() if len(t)]
    found = []
    for name, own in pd.concat(again).groupby("workload", sort=False) if again else ():
        best = winners(searches[searches.workload == name])
        steps = own.steps.fillna(np.inf).groupby([own.rule, own.batch_size])
        table = steps.quantile([0, 0.5, 1], interpolation="nearest").unstack()
        table = table.set_axis(["least", "middle", "most"], axis=1).reset_index()
        over = table.middle / table.batch_size.map(best.set_index("batch_size").steps)
        at_base = table.batch_size == int(start(best, base).batch_size)
        alone = over[(table.rule == "no change") & at_base]
        luck = alone.item() if len(alone) else np.nan
        found.append(table.assign(workload=name, over=over, base=at_base, beyond=over / luck))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=COSTS)
