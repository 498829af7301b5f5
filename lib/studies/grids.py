"""What the plans of several kinds of studies share: grids of batch sizes and sparsities, and rows
of cells.
"""

from __future__ import annotations

from collections.abc import Iterable

from lib.fields import Count, Whole, check
from lib.studies.cells import Cell


def powers(low: int, high: int, every: int = 1) -> list[int]:
    """2**low ... 2**high, `every` so many powers.  Raises ValueError unless 0 <= low <= high <= 40
    and 1 <= every <= 40.
    """
    check("low", low, Whole(0, 40))
    check("high", high, Whole(low, 40))
    check("every", every, Count(40))
    return [2**k for k in range(low, high + 1, every)]


DENSE_AND_SPARSE = (0.0, 0.9)
LEVELS = (0.0, 0.5, 0.7, 0.9)
BETWEEN = (0.5, 0.7)
ALL_POWERS = powers(0, 10, 2) + powers(1, 9, 2)  # every fourth power before those between
DIGITS = ("digits-mlp", "digits-cnn")


def variants(
    names: Iterable[str], sizes: Iterable[int], algorithm: str, trials: int, hits: int
) -> Iterable[Cell]:
    """Dense networks of several workloads: all workloads of one batch size before the next."""
    for batch_size in sizes:
        for name in names:
            yield Cell(name, batch_size, algorithm, trials=trials, hits=hits)


def whole(
    name: str, sizes: Iterable[int], trials: int, examples: int, smoothings=(0.0,), search: int = 0
) -> Iterable[Cell]:
    """Every trial to its budget: 4,096 steps, or more where a small batch needs more for so many
    examples.

    search: its replicate and split.
    """
    for batch_size in sizes:
        for smoothing in smoothings:
            yield Cell(
                name,
                batch_size,
                trials=trials,
                stop="budget",
                max_steps=max(4096, examples // batch_size),
                label_smoothing=smoothing,
                replicate=search,
                split=search,
            )


def own_splits(
    names: Iterable[str], sizes: Iterable[int], searches: Iterable[int], **fields
) -> Iterable[Cell]:
    """Searches on splits of their own, each up to its first hit: all workloads of one batch size,
    then the next search.
    """
    for search in searches:
        for batch_size in sizes:
            for name in names:
                yield Cell(name, batch_size, replicate=search, split=search, hits=1, **fields)
