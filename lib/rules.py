"""What following a rule for the learning rate costs: a small batch's best settings moved to other batch sizes, retrained."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib import metaparameters, sweeps
from lib.sweeps import Cell, Study

POWERS = {"linear rule": 1.0, "square-root rule": 0.5, "no change": 0.0}
MOST = 20_000  # steps after which a rule has missed the goal


def winners(trials: pd.DataFrame) -> pd.DataFrame:
    """The trial that first met the goal, per batch size where one did."""
    met = trials.dropna(subset="steps")
    return met.loc[met.groupby("batch_size").steps.idxmin()]


def start(best: pd.DataFrame, base: int) -> pd.Series:
    """The winner from which the rules start: that of batch size `base`, or else of the smallest."""
    own = best[best.batch_size == base]
    return (own if len(own) else best).iloc[0]


def retrained(best: pd.DataFrame, base: int, repeats: int, budget: str = "cached") -> pd.DataFrame:
    """Trials of the settings that every rule of POWERS makes of the start, at every batch size of `best`; column rule.

    Momentum is kept, the learning rate multiplied by the ratio of batch sizes to the rule's power.  budget: as for
    `lib.sweeps.results`; each setting is trained with `repeats` initialisations.
    """
    first, found = start(best, base), []
    for rule, power in POWERS.items():
        for b in sorted(best.batch_size):
            rate = float(first.learning_rate) * (int(b) / int(first.batch_size)) ** power
            space = metaparameters.point(learning_rate=rate, momentum=float(first.momentum))
            cell = Cell(first.workload, int(b), first.algorithm, float(first.sparsity), trials=repeats, hits=repeats,
                        max_steps=MOST, space=space)  # fmt: skip
            own = sweeps.results(Study(rule, rule, (cell,)), budget)
            if len(own):
                found.append(own.assign(rule=rule))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def spread(trials: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Steps under each rule: least, middle, most over the repeats (inf: missed), and over, the middle over the tuned steps."""
    if not len(trials):
        return pd.DataFrame(columns=["rule", "batch_size", "least", "middle", "most", "over"])
    steps = trials.assign(steps=trials.steps.fillna(np.inf)).groupby(["rule", "batch_size"]).steps
    found = steps.quantile([0, 0.5, 1], interpolation="nearest").unstack()
    found = found.rename(columns={0.0: "least", 0.5: "middle", 1.0: "most"}).reset_index()
    return found.assign(over=found.middle / found.batch_size.map(best.set_index("batch_size").steps))
