"""Estimates as a page's findings hold them, and predictions beside what came."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd

from lib.wording import brief, with_interval


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
        keys = (name, f"{name}_low", f"{name}_high")
        row = effect.row(name) if effect else dict.fromkeys(keys, math.nan)
        shown = keys if name in whole else keys[:1]
        found |= {key: row[key] if math.isfinite(row[key]) else None for key in shown}
    return found


def times(effect: object) -> str:
    """A ratio with its interval, from an effect of `lib.analysis.scaling`; "—" of None."""
    return with_interval(*effect.row().values()) if effect else "—"


def predictions(rows: Iterable[tuple[str, float, float, float | None]]) -> pd.DataFrame:
    """A table of what was predicted, and whether it came.

    rows: what is predicted, the ends of the range (0 or inf: open), and what was measured, if
    anything.
    """
    found = []
    for what, low, high, value in rows:
        if not low:
            told = f"under {brief(high)}"
        elif high == math.inf:
            told = f"over {brief(low)}"
        else:
            told = f"{brief(low)}–{brief(high)}"
        came, fits = "—", "—"
        if value is not None:
            came = brief(value)
            fits = "yes" if low <= value <= high else "no"
        found.append((what, told, came, fits))
    return pd.DataFrame(found, columns=["what", "predicted", "measured", "fits"])
