"""What the batch-size sheet says beside what other pages state, too (`lib.claims.front.facts`)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from chapters.sheet import decide
from chapters.status import prices
from lib.analysis import scaling
from lib.claims import YES, Finding, front, judging, kept
from lib.page import boxes, prose
from lib.probes import timings
from lib.wording import between, ranged
from lib.workloads.catalogue import workload

SIZES = (16, 64, 256)  # batch sizes of the worked example
GPU = "gpu gpu_network gpu_overhead gpu_example gpu_half gpu_critical gpu_best".split()
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


def on_gpu() -> dict[str, float | str | None]:
    """The worked example on a graphics processor, timed by its searches: gpu (its name),
    gpu_network, gpu_overhead, gpu_example (milliseconds), gpu_half (a/b), gpu_critical, gpu_best
    (examples).  All None where nothing was timed.
    """
    asked = {"workload": prices.TIMED, "algorithm": front.RUN[1], "sparsity": 0.0}
    alike = " and ".join(f"{name} == {value!r}" for name, value in asked.items())

    def timed() -> dict[str, object]:
        own = prices.searched().query(f"{alike} and not cpu")
        if own.empty:
            return {"gpu": None, "step": (None, None)}
        return {"gpu": own.device.iloc[0], "step": prices.seconds_of_a_step(own)}

    known, dense = kept("sheet-gpu", timed), front.critical().query(alike)
    if known["gpu"] is None or dense.empty:
        return dict.fromkeys(GPU)
    (overhead, example), row = known["step"], dense.iloc[0]
    best = math.sqrt(row.critical * overhead / example)
    critical = ranged(row.critical, row.critical_low, row.critical_high)
    milliseconds = 1000 * overhead, 1000 * example
    told = workload(prices.TIMED).title, *milliseconds, overhead / example, critical, best
    return dict(zip(GPU, (known["gpu"], *told)))


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
        **on_gpu(),
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
