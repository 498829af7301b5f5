"""Arms of an experiment beside each other: their searches, their curves, and tables of ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Curve, Effect
from lib.page import told

# What is compared, the range predicted of it (None: none was), and the estimate: the logarithm of a
# ratio, or a value, alone or with the ends of its interval
Row = tuple[str, float | None, float | None, Effect | tuple | float | None]


def searches(rows: pd.DataFrame, **arm: object) -> pd.DataFrame:
    """The rows with these values in these columns."""
    return rows[(rows[[*arm]] == list(arm.values())).all(axis=1)]


def curves(rows: pd.DataFrame, arm: str, goal: float) -> dict[object, Curve]:
    """K* against batch size, by the column `arm`; rows: as of `scaling.curve_of`, with goal and
    replicate.
    """
    if not len(rows):
        return {}
    by_arm = rows[rows.goal == goal].assign(split=rows.replicate).groupby(arm)
    return {name: scaling.curve_of(part) for name, part in by_arm}


def ratio(
    curves: dict[object, Curve], estimate: Callable, above: object, below: object
) -> object | None:
    """An estimate from the curves of two arms; None where one is not measured."""
    return estimate(curves[above], curves[below]) if {above, below} <= curves.keys() else None


def table(rows: Iterable[Row]) -> pd.DataFrame:
    """Estimates beside what was predicted before the records."""
    rows = [
        (*row, told.interval(estimate) if isinstance(estimate, Effect) else estimate)
        for *row, estimate in rows
    ]
    frame = told.predictions(
        (what, low or 0, high or 0, value) for what, low, high, value in rows
    )
    frame.loc[[high is None for _, _, high, _ in rows], ["predicted", "fits"]] = "—"
    return frame
