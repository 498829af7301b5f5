"""Estimates as a page's findings hold them, and predictions beside what came."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd

from lib.wording import BEYOND, number, with_interval

MEASURED = "measured (90 % interval)"


def plain(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a page's sentences, numpy's numbers as Python's own."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}


def ratios(effects: Mapping[str, object], whole: Collection[str]) -> dict[str, float | None]:
    """Ratios by name, None of what is not measured and of ends that are not known.

    Args:
        effects: of `lib.analysis.scaling`, logarithms, or None.
        whole: the names of those whose ends are told, too, as name_low and name_high.
    """
    found = {}
    for name, effect in effects.items():
        row = effect.row(name) if effect else {}
        keys = [name, f"{name}_low", f"{name}_high"][: 3 if name in whole else 1]
        found |= {
            key: row[key] if math.isfinite(row.get(key, math.nan)) else None for key in keys
        }
    return found


def times(effect: object) -> str:
    """A ratio with its interval, from an effect of `lib.analysis.scaling`; "—" of None."""
    return with_interval(*effect.row().values()) if effect else "—"


def interval(effect: object, log: bool = True) -> tuple[float, ...] | None:
    """An effect of `lib.analysis.scaling` and the ends of its interval; of a ratio if log."""
    return tuple(effect.row(log=log).values()) if effect else None


def predictions(rows: Iterable[tuple[str, float, float, object]]) -> pd.DataFrame:
    """A table of what was predicted, and whether it came.

    rows: what is predicted, the ends of the range (0 or inf: open), and what was measured, if
    anything: an estimate with the ends of its interval, by which it fits, or an estimate alone.
    """
    found = []
    for what, low, high, came in rows:
        told = f"over {number(low)}" if high == math.inf else f"{number(low)}–{number(high)}"
        told = told if low else f"under {number(high)}"
        found.append((what, told, *_fits(low, high, came)))
    return pd.DataFrame(found, columns=["what", "predicted", MEASURED, "fits"])


def _fits(low: float, high: float, came: object) -> tuple[str, str]:
    """What was measured, with digits enough to compare it with a range, and whether it fits it."""
    if came is None:
        return "—", "—"
    if not isinstance(came, tuple):
        return number(came), f"{'yes' if low <= came <= high else 'no'}, by the estimate"
    value, least, most = came
    ends = (number(end if end < BEYOND else math.inf) for end in (least, most))
    said = f"{number(value)} ({(' to ' if least < 0 else '–').join(ends)})"
    if low <= least and most <= high:
        return said, "yes"
    return said, "no" if most < low or least > high else "unclear"
