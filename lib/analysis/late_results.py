"""What late gradients cost: curves of every staleness beside the one without delay, and workers that do not wait beside a batch.

A curve is told by LATE: workload, algorithm, delays ("fixed" or "uniform") and staleness; without delay, delays is "fixed".
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from lib.analysis import evidence, late_quadratic, scaling
from lib.analysis.scaling import Curve
from lib.studies import plans
from lib.studies.study import Study
from lib.wording import named

LATE = ["workload", "algorithm", "delays", "staleness"]
SEVERAL = 3  # searches from which on a claim is judged
PLACES = 40  # along a line
JUDGED = 7  # the staleness at which methods and depths are compared


def measured() -> Study:
    """The cells of the studies of late gradients."""
    return Study("late", "Late gradients", tuple(c for name in plans.LATE_STUDIES for c in plans.study(name).cells))


def comparable(trials: pd.DataFrame) -> pd.DataFrame:
    """The table with each workload at the hardest goal that every search of all its curves met; the table's if there is none."""
    if not len(trials):
        return trials
    curve = trials.delays + trials.staleness.astype(str)  # for `well_met`, by which curves of one goal are told apart
    ladder = {name: scaling.well_met(own.assign(pruning=curve[own.index])) for name, own in trials.groupby("workload")}
    return scaling.at_goals(trials, {name: goal for name, goal in ladder.items() if goal is not None})


def curves(trials: pd.DataFrame) -> dict[tuple, Curve]:
    """Every curve of the table at its goal, by LATE."""
    if not len(trials):
        return {}
    searches = scaling.steps_to_result(trials)
    return {key: scaling.curve_from(own) for key, own in searches.groupby(LATE)}


def points(trials: pd.DataFrame) -> pd.DataFrame:
    """`scaling.across_replicates` of every curve, one below the other."""
    searches = scaling.steps_to_result(trials).groupby(LATE)
    return pd.concat([scaling.across_replicates(own) for _, own in searches], ignore_index=True)


def known(found: dict[tuple, Curve], workload: str, algorithm: str) -> list[int]:
    """The fixed delays, 0 first, of which a method has curves on a workload; none without the curve on time."""
    of = sorted(s for work, method, delays, s in found if (work, method, delays) == (workload, algorithm, "fixed"))
    return of if of[:1] == [0] else []


def timely(key: tuple) -> tuple:
    """The curve without delay of the same workload and method."""
    return (*key[:2], "fixed", 0)


def slower(found: dict[tuple, Curve], key: tuple) -> pd.DataFrame:
    """Steps of a late curve over those without delay [draws, batch sizes], on shared searches; empty if one is not measured.

    At `plans.LATE_SIZES` alone, which all late curves have.
    """
    if key not in found or timely(key) not in found:
        return pd.DataFrame()
    ratios = scaling.steps_ratio(found[key], found[timely(key)])
    return ratios[[size for size in ratios if size in plans.LATE_SIZES]]


def mean(ratios: pd.DataFrame) -> np.ndarray:
    """The geometric mean over batch sizes [draws]; of an empty table, nothing."""
    return np.exp(np.log(ratios).mean(axis=1)).to_numpy() if ratios.size else np.empty(0)


def growth(found: dict[tuple, Curve]) -> pd.DataFrame:
    """A row per late curve: LATE, and medians with 5 and 95 % (`scaling.ranged`) of what late over timely is.

    small, large: steps at the smallest and at the largest of these batch sizes (columns smallest, largest); mean: their
    geometric mean over all sizes; c2: of the floors.  floor: what `late_quadratic` says of it for fixed delays, else NaN.
    """
    rows = []
    for key, curve in found.items():
        ratios = slower(found, key)
        if key == timely(key) or not ratios.size:
            continue
        c2 = scaling.ratios(curve, found[timely(key)], "c2")
        c2 = c2 if len(c2) else np.array([np.nan])
        ends = {"small": ratios.iloc[:, 0].to_numpy(), "large": ratios.iloc[:, -1].to_numpy(), "mean": mean(ratios), "c2": c2}
        rows.append({
            **dict(zip(LATE, key, strict=True)), "smallest": ratios.columns[0], "largest": ratios.columns[-1],
            "floor": floor(key[3]) if key[2] == "fixed" else np.nan,
            **{name: value for end, draws in ends.items() for name, value in scaling.ranged(end, draws).items()},
        })  # fmt: skip
    told = [f"{name}{end}" for name in ("small", "large", "mean", "c2") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=[*LATE, "smallest", "largest", "floor", *told])


def floor(staleness: int) -> float:
    """By what factor the stable rate falls, and the floor of the noisy quadratic model rises, with plain SGD."""
    return late_quadratic.stability_limit(0) / late_quadratic.stability_limit(staleness)


def lines(points: pd.DataFrame, predict: bool) -> pd.DataFrame:
    """A line for every staleness of a method, along the batch sizes of its points: staleness, batch_size, steps.

    predict: c1/B + `floor` c2 with the constants of the curve without delay; else each staleness has constants of its own.
    points: of `points`, of one method and kind of delays.  A staleness with fewer than three sizes has no line.
    """
    own = {s: part for s, part in points.groupby("staleness") if len(part) >= 3}
    fits = {s: scaling.fit_hyperbola(part.batch_size, part.steps) for s, part in own.items()}
    rows = []
    for s, part in own.items():
        one, times = (fits[0], floor(s)) if predict else (fits[s], 1.0)
        for b in np.geomspace(part.batch_size.min(), part.batch_size.max(), PLACES):
            rows.append((s, b, one.c1 / b + times * one.c2))
    return pd.DataFrame(rows, columns=["staleness", "batch_size", "steps"])


def advantage(found: dict[tuple, Curve], workload: str, algorithm: str, over: str = "sgd") -> pd.DataFrame:
    """Steps of one method over those of another with delays as long: a row per fixed staleness.

    staleness, batch_size (the largest of both), ratio with ratio_low and ratio_high.
    """
    rows = []
    for (work, method, delays, s), curve in found.items():
        other = found.get((workload, over, delays, s))
        if (work, method, delays) == (workload, algorithm, "fixed") and other is not None:
            large = scaling.steps_ratio(other, curve).iloc[:, -1]
            rows.append({"staleness": s, "batch_size": int(large.name), **scaling.ranged("ratio", large.to_numpy())})
    columns = ["staleness", "batch_size", "ratio", "ratio_low", "ratio_high"]
    return pd.DataFrame(rows, columns=columns).sort_values("staleness", ignore_index=True)


def without_waiting(found: dict[tuple, Curve], workload: str, algorithm: str) -> pd.DataFrame:
    """W workers that take turns against one synchronous batch of W times theirs: a row per W and batch size b of a worker.

    ratio: gradients to the goal, K_{W-1}(b) / (W K_0(W b)), the median with 5 and 95 % over draws on shared searches (ratio_low,
    ratio_high), and draws.  workers, batch_size (b), together (W b).
    """
    base = found.get((workload, algorithm, "fixed", 0))
    rows = []
    for (work, method, delays, s), curve in found.items():
        if (work, method, delays) != (workload, algorithm, "fixed") or not s or base is None:
            continue
        workers = s + 1
        logs = base.logs.rename(columns=dict(zip(base.logs, base.logs.columns / workers, strict=True)))
        shared = dataclasses.replace(base, logs=logs[[c for c in logs if c in curve.logs]])
        if shared.logs.shape[1]:
            for b, ratio in (scaling.steps_ratio(curve, shared) / workers).items():
                rows.append({"workers": workers, "batch_size": int(b), "together": int(b) * workers,
                             **scaling.ranged("ratio", ratio), "draws": ratio.to_numpy()})  # fmt: skip
    columns = ["workers", "batch_size", "together", "ratio", "ratio_low", "ratio_high", "draws"]
    return pd.DataFrame(rows, columns=columns).sort_values(["workers", "batch_size"], ignore_index=True)


def by_workers(pairs: pd.DataFrame) -> pd.DataFrame:
    """The geometric mean over batch sizes of `without_waiting`, a row per W: workers, sizes, ratio, ratio_low, ratio_high."""
    rows = []
    for workers, own in pairs.groupby("workers"):
        draws = np.exp(np.mean(np.log(np.stack(own.draws.tolist())), axis=0))
        rows.append({"workers": workers, "sizes": len(own), **scaling.ranged("ratio", draws)})
    return pd.DataFrame(rows, columns=["workers", "sizes", "ratio", "ratio_low", "ratio_high"])


# --- claims -----------------------------------------------------------------------------------------------------------


def claimed(found: dict[tuple, Curve], staleness: int = JUDGED) -> dict[str, pd.DataFrame]:
    """The effects that the claims on late gradients are judged by, by their keys; empty where they are not measured.

    Delays are fixed.  A group's ratio is the geometric mean over batch sizes.
    """
    cost = {(work, method): mean(slower(found, (work, method, "fixed", staleness))) for work, method, *_ in found}
    cost = {key: draws for key, draws in cost.items() if len(draws) and _searches(found, key) >= SEVERAL}
    own = {method: draws for (work, method), draws in cost.items() if work == "digits-mlp"}
    plain = own.get("sgd")
    rivals = [(named(m), [draws / plain]) for m, draws in own.items() if m != "sgd" and plain is not None]
    deep, shallow = (cost.get((f"digits-mlp-64x{depth}", "sgd")) for depth in (4, 1))
    both = deep is not None and shallow is not None
    return {
        "A1": evidence.pooled((named(m), [draws]) for m, draws in own.items()),
        "A2": evidence.pooled(rivals),
        "A3": evidence.pooled([("four hidden layers", [deep / shallow])] if both else []),
    }


def _searches(found: dict[tuple, Curve], key: tuple) -> int:
    return len(found[*key, "fixed", 0].logs.dropna(how="all"))
