"""What this chapter's searches are: of language models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from lib.studies.cells import Cell
from lib.studies.study import Study, grid
from lib.workloads.catalogue import EASIER

SIZES = (16, 64, 4, 256, 1)  # the middle first
STEPS = 40_000  # of a trial at batch size 1, at most; at others over the root of the batch size
TEXT_WIDTHS = {"shakespeare-width-32": 32, "shakespeare-width-128": 128}  # half and double


def on_text(
    searches, algorithm, batch_size=SIZES, workload="shakespeare", number="search", **fields
) -> Iterable[Cell]:
    """All methods at a batch size, then the next one, then the next search; each search on a split
    of its own, or all on one if `number` is "replicate".

    Larger batches take fewer steps, which cost more: trials are given up the sooner.  Races are
    wide ones, since no record tells what races do on texts.
    """
    fields = {"trials": 16, "hits": 1, "race": 3.0} | fields
    fields |= {number: searches, "batch_size": batch_size}
    for cell in grid(**fields, algorithm=algorithm, workload=workload):
        yield replace(cell, max_steps=math.ceil(STEPS / math.sqrt(cell.batch_size)))


def _text_sparse() -> Iterable[Cell]:
    # The first of them showed that the dense network's hardest goal is out of reach
    first, *others = on_text(range(2), "adam", (64, 16, 256), sparsity=0.9)
    return first, *(replace(cell, workload=cell.workload + EASIER) for cell in others)


# Where exact lock step costs least: whether races would have told the same
EXACT = on_text(range(1), "adam", (16, 64), hits=2, race=None)
# One batch size either side of the critical one
WIDTHS = on_text(range(1), "adam", (16, 256), tuple(TEXT_WIDTHS))
STUDIES = tuple(
    Study(name, f"Tiny Shakespeare: {title}", cells, apart=True)
    for name, title, cells in (
        ("shakespeare-exact", "Adam in exact lock step", EXACT),
        ("shakespeare", "Adam", on_text(range(3), "adam")),
        ("shakespeare-methods", "momentum and Muon", on_text(range(2), ("muon", "momentum"))),
        ("shakespeare-sparse", "90 % of the weights removed", _text_sparse()),
        ("shakespeare-sgd", "SGD", on_text(range(1), "sgd")),
        ("shakespeare-widths", "half and double the width", WIDTHS),
    )
)
