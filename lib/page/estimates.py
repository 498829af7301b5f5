"""Estimates in the form of a page's findings, and predictions beside their outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from lib.wording import BEYOND, number, with_interval

MEASURED = "measured (90 % interval)"


def plain(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a page's sentences, with NumPy numbers as Python's."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}


def ratios(effects: Mapping[str, object]) -> dict[str, float | None]:
    """Ratios by name, from effects of `lib.analysis.scaling` (logarithms); None if not measured."""
    values = {
        name: effect.row(name)[name] if effect else math.nan for name, effect in effects.items()
    }
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def times(effect: object) -> str:
    """A ratio with its interval, from an effect of `lib.analysis.scaling`; "—" for None."""
    return with_interval(*effect.row().values()) if effect else "—"


def interval(effect: object, log: bool = True) -> tuple[float, ...] | None:
    """An effect of `lib.analysis.scaling` and the ends of its interval; as a ratio if log."""
    return tuple(effect.row(log=log).values()) if effect else None


def predictions(rows: Iterable[tuple[str, float, float, object]]) -> pd.DataFrame:
    """A table of what was predicted, and whether it came true.

    rows: what is predicted, the ends of the range (0 or inf: open), and what was measured, if
    anything: an estimate with the ends of its interval, which must fit, or only an estimate.
    """
    columns = ["what", "predicted", MEASURED, "fits"]
    lines = [(what, _range(*ends), *_fits(*ends, measured)) for what, *ends, measured in rows]
    return pd.DataFrame(lines, columns=columns)


def _range(low: float, high: float) -> str:
    if not low:
        return f"under {number(high)}"
    return f"over {number(low)}" if high == math.inf else f"{number(low)}–{number(high)}"


def _fits(low: float, high: float, measured: object) -> tuple[str, str]:
    """What was measured, with enough digits to compare it with the range, and whether it fits."""
    if measured is None:
        return "—", "—"
    if not isinstance(measured, tuple):
        fit = "yes" if low <= measured <= high else "no"
        return number(measured), f"{fit}, by the estimate"
    value, least, most = measured
    ends = (number(end if end < BEYOND else math.inf) for end in (least, most))
    dash = " to " if least < 0 else "–"
    text = f"{number(value)} ({dash.join(ends)})"
    if low <= least and most <= high:
        return text, "yes"
    return text, "no" if most < low or least > high else "unclear"
