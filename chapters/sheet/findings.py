"""What the batch-size sheet says, as numbers and words."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from chapters.sheet import decide
from lib.claims import Claim, front
from lib.page import boxes, prose
from lib.probes import timings
from lib.wording import between, named, percent
from lib.workloads.catalogue import workload

SEVERAL = 3  # searches of a network that counts
SIZES = (16, 64, 256)  # batch sizes of the worked example
CLAIMS = "L3 L4 L6 M1 S2 S4 S7 S10 S10b S14 T4 T5 A1 O2".split()


def example() -> tuple[decide.Points, float]:
    """The worked example: seconds of a step of the front page's network on one core, and its
    critical batch size.

    Raises:
        Told: if either is not on record.
    """
    name, algorithm = front.RUN
    curves = front.critical()
    own = curves[(curves.workload == name) & (curves.algorithm == algorithm)]
    dense = boxes.some(own[own.sparsity == 0], "searches")
    timed = timings.one_core(name)
    known = boxes.some(pd.DataFrame() if timed is None else timed, "step times")
    times = known[known.batch_size.isin(SIZES)]
    pairs = list(zip(times.batch_size.tolist(), times.seconds.tolist()))
    return pairs, float(dense.critical.iloc[0])


def findings(
    judged: Mapping[str, Claim], times: decide.Points, critical: float
) -> dict[str, object]:
    """All values of the page's sentences; times and critical: of `example`."""
    choice, run = decide.decide(times, critical), front.one_run()
    # On one core all the time: the cheapest is the soonest
    cheapest = run.loc[run.price.idxmin()] if len(run) else None
    return {
        "network": workload(front.RUN[0]).title,
        "method": named(front.RUN[1]),
        "times": [f"{1000 * seconds:.2g} ms at {size}" for size, seconds in times],
        "critical": critical,
        "overhead": 1000 * choice.overhead,
        "example": 1000 * choice.example,
        "best": choice.best,
        "low": choice.low,
        "high": choice.high,
        "searched_best": None if cheapest is None else int(cheapest.batch_size),
        "more": percent(decide.MORE),
        "sgd_rate": _effects(judged["S10"], "SGD"),
        "momentum_rate": _effects(judged["S10"], "momentum"),
        "momentum": _effects(judged["S7"]),
        "noise": _effects(judged["M1"]),
        "goal": _effects(judged["S2"]),
        "accuracy": _effects(judged["S14"]),
        "pruned": _effects(judged["L3"]),
        "pruned_critical": _effects(judged["L4"]),
        "top_k": _effects(judged["T4"]),
        "gaussian": _effects(judged["T5"], without="density warmed up"),
        "late": _effects(judged["A1"]),
        **{key: prose.pill(judged[key]) for key in CLAIMS},
    }


def _effects(claim: Claim, method: str = "", without: str = "—") -> str:
    """The least and the most of a claim's effects on networks of several searches, of those whose
    name ends with a method, or has no such note.
    """
    ending = f", {method}" if method else ""
    several = [g for g in claim.groups if g.n >= SEVERAL and without not in g.name]
    return between(*(g.effect for g in several if g.name.endswith(ending)))
