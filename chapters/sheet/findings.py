"""What the batch-size sheet says beside what other pages state, too (`lib.claims.front.facts`)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from chapters.sheet import decide
from lib.analysis import scaling
from lib.claims import YES, Finding, front, judging
from lib.page import boxes, prose
from lib.probes import timings
from lib.wording import between, ranged
from lib.workloads.catalogue import workload

SIZES = (16, 64, 256)  # batch sizes of the worked example
CLAIMS = "L3 L4 L6 M1 M2 S2 S4 S7 S10 S10b S14 T4 T5 A1 O2".split()


def example() -> tuple[decide.Points, pd.Series]:
    """The worked example: seconds of a step of the front page's network on one core, and its row of
    `front.critical`.

    Raises:
        Told: if either is not on record.
    """
    timed = timings.one_core(front.RUN[0])
    times = boxes.some(pd.DataFrame() if timed is None else timed, "step times")
    times = times[times.batch_size.isin(SIZES)]
    pairs = list(zip(times.batch_size.tolist(), times.seconds.tolist()))
    return pairs, boxes.some(front.critical().query(front.DENSE), "searches").iloc[0]


def law(judged: Mapping[str, Finding]) -> dict[str, float]:
    """The law for SGD's learning rates: rho (B_eta over C, the geometric mean over networks), low
    and high (its least and its most), smallest and largest (batch sizes at which it was tested).

    Empty where no network has enough searches.
    """
    known = [g.effect for g in judged["M2"].groups if g.n >= scaling.ENOUGH]
    if not known:
        return {}
    tested = judging.searches()
    sizes = tested[tested.algorithm == "sgd"].batch_size
    rho = {"rho": math.exp(np.log(known).mean()), "low": min(known), "high": max(known)}
    return {**rho, "smallest": int(sizes.min()), "largest": int(sizes.max())}


def findings(
    judged: Mapping[str, Finding], times: decide.Points, dense: pd.Series
) -> dict[str, object]:
    """All values of the page's sentences; times and dense: of `example`."""
    choice, rivals = decide.decide(times, dense.critical), judged["O2"]
    return {
        **front.facts(judged),
        **prose.pills({key: judged[key] for key in CLAIMS}),
        "rho": front.effects(judged["M2"]),
        "missed": front.effects(judged["S10b"]),
        "network": workload(front.RUN[0]).title,
        "times": [f"{1000 * seconds:.2g} ms at {size}" for size, seconds in times],
        "critical": ranged(dense.critical, dense.critical_low, dense.critical_high),
        "overhead": 1000 * choice.overhead,
        "example": 1000 * choice.example,
        "best": choice.best,
        "near": [choice.low, choice.high],
        "pruned_critical": front.effects(judged["L4"]),
        "top_k": between(*(g.effect for g in judged["T4"].decided())),
        "gaussian": between(*(g.effect for g in judged["T5"].decided())),
        "late": front.effects(judged["A1"]),
        "rivals": len(rivals.measured),
        "kept_up": len(rivals.decided(YES)),
    }
