"""Estimates as a page's findings hold them, and predictions beside what came."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from lib.wording import brief, with_interval


def ratios(effects: Mapping[str, object], whole: Collection[str]) -> dict[str, float | None]:
    """Ratios by name, None of what is not measured and of ends that are not known.

    Args:
        effects: of `lib.analysis.scaling`, logarithms, or None.
        whole: the names of those whose ends are told, too, as name_low and name_high.
    """
    found = {}
    for name, effect in effects.items():
        keys = (name, f"{name}_low", f"{name}_high")[: 3 if name in whole else 1]
        row = effect.row(name) if effect else {}
        known = {key: end for key, end in row.items() if math.isfinite(end)}
        found |= {key: known.get(key) for key in keys}
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
        span = f"over {brief(low)}" if high == math.inf else f"{brief(low)}–{brief(high)}"
        fits = "—" if value is None else "yes" if low <= value <= high else "no"
        found.append(
            {
                "what": what,
                "predicted": span if low else f"under {brief(high)}",
                "measured": "—" if value is None else brief(value),
                "fits": fits,
            }
        )
    return pd.DataFrame(found)
