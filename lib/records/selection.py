"""Which searches answer a question: that of a grid in a chapter, and those of the book's curves.

Whether a search is exact or a race, and for how many hits it waits, changes what it costs and
hardly ever its steps to result.  All else is the question.  Of several searches on record for one
question, the one of most effort answers it.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Collection, Iterable

from lib.records import searches
from lib.studies import study
from lib.studies.plans import STUDIES, TO_BUDGETS
from lib.studies.search import Search
from lib.studies.study import Study
from lib.workloads.catalogue import workload

EFFORT = ("hits", "race", "rungs")
_question = operator.attrgetter(*(n for n in Search.__dataclass_fields__ if n not in EFFORT))
_curve = operator.attrgetter("workload", "algorithm", "pruning", "sparsity")


def _effort(cell: Search) -> tuple:
    """Exact before wide races, more hits before fewer."""
    return cell.race or math.inf, cell.hits, cell.rungs == "goals"


def best(cells: Iterable[Search]) -> list[Search]:
    """Of those on record, the one of most effort for every question."""
    known = sorted(searches.recorded(cells).values(), key=_effort)
    return list({_question(cell): cell for cell in known}.values())


def grid(
    name: str, batch_sizes: list[int], algorithms: list[str], sparsities: list[float], **fields
) -> Study:
    """All combinations for a workload, batch size slowest, each as it is on record.

    Args:
        name: of the workload.
        **fields: further ones of `Search`. hits: where it is not set, any on record will do,
            and what is missing waits for a sixth of its trials and at most 5, so that a small
            search does not wait for its worst trials.

    Raises as `Search`.
    """
    axes = {"batch_size": batch_sizes, "algorithm": algorithms, "sparsity": sparsities}
    hits = min(5, max(1, fields.get("trials", 100) // 6))
    cells = list(study.grid(workload=name, **axes, **{"hits": hits} | fields))
    cells = cells if "hits" in fields else _on_record(cells)
    return Study(name, workload(name).title, cells)


def _on_record(cells: list[Search]) -> list[Search]:
    """The searches that answer the same questions, where there are any, or else these."""
    answers = {_question(cell): cell for cell in cells}
    book = itertools.chain(*(s.searches for s in STUDIES.values()))
    planned = (cell for cell in book if _question(cell) in answers)
    for cell in best([*cells, *planned]):
        answers[_question(cell)] = cell
    return [*answers.values()]


def curves(*more: Study, free: Collection[str] = ()) -> Study:
    """The searches on record of the book's curves, and of `more`, that have the usual settings.

    Studies that are `apart`, and those of workloads whose goals are no errors, are left out.  Of
    a curve that `more` has with another number of trials, only these searches are taken.

    Args:
        free: settings that may be others than the usual ones (`Search.is_usual`).
    """
    asked = best(c for s in more for c in s.searches if c.is_usual(*free))
    trials = {_curve(cell): cell.trials for cell in asked}
    book = (
        cell
        for s in STUDIES.values()
        if not s.apart
        for cell in s.searches
        if cell.work.task == "classification" and cell.is_usual(*free)
    )
    alike = (cell for cell in book if trials.get(_curve(cell), cell.trials) == cell.trials)
    return Study("curves", "All that is measured", best([*asked, *alike]))


def compared(*more: Study) -> Study:
    """What pages compare: `curves`, and those of `plans.TO_BUDGETS` that are not among them."""
    found = curves(*more).searches
    known = {_curve(cell) for cell in found}
    lacking = (
        c for name in TO_BUDGETS for c in STUDIES[name].searches if _curve(c) not in known
    )
    return Study("compared", "All that pages compare", (*found, *best(lacking)))
