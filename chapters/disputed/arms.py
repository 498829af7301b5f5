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
    """K* against batch size, by arm.

    Args:
        rows: a row per search and goal, as of `scaling.curve_of`, with goal and replicate.
        arm: the column that tells arms apart.
        goal: one of the goals.
    """
    rows = rows[rows.goal == goal] if len(rows) else rows
    by_arm = rows.assign(split=rows.replicate).groupby(arm) if len(rows) else ()
    return {name: scaling.curve_of(some) for name, some in by_arm}


def over(
    known: dict[object, Curve],
    ratio: Callable[[Curve, Curve], object],
    one: object,
    other: object,
) -> object | None:
    """A ratio of the curves of two arms; None where one is not measured."""
    return ratio(known[one], known[other]) if {one, other} <= known.keys() else None


def table(rows: Iterable[Row]) -> pd.DataFrame:
    """Estimates beside what was predicted before the records."""
    rows = list(rows)
    found = told.predictions(
        (what, low or 0, high or 0, _ends(came)) for what, low, high, came in rows
    )
    without = [high is None for _, _, high, _ in rows]
    found.loc[without, ["predicted", "fits"]] = "—"
    return found


def _ends(came: object) -> object:
    """An estimate of a ratio with the ends of its interval; anything else as it is."""
    return told.interval(came) if isinstance(came, Effect) else came


def by_goal(rows: Callable[[float], list[Row]], goals: dict[float, str]) -> pd.DataFrame:
    """`table` at the first goal, and a column of estimates at each of the others.

    Args:
        rows: of the table at a goal.
        goals: what each column is called.
    """
    (first, name), *others = goals.items()
    found = table(rows(first)).rename(columns={told.MEASURED: name})
    for goal, name in others:
        found[name] = [told.times(effect) for *_, effect in rows(goal)]
    return found
