"""The three regimes of a curve, by the operational definitions of this book."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.analysis.scaling.steps import point_of

TOLERANCE = 0.2  # of the operational definitions of the regimes
BEFORE, PERFECT = "more examples than larger batches", "perfect scaling"
DIMINISHING, MAXIMAL = "diminishing returns", "maximal data parallelism"


@dataclass(frozen=True)
class Regimes:
    """Where one curve changes regime, in batch sizes (examples).

    start: the smallest size whose total of examples is within the tolerance of the least;
    perfect_end: the largest size up to which scaling is perfect; useful_end: the smallest size from
    which on the steps stay within the tolerance of the least.  leaves_perfect: whether a larger
    size than perfect_end was measured; reaches_plateau: whether at least two sizes lie on the
    floor, without which useful_end is only a lower bound; rises: whether the largest size takes
    more steps than the least by more than the tolerance.
    """

    start: float
    perfect_end: float
    useful_end: float
    leaves_perfect: bool
    reaches_plateau: bool
    rises: bool


def regimes(curve: pd.DataFrame) -> Regimes:
    """The regimes of one curve (batch_size, steps) by the operational definitions of this book.

    Let B0 be the smallest size whose examples B K*(B) are at most 1 + TOLERANCE times the least.
    Scaling is perfect at B if K*(B) <= (1 + TOLERANCE) K*(B0) B0 / B there and at every size from
    B0 on. Raises ValueError if a batch size stands twice or no cell met the goal.
    """
    curve = one_curve(curve)
    b, k = curve.batch_size.to_numpy(float), curve.steps.to_numpy(float)
    [end], [useful] = regime_ends(b, k[None])
    start = b[np.argmax(b * k <= (1 + TOLERANCE) * (b * k).min())]
    low = k <= (1 + TOLERANCE) * k.min()
    on_floor = low[b >= useful].sum() if low[-1] else 0
    return Regimes(start, end, useful, bool(end < b[-1]), bool(on_floor >= 2), not low[-1])


def one_curve(curve: pd.DataFrame) -> pd.DataFrame:
    curve = curve[curve.steps.notna()].sort_values("batch_size")
    if curve.batch_size.duplicated().any() or curve.empty:
        raise ValueError(
            f"curve: {len(curve)} rows with {curve.batch_size.nunique()} batch sizes; one row per size is needed"
        )
    return curve


def label(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves with `regime`, local `slope` (d log2 K* / d log2 B from the size before) and `perfect`
    (steps if scaling had stayed perfect from the smallest size), for every curve in the table."""
    keys = [*(c for c in point_of(curves) if c != "batch_size"), "goal"]
    return pd.concat(
        [_label_one(one_curve(c)) for _, c in curves.groupby(keys, dropna=False)], ignore_index=True
    )


def _label_one(curve: pd.DataFrame) -> pd.DataFrame:
    found, b, k = regimes(curve), curve.batch_size, curve.steps
    regime = np.select([b < found.start, b <= found.perfect_end], [BEFORE, PERFECT], DIMINISHING)
    if found.reaches_plateau:
        regime = np.where((b >= found.useful_end) & (b > found.perfect_end), MAXIMAL, regime)
    slope = np.log2(k).diff() / np.log2(b).diff()
    return curve.assign(regime=regime, slope=slope, perfect=k.iloc[0] * b.iloc[0] / b)


def regime_ends(b: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """perfect_end and useful_end [draws], as `regimes` finds them.

    b: sizes [n] (increasing); k: steps [draws, n].
    """
    examples = b * k
    start = np.argmax(examples <= (1 + TOLERANCE) * examples.min(1, keepdims=True), axis=1)
    base = np.take_along_axis(examples, start[:, None], 1)
    before = np.arange(len(b)) < start[:, None]
    perfect = np.logical_and.accumulate(before | (examples <= (1 + TOLERANCE) * base), axis=1)
    floor = np.logical_and.accumulate(
        (k <= (1 + TOLERANCE) * k.min(1, keepdims=True))[:, ::-1], axis=1
    )[:, ::-1]
    useful = np.where(floor.any(1), b[np.argmax(floor, axis=1)], b[-1])
    return b[len(b) - 1 - np.argmax(perfect[:, ::-1], axis=1)], useful


SPANNED = (
    4  # times its first batch size, at least, perfect scaling goes on where it shows: two doublings
)


def all_three(
    b: np.ndarray, k: np.ndarray, below: bool, above: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Whether curves show all three regimes, and whether they may, if measured at more batch sizes:
    two of [draws].

    Shown are perfect scaling over a factor of SPANNED, diminishing returns, and at least two sizes
    on the floor. b, k: as of `regime_ends`.  below, above: whether there are batch sizes below and
    above those measured.
    """
    end, useful = regime_ends(b, k)
    first = np.argmax(b * k <= (1 + TOLERANCE) * (b * k).min(1, keepdims=True), axis=1)
    scales, flattens = end >= SPANNED * b[first], useful < b[-1]
    may_scale, may_flatten = scales | (below & (first == 0)), flattens | above
    return scales & flattens & (useful > end), may_scale & may_flatten & (
        ~scales | ~flattens | (useful > end)
    )
