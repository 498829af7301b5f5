"""Arms of an experiment compared: their searches, their curves, and ratios between curves."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from lib.analysis import scaling
from lib.analysis.scaling import Curve


def searches(rows: pd.DataFrame, **arm: object) -> pd.DataFrame:
    """The rows with these values in these columns."""
    return rows[(rows[[*arm]] == list(arm.values())).all(axis=1)]


def curves(rows: pd.DataFrame, arm: str, goal: float) -> dict[object, Curve]:
    """K* against batch size, by the column `arm`; rows: as for `scaling.curve_of`, with goal and
    replicate.
    """
    if not len(rows):
        return {}
    by_arm = rows[rows.goal == goal].assign(split=rows.replicate).groupby(arm)
    return {name: scaling.curve_of(part) for name, part in by_arm}


def ratio(
    curves: dict[object, Curve], estimate: Callable, above: object, below: object
) -> object | None:
    """An estimate from the curves of two arms; None unless both are measured."""
    return estimate(curves[above], curves[below]) if {above, below} <= curves.keys() else None
