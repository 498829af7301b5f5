"""What the page of answers says, as numbers and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from chapters.answers import shares
from lib.analysis import hardware, scaling
from lib.analysis.ranges import built_up, effective
from lib.claims import AGAINST, FOR, UNDECIDED, Claim, front, judging
from lib.claims.judging import kept
from lib.page import boxes, prose
from lib.probes import timings
from lib.wording import between, named, percent, ranged
from lib.workloads.catalogue import workload

SEVERAL = 3  # searches of a network that counts
NEAR = 3  # times the fastest trial's steps: fast
SIZES = 4  # batch sizes that a slope takes
APART = 16  # factor between two batch sizes that tell the critical one
NEAR_C = 2  # factor within which they tell it
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
        **_pruned(),
        **_pairs(dense),
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
    names = "fastest", "fast_cores", "cheapest", "largest", "dearer", "run_searches"
    if run.empty:
        return dict.fromkeys(names)
    fast, cheap, last = run.loc[run.seconds.idxmin()], run.loc[run.price.idxmin()], run.iloc[-1]
    return {
        "fastest": f"{fast.batch_size} ({front.best_sizes(run, 'soonest')})",
        "fast_cores": int(fast.fast),
        "cheapest": f"{cheap.batch_size} ({front.best_sizes(run, 'cheapest')})",
        "largest": int(last.batch_size),
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
    """Critical batch size over noise scale, where this is decided and where not."""
    known = claim.decided(FOR) + claim.decided(AGAINST)
    rest = [g for g in claim.decided(UNDECIDED) if g.n and g.high < np.inf]
    networks = [g.name.rpartition(" on ")[2] for g in known]
    data = dict.fromkeys(name.partition(",")[0] for name in networks)
    effects = [g.effect for g in known]
    splits = [g.n for g in known]
    return {
        "over_noise": between(*effects),
        "noise_networks": len(known),
        "noise_data": list(data),
        "noise_splits": max(splits, default=0),
        "noise_open": [f"{ranged(g.effect, g.low, g.high)} with {g.name}" for g in rest],
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


def _pruned() -> dict[str, object]:
    """What pruned networks cost in steps, and how a step's time grows with the batch."""
    timed = timings.one_core(front.RUN[0])
    sizes = (16, 1024)
    ratio = None
    if timed is not None:
        few, many = hardware.interpolated(timed, np.array(sizes))
        ratio = float(many / few)
    return {
        "pruned": between(*front.pruned_over_dense().ratio),
        "examples_ratio": sizes[1] // sizes[0],
        "step_ratio": ratio,
    }


# --- two batch sizes ------------------------------------------------------------------------------


def _pairs(dense: pd.DataFrame) -> dict[str, object]:
    """How often single searches at two batch sizes tell the critical batch size within `NEAR_C`,
    where one lies below it and the other above, and where both lie on one side.
    """

    def compute() -> dict[str, list]:
        curves = judging.curves()
        keys = dense[scaling.CURVE].itertuples(index=False, name=None)
        tables = [pairs(curves[key], c) for key, c in zip(keys, dense.critical)]
        return pd.concat(tables).to_dict("list")

    found = pd.DataFrame(kept("answers-pairs", compute))
    near = found.over.between(1 / NEAR_C, NEAR_C)
    return {
        "apart": APART,
        "pairs": len(found),
        "near_around": percent(near[found.around].mean()),
        "near_aside": percent(near[~found.around].mean()),
    }


def pairs(curve: scaling.Curve, critical: float) -> pd.DataFrame:
    """A row per search and pair of batch sizes B and `APART` B of a curve: over, the critical batch
    size that the ratio of their steps gives over the curve's; around, whether that lies between B
    and `APART` B.

    Steps as 1 + C/B: ratio = (1 + C/B) / (1 + C/(APART B)).
    """
    logs = curve.logs.where(~curve.missed)
    tables = []
    for size in logs.columns.intersection(logs.columns / APART):
        large = APART * size
        difference = logs[size] - logs[large]
        ratio = np.exp(difference).dropna()
        told = size * (ratio - 1) / (1 - ratio / APART)
        # Steps that fall as fast as batches grow have no end in sight
        told = told.where(ratio < APART, np.inf)
        around = size <= critical <= large
        rows = {"over": told / critical, "around": around}
        tables.append(pd.DataFrame(rows))
    return pd.concat(tables) if tables else pd.DataFrame()
