"""What the batch-size sheet says, as numbers and words."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from chapters.sheet import decide
from lib.claims import AGAINST, FOR, Claim, front
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
    dense = _dense()
    timed = timings.one_core(front.RUN[0])
    known = boxes.some(pd.DataFrame() if timed is None else timed, "step times")
    times = known[known.batch_size.isin(SIZES)]
    pairs = list(zip(times.batch_size.tolist(), times.seconds.tolist()))
    return pairs, float(dense.critical.iloc[0])


def _dense() -> pd.DataFrame:
    """The critical batch size of the front page's network, in one row."""
    name, algorithm = front.RUN
    curves = front.critical()
    own = curves[(curves.workload == name) & (curves.algorithm == algorithm)]
    return boxes.some(own[own.sparsity == 0], "searches")


def findings(
    judged: Mapping[str, Claim], times: decide.Points, critical: float
) -> dict[str, object]:
    """All values of the page's sentences; times and critical: of `example`."""
    choice, run, dense = decide.decide(times, critical), front.one_run(), _dense()
    # On one core all the time: the cheapest is the soonest
    cheapest = run.loc[run.price.idxmin()] if len(run) else None
    return {
        "network": workload(front.RUN[0]).title,
        "method": named(front.RUN[1]),
        "times": [f"{1000 * seconds:.2g} ms at {size}" for size, seconds in times],
        "critical": critical,
        "critical_range": dense[["critical_low", "critical_high"]].iloc[0].tolist(),
        "searches": int(dense.replicates.iloc[0]),
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
        "form": _effects(judged["L6"]),
        "accuracy": _effects(judged["S14"]),
        "pruned": _effects(judged["L3"]),
        "pruned_critical": _effects(judged["L4"]),
        **_messages(judged["T4"], judged["T5"]),
        **_rivals(judged["O2"]),
        "late": _effects(judged["A1"]),
        **{key: prose.pill(judged[key]) for key in CLAIMS},
    }


def _messages(top_k: Claim, gaussian: Claim) -> dict[str, object]:
    """Points of test error that Top-k and Gaussian-k lose; of an interval without a lower end, its
    upper end.
    """
    several = [g for g in top_k.groups if g.n >= SEVERAL and g.high < math.inf]
    known = [g.effect for g in several if g.low > -math.inf]
    bounds = [g.high for g in several if g.low == -math.inf]
    worse = gaussian.decided(AGAINST)
    return {
        "top_k": between(*known) if known else None,
        "top_k_most": max(bounds, default=None),
        "gaussian": between(*(g.effect for g in worse)) if worse else None,
        "gaussian_least": min((g.low for g in worse), default=None),
        "gaussian_on": [g.name for g in worse],
    }


def _rivals(claim: Claim) -> dict[str, object]:
    """In how many comparisons plain methods keep up with LARS and LAMB."""
    return {
        "rivals": len(claim.measured),
        "kept_up": len(claim.decided(FOR)),
        "kept_within": f"{claim.threshold:g}",
    }


def _effects(claim: Claim, method: str = "") -> str:
    """The least and the most of a claim's effects on networks of several searches, of those whose
    name ends with a method.
    """
    ending = f", {method}" if method else ""
    several = [g for g in claim.groups if g.n >= SEVERAL]
    return between(*(g.effect for g in several if g.name.endswith(ending)))
