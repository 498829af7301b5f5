"""What this chapter's searches are: trials to their budgets, with smoothed labels or for longer."""

from __future__ import annotations

from collections.abc import Iterable

from lib.studies.cells import Cell
from lib.studies.study import DIGITS, Study, powers, to_budget


def _mnist_longer_budget() -> Iterable[Cell]:
    """Until a further doubling of a batch size's own steps would gain next to nothing; the largest,
    which costs most, last.
    """
    for batch_size, steps in ((16, 2**17), (64, 2**15), (256, 2**14), (1024, 2**14)):
        yield Cell("mnist-fc-128x3", batch_size, trials=16, stop="budget", max_steps=steps)


STUDIES = (
    # With and without label smoothing; of the cheaper network twice as many, and first
    Study(
        "digits-smoothing",
        "Digits: label smoothing, every trial to its budget, searches on splits of their own",
        (
            cell
            for name, searches in zip(DIGITS, (10, 5))
            for cell in to_budget(
                2**17,
                workload=name,
                search=range(1, 1 + searches),
                batch_size=powers(2, 10, 2),
                label_smoothing=(0.0, 0.01, 0.1),
                trials=20,
            )
        ),
    ),
    Study(
        "mnist-longer-budget",
        "MNIST: every trial to a longer budget",
        _mnist_longer_budget(),
        apart=True,
    ),
)
