"""What following a rule for the learning rate costs: the best settings of a small batch, moved to
other sizes and retrained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import require, require_all
from lib.analysis.scaling import SEARCH, Effect, mean_of
from lib.methods import method, spaces
from lib.records import results as on_record
from lib.studies.cells import Cell
from lib.studies.study import Study

POWERS = {"linear rule": 1.0, "square-root rule": 0.5, "no change": 0.0}
# square-root rules that also keep, counted in examples, the half-life of averages: beta ** (ratio
# of batch sizes)
HALF_LIVES = {
    "square root, β₂ too": ("beta2",),
    "square root, β₁ and β₂ too": ("beta1", "beta2"),
}
MOST = 20_000  # steps after which a rule has missed the goal
# Adam's second average: kept as it is, or its half-life held
KEPT, HELD = (
    "square-root rule",
    "square root, β₂ too",
)
NEAR = 3  # times the fastest trial's steps
SIZES = 4  # batch sizes of a search whose slope counts
SLOWNESS = "1 - momentum"


def winners(trials: pd.DataFrame) -> pd.DataFrame:
    """The trial that first met the goal, per batch size where one did."""
    met = trials.dropna(subset="steps")
    return met.loc[met.groupby("batch_size").steps.idxmin()]


def start(best: pd.DataFrame, base: int) -> pd.Series:
    """The winner from which the rules start: that of batch size `base`, or else of the smallest.

    Raises ValueError for a base that is not positive, and without winners.
    """
    require_all("base", base, lambda v: v >= 1, "a batch size, a whole number from 1")
    require(len(best), "best", "no row", "a winner of at least one batch size")
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


def near_best(trials: pd.DataFrame, base: int) -> pd.DataFrame:
    """Trials that met the goal within NEAR times the steps of the fastest, and guides, a row per
    workload and hyperparameter.

    which: "learning rate", "1 - momentum" or "effective learning rate" (of trials that are
    `built_up` alone); value; behind: steps over the winner's.  rule: None for a trial; else the
    value that a rule of POWERS predicts from the winner at `base`, or at the smallest batch size;
    for the effective rate from the winner of those that are built up.
    """
    met = trials.dropna(subset="steps").reset_index(drop=True)
    met = met.assign(
        behind=met.steps / met.groupby(["workload", "batch_size"]).steps.transform("min")
    )
    met = met[met.behind <= NEAR].assign(rule=None)
    kinds = {
        "learning rate": (met, lambda t: t.learning_rate),
        SLOWNESS: (met, lambda t: 1 / builds_up_in(t)),
        "effective learning rate": (built_up(met), effective),
    }
    parts = []
    for which, (trials, of) in kinds.items():
        parts.append(trials.assign(which=which, value=of(trials)))
        for name, fast in trials.groupby("workload", sort=False):
            first = start(winners(fast), base)
            anchor, sizes = float(of(fast).loc[first.name]), np.unique(fast.batch_size)
            for rule, power in {
                r: p for r, p in POWERS.items() if which != SLOWNESS or r == "no change"
            }.items():
                values = anchor * (sizes / int(first.batch_size)) ** power
                parts.append(
                    pd.DataFrame(
                        {
                            "workload": name,
                            "batch_size": sizes,
                            "rule": rule,
                            "which": which,
                            "value": values,
                        }
                    )
                )
    keep = ["workload", "batch_size", "trial", "steps", "behind", "rule", "which", "value"]
    return pd.concat([part.reindex(columns=keep) for part in parts if len(part)], ignore_index=True)


def builds_up_in(trials: pd.DataFrame) -> pd.Series:
    """The steps in which every trial's momentum builds up, 1 / (1 - momentum); one without
    momentum.
    """
    momentum = trials.momentum.fillna(0) if "momentum" in trials else pd.Series(0.0, trials.index)
    return 1 / (1 - momentum)


def effective(trials: pd.DataFrame) -> pd.Series:
    """The learning rate over one minus the momentum: what a step amounts to once the momentum has
    built up.
    """
    return trials.learning_rate * builds_up_in(trials)


def built_up(trials: pd.DataFrame) -> pd.DataFrame:
    """Trials whose momentum built up in less than a tenth of their steps: in others the `effective`
    rate says nothing.
    """
    return trials[builds_up_in(trials) < trials.steps / 10]


def growth(trials: pd.DataFrame) -> pd.DataFrame:
    """How fast the best effective learning rate grows, a row per network and training method.

    trials: at their goals; of those NEAR the fastest of their search, the ones that are `built_up`
    count. Columns: workload, algorithm, least, most, sizes (batch sizes that count, how many),
    searches; growth, growth_low and growth_high (a factor per doubling) and effect (its `Effect`).
    The slope of a search of SIZES batch sizes or more is one value, Student's t over searches; of a
    single search the interval is that of the scatter of its trials.
    """
    point = ["workload", "algorithm", "batch_size", *SEARCH]
    met = trials.dropna(subset="steps") if len(trials) else trials
    fast = (
        built_up(met[met.steps <= NEAR * met.groupby(point).steps.transform("min")])
        if len(met)
        else met
    )
    rows = []
    for key, own in fast.groupby(["workload", "algorithm"], sort=False) if len(fast) else ():
        doublings, logs = np.log2(own.batch_size), np.log(effective(own))
        found = [
            slope(doublings[s.index], logs[s.index])
            for _, s in own.groupby([*SEARCH])
            if s.batch_size.nunique() >= SIZES
        ]
        if found:
            effect = mean_of([one.value for one in found]) if len(found) > 1 else found[0]
            sizes = own.batch_size
            ends = {
                "least": sizes.min(),
                "most": sizes.max(),
                "sizes": sizes.nunique(),
                "searches": len(found),
            }
            rows.append(
                {
                    "workload": key[0],
                    "algorithm": key[1],
                    **ends,
                    **effect.row("growth"),
                    "effect": effect,
                }
            )
    return pd.DataFrame(
        rows,
        columns=[
            "workload",
            "algorithm",
            "least",
            "most",
            "sizes",
            "searches",
            "growth",
            "growth_low",
            "growth_high",
            "effect",
        ],
    )


def slope(x: np.ndarray, y: np.ndarray) -> Effect:
    """Least squares of one search, with the error of the scatter about its line; n is one.  NaN
    under three points.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) < 3:
        return Effect(np.nan, np.nan, 1.0, 1)
    off = x - x.mean()
    rate = (off @ y) / (off @ off)
    rest = y - y.mean() - rate * off
    return Effect(
        float(rate), float(np.sqrt(rest @ rest / (len(x) - 2) / (off @ off))), len(x) - 2.0, 1
    )


def from_rules(rate: Effect) -> tuple[float, float, float]:
    """How far a growth per doubling, as a logarithm, lies from that of the nearer rule, linear or
    square root; low, high.
    """
    rules = np.log(2) * np.array([POWERS["linear rule"], POWERS["square-root rule"]])
    tried = np.linspace(rate.low, rate.high, 1001)
    distance = np.abs(tried[:, None] - rules).min(1)
    return float(np.abs(rate.value - rules).min()), float(distance.min()), float(distance.max())


def retraining(
    searches: pd.DataFrame, base: int, repeats: int
) -> dict[tuple[str, str, int], Study]:
    """The searches that tell what following a rule costs: (workload, rule of `rules`, batch size)
    -> a study of one cell.

    Of every workload that met its goal, at each batch size where it did: the winner at the start
    (`start`) `moved` by the rule; each setting has `repeats` initialisations. Raises ValueError as
    `start` and, of the repeats, as the trials of a `lib.studies.cells.Cell`.
    """
    require_all(
        "repeats", repeats, lambda v: (v >= 1) & (v <= 4096), "a whole number from 1 to 4096"
    )
    found = {}
    for name, trials in _by_workload(searches):
        best = winners(trials)
        first = start(best, base)
        for rule in rules(first.algorithm):
            for b in sorted(map(int, best.batch_size)):
                space = spaces.point(**moved(first, b, rule))
                cell = Cell(
                    name,
                    b,
                    first.algorithm,
                    float(first.sparsity),
                    trials=repeats,
                    hits=repeats,
                    max_steps=MOST,
                    space=space,
                )
                found[name, rule, b] = Study(rule, rule, (cell,))
    return found


def _by_workload(searches: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each workload that met its goal, and its trials."""
    met = searches.dropna(subset="steps") if len(searches) else searches
    for name, trials in searches.groupby("workload", sort=False) if len(met) else ():
        if trials.steps.notna().any():
            yield name, trials


def spread(trials: pd.DataFrame, best: pd.DataFrame, base: int) -> pd.DataFrame:
    """Steps under each rule: least, middle, most over the repeats (inf: missed), over and beyond.

    over: the middle over the tuned steps, which are those of the luckiest of many trials.  beyond:
    over, divided by that of "no change" at the batch size where the rules start (base): there no
    rule acts, and only the winner's luck is lost.
    """
    if not len(trials):
        columns = ["batch_size", "least", "middle", "most", "over", "beyond", "base"]
        return pd.DataFrame(
            {"rule": pd.Series(dtype=str), **{c: pd.Series(dtype=float) for c in columns}}
        )
    steps = trials.assign(steps=trials.steps.fillna(np.inf)).groupby(["rule", "batch_size"]).steps
    found = steps.quantile([0, 0.5, 1], interpolation="nearest").unstack()
    found = found.rename(columns={0.0: "least", 0.5: "middle", 1.0: "most"}).reset_index()
    found = found.assign(
        over=found.middle / found.batch_size.map(best.set_index("batch_size").steps)
    )
    found["base"] = found.batch_size == int(start(best, base).batch_size)
    alone = found[(found.rule == "no change") & found.base].over
    return found.assign(beyond=found.over / (alone.item() if len(alone) else np.nan))


def costs(
    searches: pd.DataFrame,
    base: int,
    repeats: int,
    tables: dict[tuple[str, str, int], pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """`spread` of every workload among the trials of searches in which one met the goal, with its
    name in `workload`.

    tables: the trials of each of `retraining`, as `lib.records.results.read` gives them; None:
    those on record.
    """
    if tables is None:
        tables = on_record.read_each(retraining(searches, base, repeats))
    found = [spread(pd.DataFrame(), pd.DataFrame(), base).assign(workload=pd.Series(dtype=str))]
    for name, trials in _by_workload(searches):
        again = [
            t.assign(rule=rule) for (work, rule, _), t in tables.items() if work == name and len(t)
        ]
        joined = pd.concat(again, ignore_index=True) if again else pd.DataFrame()
        found.append(spread(joined, winners(trials), base).assign(workload=name))
    filled = [f for f in found if len(f)]
    return pd.concat(filled, ignore_index=True) if filled else found[0]


def kept_over_held(costs: pd.DataFrame) -> dict[str, Effect]:
    """By network, ln of the steps if Adam's beta2 is kept over those if its half-life is, by a
    square-root rule to smaller batches.

    costs: of `costs`.  The mean over batch sizes below the start's, of one search; a missed goal
    counts as MOST steps. Networks on which either rule is not retrained are left out.
    """
    found = {}
    for name, own in costs.groupby("workload", sort=False) if len(costs) else ():
        small = own[own.batch_size < own.batch_size[own.base.astype(bool)].min()]
        wide = small.pivot(index="batch_size", columns="rule", values="middle").clip(upper=MOST)
        if {KEPT, HELD} <= {*wide.columns} and not wide[[KEPT, HELD]].isna().any(axis=None):
            found[name] = replace(mean_of(np.log(wide[KEPT] / wide[HELD])), n=1)
    return found
