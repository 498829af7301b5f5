"""What the page of answers says beside what other pages state, too (`lib.claims.front.facts`)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from chapters.answers import shares
from chapters.sheet import decide
from chapters.sheet.findings import law
from lib.analysis import method_results, scaling
from lib.claims import Finding, front, judging, kept
from lib.page import boxes, prose
from lib.wording import between, percent, ranged

HELD = "adam-fixed", "adam-half-life"
APART = 16  # factor between two batch sizes that tell the critical one
NEAR = 2  # factor within which they tell it
CLAIMS = "S4 S7 S10 S10b M2 L3 L6 M1 W2 W2b".split()
AGAIN = "on_digits same_on_digits on_images same_on_images".split()


def findings(judged: Mapping[str, Finding]) -> dict[str, object]:
    """All values of the page's sentences.

    Raises:
        Told: if no curve of several searches is on record.
    """
    critical, run = front.critical(), front.one_run()
    dense = critical[critical.identified & (critical.sparsity == 0)]
    dense = boxes.some(dense[dense.replicates >= scaling.ENOUGH], "curves")
    split, tells = kept("answers-shares", shares.measured), _tells(dense)
    again, rates = front.measured_again(), law(judged)
    moved = (
        [decide.rate_at(2, (1, 1), 1, rates[end]) for end in ("low", "high")] if rates else []
    )
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
        **_decay(judged),
        "held": _held(),
        "at_critical": between(*moved),
        **{name: again[name] for name in AGAIN},
        "apart": APART,
        "around": percent(tells["around"]),
        "aside": percent(tells["aside"]),
    }


def _decay(judged: Mapping[str, Finding]) -> dict[str, str]:
    """How weight decay follows the batch with Adam: decay, the best timescale at a batch of 256
    over that at 16; decay_growth, growth of the best coefficient per doubling of the batch;
    decay_power, of the batch, in it.
    """
    timescale, growth = (
        np.array([group.effect, group.low, group.high])
        for group in (judged[key].measured[0] for key in ("W2", "W2b"))
    )
    return {
        "decay": ranged(*timescale),
        "decay_growth": ranged(*(2 * growth)),
        "decay_power": ranged(*(1 + np.log2(growth))),
    }


def _held() -> str:
    """Steps with Adam's beta2 held over those with its half-life held in examples: the least and
    the most network, in the mean over batch sizes.
    """

    def compute() -> list[float]:
        curves = scaling.curves(method_results.compared())
        steps = method_results.between(curves, *HELD, method_results.at_end(0))
        return [math.exp(effect.value) for effect in steps.values()]

    return between(*kept("answers-beta2", compute))


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
