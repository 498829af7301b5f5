"""Cells of the studies that compare training methods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lib.methods import LOCAL
from lib.methods import METHODS as KNOWN
from lib.studies import images
from lib.studies.cells import Cell
from lib.studies.grids import ALL_POWERS, powers
from lib.studies.races import raced

# What the chapter on training methods compares, the most wanted first; SGD, by which it divides,
# before all.
EVERYWHERE = tuple(
    name
    for name in (
        "sgd",
        "momentum",
        "adam",
        "muon",
        "kfac",
        "lars",
        "lamb",
        "nesterov",
        "momentum-ema",
        "clars",
        "lars-warmup",
        "adam-half-life",
        "adam-fixed",
    )
    if name in KNOWN
)
COMPARED = (*EVERYWHERE, "kfac-unclipped")  # the last on digits alone
COMPARED_SPARSE = tuple(
    name for name in ("sgd", "momentum", "adam", "muon", "kfac") if name in KNOWN
)
COMPARED_LARGE = tuple(
    name
    for name in ("sgd", "momentum", "nesterov", "adam", "muon", "lars", "kfac")
    if name in KNOWN
)
# With backpropagation, by which the chapter divides, before all
WITHOUT_BACKPROPAGATION = (
    "sgd",
    *LOCAL,
)
CLOSE = ("sgd", "lra", "lra-1")  # whose errors are a point or less apart
FOURS = (64, 16, 256, 4, 1024, 1)  # powers of four, the middle first
FC_MORE = tuple(
    name for name in EVERYWHERE if name not in ("momentum-ema", "adam-half-life", "adam-fixed")
)
LAYER_BY_LAYER = ("lars-warmup", "clars", "lars")


def which(
    names: Iterable[str],
    sizes: Iterable[int],
    methods: Iterable[str],
    searches: Iterable[int],
    **fields,
) -> Iterable[Cell]:
    """All methods at a batch size, then the next one, then the next search; sizes between the
    powers of four last.
    """
    for group in (FOURS, [b for b in sizes if b not in FOURS]):
        for search in searches:
            for batch_size in (b for b in group if b in sizes):
                for name in names:
                    for method in methods:
                        yield Cell(
                            name,
                            batch_size,
                            method,
                            replicate=search,
                            split=search,
                            hits=1,
                            **fields,
                        )


def digits_which(names: Iterable[str]) -> Iterable[Cell]:
    """Five searches of every method."""
    return which(names, ALL_POWERS, EVERYWHERE, range(3, 8))


def digits_more(names: Iterable[str]) -> Iterable[Cell]:
    """More searches where claims turn on them: 35 of Adam and Muon; 15 of rates layer by layer, at
    batches of 16 and more, and on the fully connected network, whose ratio of Nesterov to LARS is
    near a claim's threshold, 40 more of these two.
    """
    large = [b for b in ALL_POWERS if b >= 16]
    yield from which(names, ALL_POWERS, ("adam", "muon"), range(8, 43))
    yield from which(names, large, LAYER_BY_LAYER, range(8, 23))
    yield from which(("digits-mlp",), large, ("nesterov", "lars"), range(23, 63))


def fc_which() -> Iterable[Cell]:
    """Three searches of every method."""
    return _on_fc(powers(2, 12, 2), EVERYWHERE, range(1, 4))


def fc_more() -> Iterable[Cell]:
    """More searches of the methods that claims compare, from 16 examples on, where a search takes
    less than five minutes.
    """
    return _on_fc(powers(4, 12, 2), FC_MORE, range(4, 9))


def _on_fc(sizes: Iterable[int], methods: Iterable[str], searches: Iterable[int]) -> Iterable[Cell]:
    """Races; SGD and momentum as `images.fc_searches` has them."""
    shared = {replace(cell, race=None, rungs="goals"): cell for cell in images.fc_searches()}
    for cell in which(("mnist-fc-128x3-easier",), sizes, methods, searches, trials=32):
        yield shared.get(cell) or raced(cell)


def mnist_which() -> Iterable[Cell]:
    """One search of each: those that are exact elsewhere, and races."""
    dense = (cell for cell in (*images.mnist(), *images.mnist_algorithms()) if cell.sparsity == 0)
    exact = {(cell.algorithm, cell.batch_size): cell for cell in dense}
    for batch_size in (64, 256, 16, 1024):
        for method in COMPARED_LARGE:
            yield exact.get((method, batch_size)) or raced(
                Cell("mnist-simple-cnn", batch_size, method, trials=32)
            )


def local_budget() -> Iterable[Cell]:
    """What each way to pass errors back ends at, on five splits, and on many more for those that
    come close.
    """
    for search in range(3, 103):
        for method in WITHOUT_BACKPROPAGATION if search < 8 else CLOSE:
            yield Cell(
                "digits-mlp-tanh",
                64,
                method,
                trials=16,
                replicate=search,
                split=search,
                stop="budget",
                max_steps=2048,
            )
