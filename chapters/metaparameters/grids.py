"""The searches of the page on learning rates, from its parameters."""

from __future__ import annotations

from collections.abc import Iterable

from lib.records import on_record
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study


def searched(chosen, workloads: Iterable[str], algorithm: str) -> Study:
    """A method's searches of these dense networks."""
    sizes, trials = chosen.batch_sizes, chosen.trials
    grids = [on_record.grid(w, sizes, [algorithm], [0.0], trials=trials) for w in workloads]
    return Study("searched", algorithm, tuple(cell for grid in grids for cell in grid.cells))


def maps(chosen) -> Study:
    """All trials of every batch size, run to their budgets."""
    own = {"trials": chosen.trials, "stop": "budget"}
    cells = (
        Cell(chosen.workload, size, chosen.algorithm, max_steps=max(4096, 2**17 // size), **own)
        for size in chosen.batch_sizes
    )
    return Study("map", "", tuple(cells))


def on_digits(chosen, algorithm: str) -> Study:
    """A method's searches on digits that are not the page's own; none of a toy."""
    own = chosen.workload, chosen.algorithm
    others = [name for name in plans.DIGITS if (name, algorithm) != own]
    return searched(chosen, others if chosen.budget != "smoke" else (), algorithm)
