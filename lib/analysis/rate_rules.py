"""What following a rule for the learning rate costs: the best settings of a small batch, moved to other sizes and retrained."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from lib import require, require_all
from lib.methods import method, spaces
from lib.records import results as on_record
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload

POWERS = {"linear rule": 1.0, "square-root rule": 0.5, "no change": 0.0}
HALF_LIVES = {  # square-root rules that also keep, counted in examples, the half-life of averages: beta ** (ratio of batch sizes)
    "square root, β₂ too": ("beta2",), "square root, β₁ and β₂ too": ("beta1", "beta2"),
}  # fmt: skip
MOST = 20_000  # steps after which a rule has missed the goal
NEAR = 3  # times the fastest trial's steps
EDGE = 0.05  # of a hyperparameter's space, on its scale


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
    """The rules that say something of a method: all of POWERS, and those of HALF_LIVES whose averages it has."""
    tuned = set(method(algorithm).space)
    return [*POWERS, *(rule for rule, averages in HALF_LIVES.items() if tuned.issuperset(averages))]


def moved(first: pd.Series, batch_size: int, rule: str) -> dict[str, float]:
    """What a rule makes of a winner's hyperparameters, by name, at another batch size; the others are kept.

    first: a row of trials, with its algorithm and batch size.
    """
    ratio = batch_size / int(first.batch_size)
    tuned = {name: float(first[name]) for name in method(first.algorithm).space}
    tuned["learning_rate"] *= ratio ** POWERS.get(rule, 0.5)
    return tuned | {name: tuned[name] ** ratio for name in HALF_LIVES.get(rule, ())}


def near_best(trials: pd.DataFrame, base: int) -> pd.DataFrame:
    """Trials that met the goal within NEAR times the steps of the fastest, and guides, a row per workload and hyperparameter.

    which: "learning rate", "1 - momentum" or "effective learning rate"; value; behind: steps over the winner's.  rule: None
    for a trial; else the value that a rule of POWERS predicts from the winner at `base`, or at the smallest batch size.
    """
    met = trials.dropna(subset="steps")
    met = met.assign(behind=met.steps / met.groupby(["workload", "batch_size"]).steps.transform("min"))
    met = met[met.behind <= NEAR].assign(rule=None)
    guides = []
    for name, fast in met.groupby("workload", sort=False):
        first = start(winners(fast), base)
        for rule, power in POWERS.items():
            sizes = np.unique(fast.batch_size)
            rates = float(first.learning_rate) * (sizes / int(first.batch_size)) ** power
            guides.append(pd.DataFrame({"workload": name, "batch_size": sizes, "learning_rate": rates, "rule": rule,
                                        "momentum": first.momentum}))  # fmt: skip
    both = pd.concat([met, *guides], ignore_index=True)
    both = both.assign(**{"learning rate": both.learning_rate, "1 - momentum": 1 - both.momentum,
                          "effective learning rate": both.learning_rate / (1 - both.momentum)})  # fmt: skip
    keep = ["workload", "batch_size", "trial", "steps", "behind", "rule"]
    return both.melt(keep, ["learning rate", "1 - momentum", "effective learning rate"], "which", "value")


def exponents(near: pd.DataFrame) -> pd.DataFrame:
    """The power of the batch size as which fast trials' effective learning rate grows, a row per workload of `near_best`.

    power: least squares on the logarithms of the near-best trials; low, high: 5 and 95 % of those of resampled ones.
    Workloads with fewer than three batch sizes are left out.
    """
    rows, rates = [], near[near.rule.isna() & (near.which == "effective learning rate")]
    for name, trials in rates.groupby("workload", sort=False):
        if trials.batch_size.nunique() < 3:
            continue
        ordered = trials.sort_values(["batch_size", "trial"])  # in whatever order they come, the same draws
        logs, random = np.log(ordered[["batch_size", "value"]].to_numpy(float)), np.random.default_rng(0)
        picks = (logs[random.integers(len(logs), size=len(logs))] for _ in range(400))
        drawn = [np.polyfit(*pick.T, 1)[0] for pick in picks if np.ptp(pick[:, 0]) > 0]
        low, high = np.quantile(drawn, [0.05, 0.95])
        rows.append({"workload": name, "batch_sizes": trials.batch_size.nunique(), "trials": len(trials),
                     "power": np.polyfit(*logs.T, 1)[0], "low": low, "high": high})  # fmt: skip
    return pd.DataFrame(rows)


def at_edge(near: pd.DataFrame) -> pd.DataFrame:
    """Winners of `near_best` whose hyperparameter lies within the share EDGE of the space of its edge, a row per workload and name.

    hyperparameter; winners (count); lower, upper: batch sizes of those at either edge, where a wider space could hold a
    better trial.
    """
    rows, won = [], near[near.rule.isna() & (near.behind == 1)]
    for (name, which), group in won.groupby(["workload", "which"], sort=False):
        if which not in ("learning rate", "1 - momentum"):
            continue
        field, values = ("learning_rate", group.value) if which == "learning rate" else ("momentum", 1 - group.value)
        interval = spaces.SPACES[workload(name).space][field]
        place = interval.place(values)
        place = 1 - place if interval.scale == "reverse-log" else place
        ends = {"lower": place < EDGE, "upper": place > 1 - EDGE}
        rows.append({"workload": name, "hyperparameter": field.replace("_", " "), "winners": group.batch_size.nunique(),
                     **{end: sorted(map(int, group.batch_size[at].unique())) for end, at in ends.items()}})  # fmt: skip
    return pd.DataFrame(rows)


def retraining(searches: pd.DataFrame, base: int, repeats: int) -> dict[tuple[str, str, int], Study]:
    """The searches that tell what following a rule costs: (workload, rule of `rules`, batch size) -> a study of one cell.

    Of every workload that met its goal, at each batch size where it did: the winner at the start (`start`) `moved` by the
    rule; each setting has `repeats` initialisations.
    Raises ValueError as `start` and, of the repeats, as the trials of a `lib.studies.cells.Cell`.
    """
    require_all("repeats", repeats, lambda v: (v >= 1) & (v <= 4096), "a whole number from 1 to 4096")
    found = {}
    for name, trials in _by_workload(searches):
        best = winners(trials)
        first = start(best, base)
        for rule in rules(first.algorithm):
            for b in sorted(map(int, best.batch_size)):
                space = spaces.point(**moved(first, b, rule))
                cell = Cell(name, b, first.algorithm, float(first.sparsity), trials=repeats, hits=repeats,
                            max_steps=MOST, space=space)  # fmt: skip
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

    over: the middle over the tuned steps, which are those of the luckiest of many trials.  beyond: over, divided by that of
    "no change" at the batch size where the rules start (base): there no rule acts, and only the winner's luck is lost.
    """
    if not len(trials):
        columns = ["batch_size", "least", "middle", "most", "over", "beyond", "base"]
        return pd.DataFrame({"rule": pd.Series(dtype=str), **{c: pd.Series(dtype=float) for c in columns}})
    steps = trials.assign(steps=trials.steps.fillna(np.inf)).groupby(["rule", "batch_size"]).steps
    found = steps.quantile([0, 0.5, 1], interpolation="nearest").unstack()
    found = found.rename(columns={0.0: "least", 0.5: "middle", 1.0: "most"}).reset_index()
    found = found.assign(over=found.middle / found.batch_size.map(best.set_index("batch_size").steps))
    found["base"] = found.batch_size == int(start(best, base).batch_size)
    alone = found[(found.rule == "no change") & found.base].over
    return found.assign(beyond=found.over / (alone.item() if len(alone) else np.nan))


def costs(
    searches: pd.DataFrame, base: int, repeats: int, tables: dict[tuple[str, str, int], pd.DataFrame] | None = None
) -> pd.DataFrame:
    """`spread` of every workload among the trials of searches in which one met the goal, with its name in `workload`.

    tables: the trials of each of `retraining`, as `lib.records.results.read` gives them; None: those on record.
    """
    if tables is None:
        tables = on_record.read_each(retraining(searches, base, repeats))
    found = [spread(pd.DataFrame(), pd.DataFrame(), base).assign(workload=pd.Series(dtype=str))]
    for name, trials in _by_workload(searches):
        again = [t.assign(rule=rule) for (work, rule, _), t in tables.items() if work == name and len(t)]
        joined = pd.concat(again, ignore_index=True) if again else pd.DataFrame()
        found.append(spread(joined, winners(trials), base).assign(workload=name))
    filled = [f for f in found if len(f)]
    return pd.concat(filled, ignore_index=True) if filled else found[0]
