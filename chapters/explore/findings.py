"""What the page says about its initial choice, as numbers and words."""

from __future__ import annotations

import pandas as pd

from lib.wording import brief, percent, span
from lib.workloads import catalogue


def findings(begun: pd.DataFrame, whole: bool) -> dict[str, object]:
    """All values in the page's sentences.

    Args:
        begun: lines from `explorer.tables`, for the initial choice.
        whole: whether its momentum is searched over the whole range.
    """
    choice = begun.iloc[0]
    inside = begun[begun.identified.astype(bool)].sort_values("sparsity")
    ends = inside.iloc[[0, -1]] if len(inside) > 1 else inside
    return {
        "title": catalogue.workload(choice.workload).title,
        "method": choice.algorithm,
        "whole": whole,
        "goal": percent(choice.goal),
        "critical": [f"{brief(row.critical)} {_level(row)}" for row in ends.itertuples()],
        "intervals": [_interval(row) for row in inside.itertuples()],
    }


def _level(row) -> str:
    return "dense" if row.sparsity == 0 else f"at sparsity {row.sparsity:g}"


def _interval(row) -> str:
    """A critical batch size with its interval."""
    ends = span(tuple(float(f"{end:.2g}") for end in (row.critical_low, row.critical_high)))
    return f"{brief(row.critical)} ({ends}) {_level(row)}"
