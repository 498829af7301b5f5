"""The searches of the page on learning rates, from its parameters."""

from __future__ import annotations

from lib.analysis.fixed_budgets import BUDGETS
from lib.methods import METHODS
from lib.records import on_record
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study


def fitting(chosen) -> list[str]:
    """Methods with a momentum whose searches with these parameters are on record; none unless
    records are read.
    """
    if chosen.budget != "cached":
        return []
    named = [name for name, method in METHODS.items() if "momentum" in method.space]
    every = dict.fromkeys([*named, chosen.algorithm])
    grids = {name: searched(chosen, chosen.workload, algorithm=name) for name in every}
    return [name for name, grid in grids.items() if next(on_record.recorded_of(grid.cells), None)]


def searched(chosen, *workloads: str, algorithm: str = "", sparsity: float | None = None) -> Study:
    """The searches of some workloads, by the page's method at its sparsity where no other is
    given.
    """
    method = algorithm or chosen.algorithm
    level = chosen.sparsity if sparsity is None else sparsity
    sizes, trials = chosen.batch_sizes, chosen.trials
    grids = [on_record.grid(w, sizes, [method], [level], trials=trials) for w in workloads]
    return Study("searched", method, tuple(cell for grid in grids for cell in grid.cells))


def maps(chosen) -> Study:
    """All trials of every batch size, run to their budgets."""
    own = {"trials": chosen.trials, "stop": "budget"}
    how = chosen.algorithm, chosen.sparsity
    cells = (
        Cell(chosen.workload, size, *how, max_steps=max(4096, 2**17 // size), **own)
        for size in chosen.batch_sizes
    )
    return Study("map", "", tuple(cells))


def maps_beside(chosen) -> Study:
    """The first searches of the same on other networks; none unless records are read."""
    same = chosen.algorithm, chosen.sparsity, 0, 0.0
    names = BUDGETS if chosen.budget == "cached" else ()
    cells = (cell for name in names for cell in plans.study(name).cells)
    fitting = (
        c
        for c in cells
        if (c.algorithm, c.sparsity, c.replicate, c.label_smoothing) == same
        and c.workload != chosen.workload
    )
    return Study("maps", "", tuple(fitting))


def other_digits(chosen) -> Study:
    """The searches of the other network on digits, where the page's is one of the two."""
    wanted = chosen.budget == "cached" and chosen.workload in plans.DIGITS
    return searched(chosen, *(name for name in plans.DIGITS if wanted and name != chosen.workload))


def adam(chosen) -> Study:
    """Adam's searches of dense networks on digits, the page's first; none of a toy."""
    wanted = plans.DIGITS if chosen.budget != "smoke" else ()
    both = sorted(wanted, key=lambda name: name != chosen.workload)
    return searched(chosen, *both, algorithm="adam", sparsity=0.0)
