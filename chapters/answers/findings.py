"""What the page of answers says, as numbers and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from chapters.answers import shares
from lib.analysis import hardware, scaling
from lib.analysis.ranges import built_up, effective
from lib.claims import Claim, front, judging
from lib.claims.judging import kept
from lib.page import boxes, prose
from lib.probes import timings
from lib.wording import between, named, percent
from lib.workloads.catalogue import workload

SEVERAL = 3  # searches of a network that counts
NEAR = 3  # times the fastest trial's steps: fast
SIZES = 4  # batch sizes that a slope takes
DROPPED = 1024  # examples of a batch, for what the last one leaves out
PLACES = {"below": (0, 0.25), "at": (0.7, 1.4), "above": (4, np.inf)}  # of the critical batch size
CLAIMS = ("S4", "S7", "S10", "S10b", "L3", "M1", "W2")


def findings(judged: Mapping[str, Claim]) -> dict[str, object]:
    """All values of the page's sentences.

    Raises:
        Told: if no curve of several searches is on record.
    """
    critical, points = front.critical(), front.curves()
    dense = critical[critical.identified & (critical.sparsity == 0)]
    dense = boxes.some(dense[dense.replicates >= SEVERAL], "curves")
    return {
        **_limits(dense),
        **_one_run(front.one_run()),
        **_rates(judged["S10"]),
        **_shares(),
        **_slope(dense, points),
        **_noise(judged["M1"]),
        **_pruned(judged["L3"]),
        **_decayed(judged.get("W2")),
        **{key: prose.pill(judged[key]) if key in judged else None for key in CLAIMS},
    }


def _limits(dense: pd.DataFrame) -> dict[str, object]:
    """Where critical batch sizes lie."""
    titles = [workload(name).title for name in dense.workload]
    known = dense.assign(title=titles).sort_values("critical")
    first, last = known.iloc[0], known.iloc[-1]
    return {
        "curves": len(dense),
        "critical_least": float(first.critical),
        "critical_least_on": f"{first.title}, {named(first.algorithm)}",
        "critical_most": float(last.critical),
        "critical_most_on": f"{last.title}, {named(last.algorithm)}",
    }


def _one_run(run: pd.DataFrame) -> dict[str, object]:
    """What one training takes at its fastest, cheapest and largest batch size."""
    names = "fastest", "fast_cores", "cheapest", "largest", "slower", "dearer", "run_searches"
    if run.empty:
        return dict.fromkeys(names)
    fast, cheap, last = run.loc[run.seconds.idxmin()], run.loc[run.price.idxmin()], run.iloc[-1]
    return {
        "fastest": int(fast.batch_size),
        "fast_cores": int(fast.fast),
        "cheapest": int(cheap.batch_size),
        "largest": int(last.batch_size),
        "slower": float(last.seconds / fast.seconds),
        "dearer": float(last.price / cheap.price),
        "run_searches": between(*run.replicates),
    }


# --- learning rates -------------------------------------------------------------------------------


def _rates(claim: Claim) -> dict[str, object]:
    """Growth of the best rate per doubling of the batch, and of the weight decay that keeps its
    strength per pass over the data.
    """
    plain = _effects(claim, "SGD")
    found = kept("answers-adam", lambda: growths("adam"))
    adam = found.values()
    return {
        "sgd_rate": between(*plain),
        "momentum_rate": between(*_effects(claim, "momentum")),
        "adam_rate": between(*adam),
        "adam_on": list(found),
        "decay": between(*(2 / rate for rate in plain)),
        "decay_adam": between(*(2 / rate for rate in adam)),
    }


def _effects(claim: Claim, method: str) -> list[float]:
    """A claim's effects with a method on networks of several searches."""
    return [g.effect for g in claim.groups if g.n >= SEVERAL and g.name.endswith(f", {method}")]


def growths(algorithm: str) -> dict[str, float]:
    """The factor by which the effective rate of fast trials grows per doubling of the batch, for
    each network of several searches, by its title: the mean over searches of their slopes.
    """
    trials = judging.trials()
    own = trials[(trials.algorithm == algorithm) & (trials.sparsity == 0)].dropna(subset="steps")
    search = [*scaling.SEARCH, "workload"]
    least = own.groupby([*search, "batch_size"]).steps.transform("min")
    fast = built_up(own[own.steps <= NEAR * least])
    found = {}
    for key, one in fast.groupby(search):
        if one.batch_size.nunique() >= SIZES:
            line = scaling.slope(np.log2(one.batch_size), np.log(effective(one)))
            found.setdefault(key[-1], []).append(line.value)
    several = {name: slopes for name, slopes in found.items() if len(slopes) >= SEVERAL}
    return {workload(name).title: float(np.exp(np.mean(s))) for name, s in several.items()}


# --- shares of a batch ----------------------------------------------------------------------------


def _shares() -> dict[str, object]:
    """What shares of a batch do to its gradient."""
    found = kept("answers-shares", shares.measured)
    images = workload("digits-mlp").train_size
    return {
        "parts": shares.SHARES,
        "first_share": shares.UNEQUAL[0],
        "other_share": shares.UNEQUAL[1],
        "equal": found["equal"],
        "unequal": percent(found["unequal"]),
        "normalised": percent(found["normalised"]),
        "summed": found["summed"],
        "images": images,
        "dropping": DROPPED,
        "dropped": percent(images % DROPPED / images),
        "noise": found["noise"],
        "clipped": found["clipped"],
    }


# --- which batch size -----------------------------------------------------------------------------


def _slope(dense: pd.DataFrame, points: pd.DataFrame) -> dict[str, object]:
    """The share of the steps that a doubled batch saved, far below, at and far above the critical
    batch size, over all curves; and what a batch that is off by a factor of four costs at most.
    """
    shares = {place: [] for place in PLACES}
    for row in dense.itertuples():
        own = points[(points.workload == row.workload) & (points.algorithm == row.algorithm)]
        for size, saved in doublings(own[own.sparsity == 0]):
            for place, (low, high) in PLACES.items():
                if low <= size / row.critical <= high:
                    shares[place].append(saved)
    told = {place: percent(np.median(all_)) if all_ else None for place, all_ in shares.items()}
    saved = {f"saved_{place}": text for place, text in told.items()}
    return {**saved, "off_4": percent(most_lost(4))}


def doublings(curve: pd.DataFrame) -> Iterable[tuple[float, float]]:
    """(batch size, share of the steps saved) of every doubling that was measured on a curve."""
    steps = curve.groupby("batch_size").steps.first()
    for size in steps.index.intersection(steps.index / 2):
        yield float(size), float(1 - steps[2 * size] / steps[size])


def most_lost(factor: float) -> float:
    """The largest share of time that is lost by a batch this factor off the fastest, where steps
    are c1/B + c2 and a step takes a + b B seconds.

    The time is a sum of a constant and of two terms, one rising and one falling in B, which are
    equal at the best batch size; together they are at most half of it.
    """
    return (factor + 1 / factor - 2) / 4


def _noise(claim: Claim) -> dict[str, object]:
    """Critical batch size over noise scale."""
    several = [g for g in claim.groups if g.n >= SEVERAL]
    single = [g.effect for g in claim.groups if 0 < g.n < SEVERAL]
    return {
        "over_noise": between(*(g.effect for g in several)),
        "noise_networks": len(several),
        "single_noise": between(*single) if single else None,
    }


def _decayed(claim: Claim | None) -> dict[str, object]:
    """How the timescale of Adam's best weight decay moved with the batch; None each where that was
    not measured.
    """
    known = [g for g in (claim.groups if claim else ()) if g.name.endswith("Adam") and g.n]
    one = known[0] if known else None
    names = {"decay_moves": "effect", "decay_low": "low", "decay_high": "high"}
    found = {key: one and getattr(one, field) for key, field in names.items()}
    # The note says that no gain is shown
    return {**found, "decay_idle": bool(one and one.note)}


# --- pruning --------------------------------------------------------------------------------------


def _pruned(claim: Claim) -> dict[str, object]:
    """What pruned networks cost in steps, and how a step's time grows with the batch."""
    several = [g.effect for g in claim.groups if g.n >= SEVERAL]
    timed = timings.one_core(front.RUN[0])
    sizes = (16, 1024)
    ratio = None
    if timed is not None:
        few, many = hardware.interpolated(timed, np.array(sizes))
        ratio = float(many / few)
    return {
        "pruned": between(*several),
        "examples_ratio": sizes[1] // sizes[0],
        "step_ratio": ratio,
    }
