"""Selects the searches that answer a question: a grid in a chapter, or the book's curves.

Whether a search is exact or a race, and how many hits it waits for, changes its cost and hardly
ever its steps to result.  All else defines the question.  Of several searches on record for one
question, the one with the most effort answers it.
"""

from __future__ import annotations

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
question = operator.attrgetter(*(n for n in Search.__dataclass_fields__ if n not in EFFORT))
curve = operator.attrgetter("workload", "algorithm", "pruning", "sparsity")


def effort(search: Search) -> tuple:
    """Sort key: exact searches above races, wide races above narrow ones, then more hits."""
    return search.race or math.inf, search.hits, search.rungs == "goals"


def best(planned: Iterable[Search]) -> list[Search]:
    """Of those on record, the one with the most effort for every question."""
    recorded = sorted(searches.recorded(planned).values(), key=effort)
    return list({question(search): search for search in recorded}.values())


def grid(
    name: str, batch_sizes: list[int], algorithms: list[str], sparsities: list[float], **fields
) -> Study:
    """All combinations for a workload, batch size slowest, each as it is on record.

    Args:
        name: of the workload.
        **fields: further ones of `Search`. hits: if not set, any on record will do, and a missing
            search waits for a sixth of its trials, at most 5, so that a small search does not wait
            for its worst trials.

    Raises as `Search`.
    """
    axes = {"batch_size": batch_sizes, "algorithm": algorithms, "sparsity": sparsities}
    hits = min(5, max(1, fields.get("trials", 100) // 6))
    fixed = {"hits": hits} | fields
    planned = list(study.grid(workload=name, **axes, **fixed))
    if "hits" not in fields:
        answers = {question(search): search for search in planned}
        book = (search for s in STUDIES.values() for search in s.searches)
        alike = [search for search in book if question(search) in answers]
        answers |= {question(search): search for search in best([*planned, *alike])}
        planned = answers.values()
    return Study(name, workload(name).title, planned)


def curves(*more: Study, free: Collection[str] = ()) -> Study:
    """The searches on record of the book's curves, and of `more`, that have the usual settings.

    Studies that are `apart`, and workloads whose goals are not errors, are left out.  If `more` has
    a curve with another number of trials, only those searches are used for it.

    Args:
        free: settings that may differ from the usual ones (`Search.is_usual`).
    """
    ample = {search for s in STUDIES.values() if s.ample for search in s.searches}
    wanted = best(search for s in more for search in s.searches if search.is_usual(*free))
    trials = {curve(search): search.trials for search in wanted}
    book = (search for s in STUDIES.values() if not s.apart for search in s.searches)
    alike = (
        search
        for search in book
        if search.work.task == "classification"
        and (search in ample or search.is_usual(*free))
        and trials.get(curve(search), search.trials) == search.trials
    )
    return Study("curves", "All that is measured", best([*wanted, *alike]))


def compared(*more: Study) -> Study:
    """What pages compare: `curves`, and those of `plans.TO_BUDGETS` that are not among them."""
    usual = curves(*more).searches
    keys = set(map(curve, usual))
    budgets = (search for name in TO_BUDGETS for search in STUDIES[name].searches)
    lacking = best(search for search in budgets if curve(search) not in keys)
    return Study("compared", "All that pages compare", (*usual, *lacking))
