"""Cells of the studies on digits."""

from __future__ import annotations

from collections.abc import Iterable

from lib.engine.vocabulary import METHODS
from lib.studies.cells import Cell
from lib.studies.grids import (
    ALL_POWERS,
    BETWEEN,
    DENSE_AND_SPARSE,
    DIGITS,
    LEVELS,
    own_splits,
    powers,
    whole,
)


def every() -> Iterable[Cell]:
    """The network that is cheap first; momentum first; replicates last."""
    for name in DIGITS:
        for algorithm in ("momentum", "sgd", "nesterov"):
            for batch_size in ALL_POWERS:
                for sparsity in LEVELS:
                    yield Cell(name, batch_size, algorithm, sparsity)
    for algorithm in ("momentum", "sgd", "nesterov"):
        for name in DIGITS:
            for batch_size in ALL_POWERS:
                for replicate in (1, 2):
                    for sparsity in LEVELS:
                        yield Cell(name, batch_size, algorithm, sparsity, replicate=replicate)


def sparsest() -> Iterable[Cell]:
    """A budget of its own, since little is left to train; momentum first, few batch sizes before
    all, replicates last.
    """
    sizes = [4, 64, 16, 256, *(b for b in ALL_POWERS if b not in (4, 64, 16, 256))]
    for replicate in range(3):
        for algorithm in ("momentum", "sgd", "nesterov"):
            for batch_size in sizes:
                for name in DIGITS:
                    yield Cell(
                        name, batch_size, algorithm, 0.95, replicate=replicate, max_steps=20_000
                    )


# On which pruned networks take several times the steps to the hardest goal, or hardly get there
HARD_SPLITS = (
    9,
    13,
)


EVERY_CURVE = [
    (algorithm, name) for algorithm in ("momentum", "sgd", "nesterov") for name in DIGITS
]
# Of which there are more searches
CHEAPEST = [
    ("momentum", "digits-mlp"),
    ("sgd", "digits-mlp"),
    ("sgd", "digits-cnn"),
]


def searches() -> Iterable[Cell]:
    """Searches 3 to 22, each on its own split and up to its first hit; momentum first, hard splits
    last.

    Then 23 to 32 of the curves that are CHEAPEST, and ten more of the first of these, whose range
    is the widest.
    """
    usual = (
        cell for some in (range(3, 13), range(13, 23)) for cell in _searches(EVERY_CURVE, some)
    )
    yield from sorted(usual, key=lambda cell: cell.split in HARD_SPLITS and cell.sparsity > 0)
    yield from _searches(CHEAPEST, range(23, 33))
    yield from _searches(CHEAPEST[:1], range(33, 43))


def _searches(curves: Iterable[tuple[str, str]], searches: range) -> Iterable[Cell]:
    few = [
        64,
        4,
        512,
        16,
        256,
        1,
        1024,
        *(b for b in ALL_POWERS if b not in (64, 4, 512, 16, 256, 1, 1024)),
    ]
    for algorithm, name in curves:
        for batch_size in few:
            for search in searches:
                for sparsity in DENSE_AND_SPARSE:
                    yield Cell(
                        name,
                        batch_size,
                        algorithm,
                        sparsity,
                        replicate=search,
                        split=search,
                        hits=1,
                    )


def between() -> Iterable[Cell]:
    """Sparsity 0.5 and 0.7 on the splits, and in the data orders, of dense and 90 % sparse
    searches; a few of all, then more.
    """
    for some in (range(3, 8), range(8, 13)):
        for search in some:
            for algorithm in ("momentum", "sgd", "nesterov"):
                for sparsity in BETWEEN:
                    yield from own_splits(
                        DIGITS, ALL_POWERS, [search], algorithm=algorithm, sparsity=sparsity
                    )


def low_momentum() -> Iterable[Cell]:
    """Momentum below the published range, on the splits and in the data orders of `searches` and
    `between`.

    Ten searches of every curve before the next ten; hard splits last, as in `searches`.
    """
    sparse_levels = [("momentum", LEVELS), ("nesterov", DENSE_AND_SPARSE)]
    cells = [
        Cell(
            name,
            batch_size,
            algorithm,
            sparsity,
            replicate=search,
            split=search,
            hits=1,
            space="low-momentum",
        )
        for searches in (range(3, 13), range(13, 23))
        for algorithm, levels in sparse_levels
        for name in DIGITS
        for search in searches
        for sparsity in levels
        if sparsity in DENSE_AND_SPARSE or search < 13
        for batch_size in ALL_POWERS
    ]
    return sorted(cells, key=lambda cell: cell.split in HARD_SPLITS and cell.sparsity > 0)


def nats() -> Iterable[Cell]:
    """Goals of cross-entropy: a few batch sizes of the dense network, three searches."""
    for replicate in range(3):
        for batch_size in (64, 16, 256):
            yield Cell("digits-mlp-nats", batch_size, trials=32, replicate=replicate)


def adam() -> Iterable[Cell]:
    """Dense networks; replicates last."""
    for replicate in range(3):
        for name in DIGITS:
            for batch_size in ALL_POWERS:
                yield Cell(name, batch_size, "adam", replicate=replicate)


def prunings() -> Iterable[Cell]:
    """Every method of pruning at sparsity 0.9; what takes longest, random masks and the smallest
    batches, last.

    Cells of the poorer methods end at their second hit or after 20,000 steps: their later trials
    take many times longer.
    """
    sizes = [64, 16, 256, 4, *(b for b in reversed(ALL_POWERS) if b not in (64, 16, 256, 4))]
    for methods in ([m for m in METHODS if m != "random"], ["random"]):
        for name in DIGITS:
            for batch_size in sizes:
                for method in methods:
                    short = (
                        {}
                        if method == "connection-sensitivity"
                        else {"hits": 2, "max_steps": 20_000}
                    )
                    yield Cell(name, batch_size, sparsity=0.9, pruning=method, **short)


def budget() -> Iterable[Cell]:
    for name in DIGITS:
        yield from whole(name, ALL_POWERS, 100, 2**17)
    for name in DIGITS:
        yield from whole(name, powers(2, 10, 2), 100, 2**17, (0.01, 0.1))


def smoothing() -> Iterable[Cell]:
    """With and without label smoothing, on splits of their own; of the cheaper network twice as
    many, and first.
    """
    for name, searches in zip(DIGITS, (10, 5)):
        for search in range(1, 1 + searches):
            yield from whole(name, powers(2, 10, 2), 20, 2**17, (0.0, 0.01, 0.1), search)
