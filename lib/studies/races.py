"""Which searches are races (`lib.engine.lockstep`), and by which rule; the chapter steps_to_result
judges them on record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from lib.methods import METHODS as KNOWN
from lib.studies.cells import Cell
from lib.studies.study import grid
from lib.workloads.catalogue import EASIER, THEIR_SPLIT
from lib.workloads.datasets import LEE2021

# The digits' validation sets are too small for a race; CIFAR-10 gains little
RACED = (
    "mnist",
    LEE2021,
    "fashion-mnist",
)
BY_GOALS = {"race": 2.5}  # fields of a cell
# Wide, since at twice the steps a winner with Nesterov momentum is gone
BY_LOSSES = {
    "race": 3.0,
    "rungs": "losses",
}
# times the factor, for the second race where nobody wins the first: its leader may stall short of
# the goal
WIDER = 4
SLOW_TO_START = ("muon",)  # training methods whose winners a race on losses loses
# a race that nobody can lose: an exact search of which the record says when losses fell, too
WATCHED = 1e6

_FC, _FASHION, _CNN = (
    f"mnist-fc-128x3{EASIER}",
    f"fashion-mnist-fc-128x3{EASIER}",
    "mnist-simple-cnn",
)
_FROM_16 = (16, 64, 256, 1024, 4096)
_TO_1024 = (4, 16, 64, 256, 1024)
# What was measured when goals alone were rungs: workloads, methods, sparsities, searches, batch
# sizes.
_EARLIER = (
    ((_FC, _FASHION), ("momentum", "sgd"), (0.0,), range(1, 6), (4, *_FROM_16)),
    ((_FC, _FASHION), ("momentum",), (0.9,), range(1, 6), _FROM_16),
    ((_FC, _FASHION), ("sgd",), (0.9,), (1, 2), _FROM_16),
    ((_FC,), ("sgd",), (0.9,), (3,), (64, 1024, 4096)),
    ((_FASHION,), ("sgd",), (0.9,), (3,), (16, 64)),
    ((_FC,), tuple(KNOWN), (0.0,), (1,), _FROM_16),
    ((_FC,), ("adam",), (0.0,), (2,), (64,)),
    ((_CNN + EASIER,), ("momentum",), (0.0, 0.9), (1,), _TO_1024),
    ((_CNN + EASIER,), ("momentum",), (0.0,), (2,), _TO_1024),
    ((_CNN + EASIER,), ("momentum",), (0.9,), (2,), (4, 16, 64, 256)),
    ((_CNN + THEIR_SPLIT,), ("momentum",), (0.0,), (0,), (64,)),
    ((_CNN,), ("momentum",), (0.0,), (0,), (512,)),
    ((_CNN,), ("momentum",), (0.9,), (0,), (8,)),
    ((_CNN,), ("momentum",), (0.5,), (0,), (1024,)),
)
_ON_GOALS = {search for row in _EARLIER for search in product(*row)}


def raced(cell: Cell) -> Cell:
    """The search as a race, up to its first hit: on losses; on goals alone if it was measured so,
    or its method starts slowly.
    """
    earlier = (
        cell.workload,
        cell.algorithm,
        cell.sparsity,
        cell.replicate,
        cell.batch_size,
    ) in _ON_GOALS
    rule = BY_GOALS if earlier or cell.algorithm in SLOW_TO_START else BY_LOSSES
    return replace(cell, hits=1, **rule)


def races(**fields) -> Iterator[Cell]:
    """A `grid` of searches of 32 trials that are races: what was not measured before races were
    calibrated.
    """
    return map(raced, grid(**{"trials": 32} | fields))
