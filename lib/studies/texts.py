"""Cells of the studies on a text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from lib.studies.cells import Cell
from lib.workloads.catalogue import EASIER

# Steps by batch size, the middle first
SHAKESPEARE_BUDGETS = {
    16: 10_000,
    64: 5_000,
    4: 20_000,
    256: 2_500,
    1: 40_000,
}
TEXT_RACE = 3.0  # a wide one, since no record tells what races do on texts
TEXT_WIDTHS = {"shakespeare-width-32": 32, "shakespeare": 64, "shakespeare-width-128": 128}
TEXT_ENDS = (16, 256)


def searches(
    replicates: Iterable[int],
    methods: Iterable[str],
    sizes: Iterable[int] = tuple(SHAKESPEARE_BUDGETS),
    workload: str = "shakespeare",
    **fields,
) -> Iterable[Cell]:
    """All methods at a batch size, then the next one, then the next search; each search on a split
    of its own.

    Larger batches take fewer steps, which cost more: trials are given up the sooner.  All are
    races.
    """
    for replicate in replicates:
        for batch_size in sizes:
            for name in methods:
                yield Cell(
                    workload,
                    batch_size,
                    name,
                    trials=16,
                    hits=1,
                    replicate=replicate,
                    split=replicate,
                    max_steps=SHAKESPEARE_BUDGETS[batch_size],
                    race=TEXT_RACE,
                    **fields,
                )


def pruned() -> Iterable[Cell]:
    """The first of them showed that the dense network's hardest goal is out of reach: the others
    wait for an easier one.
    """
    first, *others = searches(range(2), ("adam",), (64, 16, 256), sparsity=0.9)
    yield first
    yield from (dataclasses.replace(c, workload=c.workload + EASIER) for c in others)


def widths() -> Iterable[Cell]:
    """Two batch sizes, either side of the critical one, tell it of every width; the book's own has
    searches at both.
    """
    return (
        c
        for name in TEXT_WIDTHS
        if name != "shakespeare"
        for c in searches(range(1), ("adam",), TEXT_ENDS, name)
    )


def exact() -> Iterable[Cell]:
    """Exact lock step where it costs least: whether races would have told the same."""
    for batch_size in (16, 64):
        yield Cell(
            "shakespeare",
            batch_size,
            "adam",
            trials=16,
            hits=2,
            max_steps=SHAKESPEARE_BUDGETS[batch_size],
        )
