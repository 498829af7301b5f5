"""Steps with masks that move beside a mask that stays, and what the page says of them."""

from __future__ import annotations

import pandas as pd

from chapters.moving_masks import searches
from lib.analysis import scaling
from lib.analysis.scaling import Curve

WORK = searches.WORK
NAMES = {
    "static": "stays",
    "steps": f"rewired every {searches.STEPS} steps",
    "examples": f"rewired every {searches.EXAMPLES} examples",
    "thinned": "thinned out",
}
MOVING = ("steps", "examples", "thinned")


def measured() -> pd.DataFrame:
    """A row per search and goal on record; masked: which of NAMES."""
    planned = {}
    for one in searches.planned():
        planned.setdefault(_kind(one), []).append(one)
    parts = [searches.MASKED.results(own).assign(masked=kind) for kind, own in planned.items()]
    return pd.concat(parts, ignore_index=True)


def _kind(one: searches.Search) -> str:
    size, n = one.batch_size, one.replicate
    return next(m for m in searches.MASKS if searches.search(m, size, n) == one)


def curves(found: pd.DataFrame, goal: float = searches.GOALS[0]) -> dict[str, Curve]:
    """K* against batch size, by mask; found: of `measured`."""
    if not len(found):
        return {}
    own = found[found.goal == goal]
    last = [searches.LONGEST * searches.HORIZON[size] for size in own.batch_size]
    about = {"workload": WORK, "pruning": "connection-sensitivity", "sparsity": 0.9}
    rows = own.assign(**about, algorithm=own.masked, split=own.replicate, last_step=last)
    return {key[1]: curve for key, curve in scaling.curves_of(rows).items()}
