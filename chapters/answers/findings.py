"""What the page of answers says beyond the facts that other pages share (`lib.claims.front`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.analysis import method_results, scaling
from lib.claims import Finding, front, judging, kept
from lib.page import boxes, prose
from lib.wording import between, percent, ranged

APART = 16  # factor between two batch sizes from which the critical one is estimated
NEAR = 2  # factor within which an estimate counts as right
CLAIMS = "S4 S7 S10 S10b M2 L3 L6 M1 W2 W2b".split()


def findings(judged: Mapping[str, Finding]) -> dict[str, object]:
    """All values in the page's sentences.

    Raises:
        BookError: if no curve of several searches is on record.
    """
    several = f"identified and sparsity == 0 and replicates >= {scaling.ENOUGH}"
    dense = boxes.some(front.critical().query(several), "curves")
    tells = kept("answers-pairs", lambda: _tells(dense))
    return {
        **front.facts(judged),
        **prose.pills({key: judged[key] for key in CLAIMS}),
        "rho": front.effects(judged["M2"]),
        "missed": front.effects(judged["S10b"]),
        "curves": len(dense),
        "critical": between(*dense.critical),
        "decay": ranged(*_ends(judged["W2"])),
        "decay_power": ranged(*(1 + np.log2(_ends(judged["W2b"])))),
        "held": between(*np.exp(kept("answers-beta2", _held))),
        **front.measured_again(),
        "apart": APART,
        "around": percent(tells["around"]),
        "aside": percent(tells["aside"]),
    }


def _ends(measured: Finding) -> np.ndarray:
    """The effect measured on the first network, with the ends of its interval."""
    group = measured.measured[0]
    return np.array([group.effect, group.low, group.high])


def _held() -> list[float]:
    """ln of the steps with Adam's beta2 fixed over those with its half-life fixed in examples: the
    mean over batch sizes, for every network.
    """
    curves = scaling.curves(method_results.compared())
    middle = method_results.at_end(0)
    steps = method_results.between(curves, "adam-fixed", "adam-half-life", middle)
    return [effect.value for effect in steps.values()]


def _tells(dense: pd.DataFrame) -> dict[str, float]:
    """The share of `pairs` that estimate the critical batch size to within NEAR, among those with
    the critical batch size between them (around) and among the others (aside).
    """
    curves = judging.curves()
    keys = dense[scaling.CURVE].itertuples(index=False, name=None)
    rows = [row for key, c in zip(keys, dense.critical) for row in pairs(curves[key], c)]
    table = pd.DataFrame(rows, columns=["around", "over"])
    near = table.over.between(1 / NEAR, NEAR).groupby(table.around).mean()
    return {"around": near[True], "aside": near[False]}


def pairs(curve: scaling.Curve, critical: float) -> list[tuple[bool, float]]:
    """For every search and pair of batch sizes B and `APART` B of a curve: whether the critical
    batch size lies between them, and the estimate from the ratio of their steps, over it.

    Steps are taken to go as 1 + C/B: ratio = (1 + C/B) / (1 + C/(APART B)).
    """
    logs, rows = curve.logs.where(~curve.missed), []
    for size in logs.columns.intersection(logs.columns / APART):
        ratio = np.exp(logs[size] - logs[APART * size]).dropna()
        by_ratio = size * (ratio - 1) / (1 - ratio / APART)
        # Steps that fall as fast as batches grow bound C only from below
        by_ratio = by_ratio.where(ratio < APART, np.inf)
        rows += [(size <= critical <= APART * size, relative) for relative in by_ratio / critical]
    return rows
