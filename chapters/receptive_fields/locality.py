"""How local the fields of hidden units are, and whether removed weights leave neighbours."""

from __future__ import annotations

import numpy as np
import pandas as pd

WINDOW = 18  # sites: about those that a field with edges lies on, by its participation
KEYS = ["gain", "sparsity", "batch_size", "replicate", "goal"]


def participation(fields: np.ndarray) -> np.ndarray:
    """The number of sites times Σ w⁴ / (Σ w²)² of fields [..., sites].

    That number if one site has all the weight, 1 if all have as much, 1.5 of a wave, 3 in the mean
    of normal noise; NaN of a field that is zero.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return fields.shape[-1] * (fields**4).sum(-1) / (fields**2).sum(-1) ** 2


def together(fields: np.ndarray) -> np.ndarray:
    """The largest share of Σ w² that WINDOW neighbouring sites have, of fields [..., sites]."""
    squares = fields**2
    windows = sum(np.roll(squares, shift, -1) for shift in range(WINDOW))
    with np.errstate(invalid="ignore"):
        return windows.max(-1) / squares.sum(-1)


def neighbours(fields: np.ndarray) -> float:
    """How often the next site of a kept weight is kept, over how often it would be if each unit
    scattered as many weights at random.

    fields: [units, sites], whose removed weights are zero.  NaN if no unit has two weights left.
    """
    kept = fields != 0
    counts = kept.sum(-1)
    pairs = (kept & np.roll(kept, 1, axis=-1)).sum()
    expected = (counts * (counts - 1)).sum() / (fields.shape[-1] - 1)
    return float(pairs / expected) if expected else np.nan


def by_search(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per search and goal: KEYS, steps, the units' medians of participation and together (NaN
    of a search that missed the goal), and neighbours.
    """
    searches = []
    for key, units in rows.groupby(KEYS):
        fields, steps = units.filter(regex="^site_").to_numpy(), units.steps.iloc[0]
        measures = np.median([participation(fields), together(fields)], axis=1)
        medians = measures if steps > 0 else [np.nan, np.nan]
        searches.append((*key, steps, *medians, neighbours(fields)))
    columns = [*KEYS, "steps", "participation", "together", "neighbours"]
    return pd.DataFrame(searches, columns=columns)
