"""Cells of the studies on late gradients."""

from __future__ import annotations

from collections.abc import Iterable

from lib.studies.cells import Cell
from lib.studies.grids import powers

# Steps by which gradients are late, as with 2, 4, ... 32 workers that take turns
LATE = (
    1,
    3,
    7,
    15,
    31,
)
LATE_SIZES = (64, 16, 256, 4)
TOO_LATE = 20_000  # steps after which a search is given up
LATE_SEARCHES = range(3, 6)  # on splits of which the other searches are, too
MORE_LATE_SEARCHES = range(6, 9)  # of what the methods are compared by


def _late(
    name: str,
    algorithm: str,
    search: int,
    sizes: Iterable[int],
    staleness: int,
    delays: str = "fixed",
) -> Iterable[Cell]:
    """Dense networks whose gradients are late: a search of 32 trials at every one of these batch
    sizes.
    """
    for size in sizes:
        yield Cell(
            name,
            size,
            algorithm,
            trials=32,
            replicate=search,
            split=search,
            hits=1,
            max_steps=TOO_LATE,
            staleness=staleness,
            delays=delays,
        )


def staleness() -> Iterable[Cell]:
    """SGD first; without delay at every size that several workers' batches have together.  The
    largest costs most if late.
    """
    for search in LATE_SEARCHES:
        yield from _late("digits-mlp", "sgd", search, powers(2, 10), 0)
        for s in LATE:
            yield from _late(
                "digits-mlp", "sgd", search, (*LATE_SIZES, *((1024,) if s < 15 else ())), s
            )
        for s in (7, 31):
            yield from _late("digits-mlp", "sgd", search, LATE_SIZES, s, "uniform")
    for algorithm in ("momentum", "adam"):
        for search in LATE_SEARCHES:
            yield from _late("digits-mlp", algorithm, search, powers(2, 9), 0)
            for s in (1, 7, 31):
                yield from _late("digits-mlp", algorithm, search, LATE_SIZES, s)
    for search in MORE_LATE_SEARCHES:
        for algorithm in ("sgd", "adam", "momentum"):
            for s in (0, 7):
                yield from _late("digits-mlp", algorithm, search, LATE_SIZES, s)


def depth() -> Iterable[Cell]:
    """Networks of other depth, without delay and late: more searches than of others, since depth
    changes little.
    """
    for search in range(3, 23):
        for s in (0, 7):
            for name in ("digits-mlp-64x1", "digits-mlp-64x4"):
                yield from _late(name, "sgd", search, LATE_SIZES, s)
