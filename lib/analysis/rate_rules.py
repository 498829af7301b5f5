"""What following a rule for the learning rate costs: a small batch's best settings moved to other batch sizes, retrained."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.measuring import sweeps
from lib.methods import spaces
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload

POWERS = {"linear rule": 1.0, "square-root rule": 0.5, "no change": 0.0}
MOST = 20_000  # steps after which a rule has missed the goal
NEAR = 3  # times the fastest trial's steps
EDGE = 0.05  # of a metaparameter's space, on its scale


def winners(trials: pd.DataFrame) -> pd.DataFrame:
    """The trial that first met the goal, per batch size where one did."""
    met = trials.dropna(subset="steps")
    return met.loc[met.groupby("batch_size").steps.idxmin()]


def start(best: pd.DataFrame, base: int) -> pd.Series:
    """The winner from which the rules start: that of batch size `base`, or else of the smallest."""
    own = best[best.batch_size == base]
    return (own if len(own) else best).iloc[0]


def near_best(trials: pd.DataFrame, base: int) -> pd.DataFrame:
    """Trials that met the goal within NEAR times the steps of the fastest, and guides, a row per workload and metaparameter.

    which: "learning rate", "1 - momentum" or "effective learning rate"; value; behind: steps over the winner's.  rule: None
    for a trial; else the value that a rule of POWERS predicts from the winner at `base`, or at the smallest batch size.
    """
    met = trials.dropna(subset="steps")
    met = met.assign(behind=met.steps / met.groupby(["workload", "batch_size"]).steps.transform("min"))
    met = met[met.behind <= NEAR].assign(rule=None)
    guides = []
    for name, own in met.groupby("workload", sort=False):
        first = start(winners(own), base)
        for rule, power in POWERS.items():
            sizes = np.unique(own.batch_size)
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
    rows, own = [], near[near.rule.isna() & (near.which == "effective learning rate")]
    for name, trials in own.groupby("workload", sort=False):
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
    """Winners of `near_best` whose metaparameter lies within the share EDGE of the space of its edge, a row per workload and name.

    metaparameter; winners (count); lower, upper: batch sizes of those at either edge, where a wider space could hold a
    better trial.
    """
    rows, won = [], near[near.rule.isna() & (near.behind == 1)]
    for (name, which), own in won.groupby(["workload", "which"], sort=False):
        if which not in ("learning rate", "1 - momentum"):
            continue
        field, values = ("learning_rate", own.value) if which == "learning rate" else ("momentum", 1 - own.value)
        interval = spaces.SPACES[workload(name).space][field]
        place = interval.place(values)
        place = 1 - place if interval.scale == "reverse-log" else place
        ends = {"lower": place < EDGE, "upper": place > 1 - EDGE}
        rows.append({"workload": name, "metaparameter": field.replace("_", " "), "winners": own.batch_size.nunique(),
                     **{end: sorted(map(int, own.batch_size[at].unique())) for end, at in ends.items()}})  # fmt: skip
    return pd.DataFrame(rows)


def retrained(best: pd.DataFrame, base: int, repeats: int, budget: str = "cached") -> pd.DataFrame:
    """Trials of the settings that every rule of POWERS makes of the start, at every batch size of `best`; column rule.

    Momentum is kept, the learning rate multiplied by the ratio of batch sizes to the rule's power.  budget: as for
    `lib.measuring.sweeps.results`; each setting is trained with `repeats` initialisations.
    """
    first, found = start(best, base), []
    for rule, power in POWERS.items():
        for b in sorted(best.batch_size):
            rate = float(first.learning_rate) * (int(b) / int(first.batch_size)) ** power
            space = spaces.point(learning_rate=rate, momentum=float(first.momentum))
            cell = Cell(first.workload, int(b), first.algorithm, float(first.sparsity), trials=repeats, hits=repeats,
                        max_steps=MOST, space=space)  # fmt: skip
            own = sweeps.results(Study(rule, rule, (cell,)), budget)
            if len(own):
                found.append(own.assign(rule=rule))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


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


def costs(searches: pd.DataFrame, base: int, repeats: int, budget: str = "cached") -> pd.DataFrame:
    """`spread` of every workload among the trials of searches in which one met the goal, with its name in `workload`."""
    found = [spread(pd.DataFrame(), pd.DataFrame(), base).assign(workload=pd.Series(dtype=str))]
    for name, own in searches.groupby("workload", sort=False) if len(searches) else ():
        best = winners(own)
        if len(best):
            found.append(spread(retrained(best, base, repeats, budget), best, base).assign(workload=name))
    filled = [f for f in found if len(f)]
    return pd.concat(filled, ignore_index=True) if filled else found[0]
