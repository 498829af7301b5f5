"""The three regimes of a curve, by the operational definitions of this book."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib import require
from lib.analysis.scaling.steps import point_of

TOLERANCE = 0.2  # of the operational definitions of the regimes
BEFORE, PERFECT = "more examples than larger batches", "perfect scaling"
DIMINISHING, MAXIMAL = "diminishing returns", "maximal data parallelism"


@dataclass(frozen=True)
class Regimes:
    """Where one curve changes regime, in batch sizes (examples).

    start: the smallest size whose total of examples is within the tolerance of the least;
    perfect_end: the largest size up to which scaling is perfect; useful_end: the smallest size from
    which on the steps stay within the tolerance of the least.  reaches_plateau: whether at least
    two sizes lie on the floor, without which useful_end is only a lower bound.
    """

    start: float
    perfect_end: float
    useful_end: float
    reaches_plateau: bool


def regimes(curve: pd.DataFrame) -> Regimes:
    """The regimes of one curve (batch_size, steps) by the operational definitions of this book.

    Let B0 be the smallest size whose examples B K*(B) are at most 1 + TOLERANCE times the least.
    Scaling is perfect at B if K*(B) <= (1 + TOLERANCE) K*(B0) B0 / B there and at every size from
    B0 on. Raises ValueError if a batch size stands twice or no cell met the goal.
    """
    curve = one_curve(curve)
    return regimes_of(curve.batch_size.to_numpy(float), curve.steps.to_numpy(float))


def regimes_of(b: np.ndarray, k: np.ndarray) -> Regimes:
    """`regimes` of sizes [n] (increasing) and steps [n]."""
    ends = [float(end[0]) for end in regime_ends(b, k[None])]
    on_floor = near(k, k.min()) & (b >= ends[2])
    return Regimes(*ends, bool(on_floor[-1] and on_floor.sum() >= 2))


def near(values: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Which values are at most TOLERANCE over the least."""
    return values <= (1 + TOLERANCE) * least


def one_curve(curve: pd.DataFrame) -> pd.DataFrame:
    curve = curve[curve.steps.notna()].sort_values("batch_size")
    given = f"{len(curve)} rows with {curve.batch_size.nunique()} batch sizes"
    require(curve.batch_size.is_unique and len(curve), "curve", given, "one row per size")
    return curve


def label(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves with `regime`, local `slope` (d log2 K* / d log2 B from the size before) and `perfect`
    (steps if scaling had stayed perfect from the smallest size), for every curve in the table."""
    keys = [*(c for c in point_of(curves) if c != "batch_size"), "goal"]
    parts = [_label_one(one_curve(own)) for _, own in curves.groupby(keys, dropna=False)]
    return pd.concat(parts, ignore_index=True)


def _label_one(curve: pd.DataFrame) -> pd.DataFrame:
    found = regimes(curve)
    b = curve.batch_size
    k = curve.steps
    regime = np.select([b < found.start, b <= found.perfect_end], [BEFORE, PERFECT], DIMINISHING)
    if found.reaches_plateau:
        regime = np.where((b >= found.useful_end) & (b > found.perfect_end), MAXIMAL, regime)
    slope = np.log2(k).diff() / np.log2(b).diff()
    return curve.assign(regime=regime, slope=slope, perfect=k.iloc[0] * b.iloc[0] / b)


def regime_ends(b: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """start, perfect_end and useful_end [draws], as `regimes` finds them.

    b: sizes [n] (increasing); k: steps [draws, n].
    """
    examples = b * k
    first = np.argmax(near(examples, examples.min(1, keepdims=True)), axis=1)[:, None]
    base = np.take_along_axis(examples, first, 1)
    cheap = (np.arange(len(b)) < first) | near(examples, base)
    last = np.logical_and.accumulate(cheap, axis=1).sum(1) - 1
    # From the largest size down
    floor = np.logical_and.accumulate(near(k, k.min(1, keepdims=True))[:, ::-1], axis=1).sum(1)
    return b[first[:, 0]], b[last], b[len(b) - np.maximum(floor, 1)]
