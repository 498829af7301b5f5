"""The searches that a reader of the page on training methods asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from lib.analysis.method_results import BASE
from lib.studies import plans
from lib.studies.cells import Cell
from lib.studies.study import Study
from lib.workloads.catalogue import workload


def grid(
    name: str, batch_sizes: Iterable[int], methods: Iterable[str], searches: int, trials: int
) -> Study:
    """So many searches by every method at every batch size of the dense network called `name`, each
    on a split of its own.

    SGD, by which ratios divide, is always one of the methods.  Searches that the book plans come
    first and are taken as they are planned; an own workload has one split. Raises ValueError as
    `lib.studies.cells.Cell`.
    """
    studies = map(plans.study, plans.WHICH)
    planned = [c for s in studies for c in s.cells if c.workload == name and not c.sparsity]
    known = {(c.algorithm, c.batch_size, c.replicate): c for c in planned if c.trials == trials}
    first = min((c.replicate for c in planned), default=1)
    split = not workload(name).source and any(c.split for c in planned)
    wanted = itertools.product(
        range(first, first + searches), batch_sizes, dict.fromkeys((BASE, *methods))
    )
    cells = tuple(
        known.get((method, size, n))
        or Cell(name, size, method, trials=trials, replicate=n, split=n * split, hits=1)
        for n, size, method in wanted
    )
    return Study(name, workload(name).title, cells)
