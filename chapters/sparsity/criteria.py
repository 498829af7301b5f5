"""Criteria of pruning beside the usual one: critical batch sizes after each, at the same sparsity."""

from __future__ import annotations

import pandas as pd

from lib.analysis import scaling
from lib.claims.names import title
from lib.measuring import sweeps
from lib.studies import plans
from lib.wording import named

USUAL = "connection-sensitivity"
STUDIES = ("digits-methods", "mnist-methods")  # a search a point
BOUND = 1.25  # as in the rules of claims: a ratio beyond it either way is an effect


def results() -> list[pd.DataFrame]:
    """All trials of STUDIES."""
    return [sweeps.results(plans.study(name)) for name in STUDIES]


def over_usual(trials: list[pd.DataFrame]) -> pd.DataFrame:
    """Critical batch sizes after every criterion over those after connection sensitivity: as of
    `scaling.beside`, with row (the network) and label (the criterion).
    """
    curves = scaling.curves(scaling.at_goals(pd.concat(trials, ignore_index=True)))
    rows = scaling.beside(curves, lambda key: (*key[:2], USUAL, key[3]))
    return rows.assign(row=rows.workload.map(title), label=rows.pruning.map(named))


def findings(ratios: pd.DataFrame) -> dict[str, object]:
    """Values of the sentences on criteria; ratios: of `over_usual`."""
    smaller, larger = ratios[ratios.ratio_high < 1 / BOUND], ratios[ratios.ratio_low > BOUND]
    return {
        "ratios": len(ratios),
        "smaller": len(smaller),
        "larger": len(larger),
        "smaller_after": [*smaller.label.unique()],
        "larger_after": [*larger.label.unique()],
        "criteria_on": [*ratios.row.unique()],
    }
