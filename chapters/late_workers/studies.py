"""What this chapter's searches are: training with late gradients."""

from __future__ import annotations

from collections.abc import Iterable

from lib.studies.cells import Cell
from lib.studies.study import Study, grid, powers

LATE = (1, 3, 7, 15, 31)  # steps by which gradients are late, as with 2 ... 32 workers in turns
LATE_SIZES = (64, 16, 256, 4)
TOO_LATE = 20_000  # steps after which a search is given up


def _late(batch_size: object = LATE_SIZES, **fields) -> Iterable[Cell]:
    """Dense networks whose gradients are late, the other fields before the batch size."""
    return grid(**fields, batch_size=batch_size, trials=32, hits=1, max_steps=TOO_LATE)


def _staleness() -> Iterable[Cell]:
    """SGD first; without delay at every size that several workers' batches have together."""
    mlp = "digits-mlp"
    for search in range(3, 6):  # on splits of which the other searches are, too
        one = {"workload": mlp, "algorithm": "sgd", "search": search}
        yield from _late(powers(2, 10), **one)
        for steps in LATE:
            sizes = (*LATE_SIZES, 1024) if steps < 15 else LATE_SIZES
            yield from _late(sizes, **one, staleness=steps)
        yield from _late(**one, staleness=(7, 31), delays="uniform")
    for algorithm in ("momentum", "adam"):
        for search in range(3, 6):
            one = {"workload": mlp, "algorithm": algorithm, "search": search}
            yield from _late(powers(2, 9), **one)
            yield from _late(**one, staleness=(1, 7, 31))
    # What the methods are compared by
    methods = ("sgd", "adam", "momentum")
    yield from _late(workload=mlp, search=range(6, 9), algorithm=methods, staleness=(0, 7))


def _staleness_depth() -> Iterable[Cell]:
    """Networks of other depth: more searches than of others, since depth changes little."""
    names = ("digits-mlp-64x1", "digits-mlp-64x4")
    return _late(search=range(3, 23), staleness=(0, 7), workload=names, algorithm="sgd")


DEPTH = "Digits: late gradients in networks of other depth"
STUDIES = (
    Study("staleness", "Digits: late gradients", _staleness(), apart=True),
    Study("staleness-depth", DEPTH, _staleness_depth(), apart=True),
)
