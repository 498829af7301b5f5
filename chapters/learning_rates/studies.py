"""What this chapter's searches are: the learning rate alone is tuned, on a wide range whose ends no
good trial touches, and everything else is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lib.studies.cells import Cell
from lib.studies.study import ALL_POWERS, DENSE_AND_SPARSE, DIGITS, Study, grid
from lib.workloads.catalogue import EASIER

# Momentum is held where the methods' papers hold it; Muon's share for weights that are no matrices
# at the middle of what its winners on the digits drew
RATES = {
    "sgd": "learning_rate=0.001..30",
    "momentum": "learning_rate=0.0001..3,momentum=0.9",
    "adam": "learning_rate=0.00001..1,beta1=0.9,beta2=0.999",
    "muon": "learning_rate=0.0001..10,momentum=0.9,aux_ratio=0.03",
}
FC = (f"mnist-fc-128x3{EASIER}", f"fashion-mnist-fc-128x3{EASIER}")
SPLITS = range(101, 104)  # of which no other search has any
MORE = range(104, 106)


def _within(cells: Iterable[Cell]) -> Iterable[Cell]:
    """The searches with limits of some ten times the steps that tuned ones took in a pilot: where a
    split does not allow five hits of the hardest goal, a search would go on for 100,000.
    """
    for cell in cells:
        limit = max(256, 8192 // cell.batch_size)
        yield replace(cell, max_steps=4 * limit if cell.sparsity else limit)


def _rates(methods: Iterable[str], **fields) -> Iterable[Cell]:
    """Exact searches up to the fifth hit, of one method after the other."""
    for method in methods:
        yield from grid(
            **fields, algorithm=method, space=RATES[method], sparsity=DENSE_AND_SPARSE, hits=5
        )


STUDIES = (
    Study(
        "rates-digits",
        "Digits: the learning rate alone, on splits of their own",
        (
            *_within(_rates(RATES, search=SPLITS, workload=DIGITS, batch_size=ALL_POWERS)),
            *_within(_rates(list(RATES)[1:], search=MORE, workload=DIGITS, batch_size=ALL_POWERS)),
        ),
        apart=True,
    ),
    Study(
        "rates-fc",
        "MNIST and Fashion-MNIST: FC-128×3, the learning rate alone",
        _rates(
            RATES,
            search=(*SPLITS, *MORE),
            workload=FC,
            batch_size=(64, 256, 16, 1024, 4, 4096),
            trials=32,
        ),
        apart=True,
    ),
)
