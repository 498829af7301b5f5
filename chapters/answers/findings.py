"""What the page of answers says beside what other pages state, too (`lib.claims.front.facts`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from chapters.answers import shares
from lib.analysis import scaling
from lib.claims import Finding, front, judging, kept
from lib.page import boxes, prose
from lib.wording import between, percent, ranged

APART = 16  # factor between two batch sizes that tell the critical one
NEAR = 2  # factor within which they tell it
CLAIMS = "S4 S7 S10 S10b M2 L3 M1 W2 W2b".split()


def findings(judged: Mapping[str, Finding]) -> dict[str, object]:
    """All values of the page's sentences.

    Raises:
        Told: if no curve of several searches is on record.
    """
    critical, run = front.critical(), front.one_run()
    dense = critical[critical.identified & (critical.sparsity == 0)]
    dense = boxes.some(dense[dense.replicates >= scaling.ENOUGH], "curves")
    split, tells = kept("answers-shares", shares.measured), _tells(dense)
    return {
        **front.facts(judged),
        **prose.pills({key: judged[key] for key in CLAIMS}),
        "rho": front.effects(judged["M2"]),
        "missed": front.effects(judged["S10b"]),
        "curves": len(dense),
        "critical": between(*dense.critical),
        "dearer": None if run.empty else float(run.price.iloc[-1] / run.price.min()),
        "unequal": percent(split["unequal"]),
        "normalised": percent(split["normalised"]),
        "clipped": split["clipped"] / split["noise"],
        "decay": next(ranged(g.effect, g.low, g.high) for g in judged["W2"].measured),
        "apart": APART,
        "around": percent(tells["around"]),
        "aside": percent(tells["aside"]),
    }


def _tells(dense: pd.DataFrame) -> dict[str, float]:
    """The share of pairs of single searches that tell the critical batch size within NEAR, of
    those that have it between them (around) and of the others (aside).
    """

    def compute() -> dict[str, float]:
        curves = judging.curves()
        keys = dense[scaling.CURVE].itertuples(index=False, name=None)
        every = pd.concat(pairs(curves[key], c) for key, c in zip(keys, dense.critical))
        near = every.over.between(1 / NEAR, NEAR)
        return {"around": near[every.around].mean(), "aside": near[~every.around].mean()}

    return kept("answers-pairs", compute)


def pairs(curve: scaling.Curve, critical: float) -> pd.DataFrame:
    """A row per search and pair of batch sizes B and `APART` B of a curve: over, the critical batch
    size that the ratio of their steps gives over the curve's; around, whether that lies between B
    and `APART` B.

    Steps as 1 + C/B: ratio = (1 + C/B) / (1 + C/(APART B)).
    """
    logs = curve.logs.where(~curve.missed)
    tables = [pd.DataFrame({"over": [], "around": np.array([], bool)})]
    for size in logs.columns.intersection(logs.columns / APART):
        large = APART * size
        ratio = np.exp(logs[size] - logs[large]).dropna()
        critical_by_ratio = size * (ratio - 1) / (1 - ratio / APART)
        # Steps that fall as fast as batches grow have no end in sight
        critical_by_ratio = critical_by_ratio.where(ratio < APART, np.inf)
        around = size <= critical <= large
        tables.append(pd.DataFrame({"over": critical_by_ratio / critical, "around": around}))
    return pd.concat(tables)
