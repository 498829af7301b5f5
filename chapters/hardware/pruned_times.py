"""What pruning saves in time if a core skips the zeros."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lib.analysis import scaling

GOAL = "time to the goal"
SCORED, ROUGH = f"{GOAL}, scores included", f"{GOAL}, dense in bfloat16"


def skipped(curves: dict, times: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pruned networks over their dense ones if a core skips the zeros: at every batch size, and
    each at its best.

    curves: `scaling.Curve` by key; times: of `SparseTimes`.  Both tables have the curve, what
    (GOAL, ...), ratio, ratio_low and ratio_high (`scaling.estimate`; times count as exact); the
    second has the times to the goal alone, the shortest on either side.  Raises ValueError without
    times.
    """
    if times.empty:
        raise ValueError(
            "timings: none of sparse products is on record; take them with python -m lib run timings"
        )
    rows, best = [], []
    for name, timed in times.groupby("workload"):
        scores = timed.seconds[timed.what == "scores"].item()
        dense, rough = _by_size(timed, "dense"), _by_size(timed, "dense, bfloat16")
        pruned = [key for key in curves if key[0] == name and scaling.dense_key(key) in curves]
        for key in pruned:
            few, many = curves[key], curves[scaling.dense_key(key)]
            level = _by_size(timed[timed.sparsity == key[3]], "sparse")
            sizes = [b for b in level.index if b in few.logs and b in many.logs]
            if not sizes:
                continue
            few, many = few.at(sizes), many.at(sizes)
            quick, slow, fair = (own[sizes].to_numpy() for own in (level, dense, rough))
            compared = {
                GOAL: _times_over(few, many, quick, slow),
                SCORED: _times_over(few, many, quick, slow, first=scores),
                ROUGH: _times_over(few, many, quick, fair),
                "time of a step": _times_over(few, many, quick, slow, power=0),
                "steps to the goal": _times_over(few, many, 1, 1),
            }
            for what, (every, least) in compared.items():
                for size, effect in zip(sizes, every):
                    rows.append((key, {"batch_size": size, "what": what, **effect.row("ratio")}))
                if what in (GOAL, SCORED, ROUGH):
                    best.append((key, {"what": what, **least.row("ratio")}))
    columns = ["what", "ratio", "ratio_low", "ratio_high"]
    return scaling.by_curve(rows, ["batch_size", *columns]), scaling.by_curve(best, columns)


def _by_size(timed: pd.DataFrame, what: str) -> pd.Series:
    return timed[timed.what == what].set_index("batch_size").seconds


def _times_over(
    few: scaling.Curve,
    many: scaling.Curve,
    quick: np.ndarray,
    slow: np.ndarray,
    first: float = 0.0,
    power: int = 1,
) -> tuple[list[scaling.Effect], scaling.Effect]:
    """ln of first + few^power quick over many^power slow, for few and many steps of quick and slow
    seconds [m]: at every batch size, and of the least of each.
    """

    def logs(a: tuple, b: tuple) -> tuple[np.ndarray, np.ndarray]:
        above = np.exp(power * a[1]) * quick + first
        return np.log(above), np.log(np.exp(power * b[1]) * slow)

    every = scaling.estimate(lambda a, b: np.subtract(*logs(a, b)), few, many)
    least = scaling.estimate(
        lambda a, b: np.subtract(*(side.min(1) for side in logs(a, b))), few, many
    )
    return every, least
