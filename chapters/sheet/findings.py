"""What the batch-size sheet says, as numbers and words."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from chapters.sheet import decide
from lib.claims import AGAINST, FOR, UNDECIDED, Claim, Group, front
from lib.page import boxes, prose
from lib.probes import timings
from lib.wording import between, brief, named, percent, ranged
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
        **_searched(run),
        "more": percent(decide.MORE),
        "sgd_rate": _effects(judged["S10"], "SGD"),
        "momentum_rate": _effects(judged["S10"], "momentum"),
        "momentum": _effects(judged["S7"]),
        **_noise(judged["M1"]),
        "goal": _ends(judged["S2"]),
        "form": _effects(judged["L6"]),
        "accuracy": _ends(judged["S14"]),
        "pruned": between(*front.pruned_over_dense().ratio),
        **_pruned_critical(judged["L4"]),
        **_messages(judged["T4"], judged["T5"]),
        **_rivals(judged["O2"]),
        "late": _effects(judged["A1"]),
        **{key: prose.pill(judged[key]) for key in CLAIMS},
    }


def _searched(run: pd.DataFrame) -> dict[str, object]:
    """Which batch size was the best of those searched, and which may be as good."""
    if run.empty:
        return {"searched_best": None, "searched_tied": []}
    # On one core all the time: the cheapest is the soonest
    best = int(run.batch_size[run.price.idxmin()])
    tied = run.batch_size[run.cheapest & (run.batch_size != best)]
    return {"searched_best": best, "searched_tied": tied.tolist()}


def _noise(claim: Claim) -> dict[str, object]:
    """Critical batch size over noise scale where this is decided, and on which data; and each
    network with an interval where it is not.
    """
    known = claim.decided(FOR) + claim.decided(AGAINST)
    rest = [g for g in claim.decided(UNDECIDED) if g.n and g.high < math.inf]
    networks = [g.name.rpartition(" on ")[2] for g in known]
    data = dict.fromkeys(name.partition(",")[0] for name in networks)
    effects = [g.effect for g in known]
    splits = [g.n for g in known]
    return {
        "noise": between(*effects),
        "noise_data": list(data),
        "noise_splits": max(splits, default=0),
        "noise_open": [f"{_ranged(g)} on {_network(g.name)}" for g in rest],
    }


def _pruned_critical(claim: Claim) -> dict[str, object]:
    """Critical batch size of pruned networks over the dense ones', and where it is below one."""
    below = [g.name for g in claim.groups if g.n >= SEVERAL and g.high < 1]
    return {
        "pruned_critical": _effects(claim),
        "pruned_below": list(map(_network, below)),
        "pruned_fine": f"{claim.threshold:g}",
    }


def _messages(top_k: Claim, gaussian: Claim) -> dict[str, object]:
    """Points of test error that Top-k and Gaussian-k lose, with the networks."""
    lost = [f"{_ranged(g)} with {g.name}" for g in top_k.decided(AGAINST)]
    lost += [f"at most {brief(g.high)} with {g.name}" for g in top_k.decided(FOR)]
    rest = [g.name for g in top_k.decided(UNDECIDED) if g.n >= SEVERAL]
    worse = gaussian.decided(AGAINST)
    return {
        "top_k": lost,
        "top_k_open": rest,
        "gaussian": between(*(g.effect for g in worse)) if worse else None,
        "gaussian_least": min((g.low for g in worse), default=None),
        "gaussian_on": [g.name for g in worse],
    }


def _rivals(claim: Claim) -> dict[str, object]:
    """In how many comparisons plain methods keep up with LARS and LAMB, and the others."""
    kept_up = claim.decided(FOR)
    rest = [g for g in claim.decided(UNDECIDED) if g.n]
    return {
        "rivals": len(claim.measured),
        "kept_up": len(kept_up),
        "kept_on_digits": sum(g.name.endswith(" on digits") for g in kept_up),
        "kept_open": list(map(_rival, rest)),
        "kept_within": f"{claim.threshold:g}",
    }


def _rival(group: Group) -> str:
    """What a comparison of two methods found, of its name: "Adam over LAMB, MLP on digits"."""
    methods, _, network = group.name.partition(", ")
    plain, _, rival = methods.partition(" over ")
    return f"{plain} took {_ranged(group)} times the steps of {rival} on {_network(network)}"


def _effects(claim: Claim, method: str = "") -> str:
    """The least and the most of a claim's effects on networks of several searches, of those whose
    name ends with a method.
    """
    ending = f", {method}" if method else ""
    several = [g for g in claim.groups if g.n >= SEVERAL]
    return between(*(g.effect for g in several if g.name.endswith(ending)))


def _ends(claim: Claim) -> str:
    """The least and the most of a claim's effects on networks of several searches, each with its
    interval.
    """
    several = [g for g in claim.groups if g.n >= SEVERAL]
    several.sort(key=lambda g: g.effect)
    return " to ".join(map(_ranged, [several[0], several[-1]])) if several else "—"


def _ranged(group: Group) -> str:
    return ranged(group.effect, group.low, group.high)


def _network(name: str) -> str:
    """A group's name without commas: "MLP on digits with SGD"."""
    plain = name.replace(", easier goal", " (easier goal)")
    return plain.replace(", ", " with ")
