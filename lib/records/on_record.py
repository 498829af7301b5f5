"""Which cells are on record: of the studies of the book, and of a grid that a chapter asks for."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import operator
from collections.abc import Iterable
from dataclasses import fields as fields_of
from pathlib import Path

import pandas as pd

from lib import is_number, require
from lib.records import store
from lib.records.places import DATA, record
from lib.studies.cells import Cell
from lib.studies.plans import APART, STUDIES, TO_BUDGETS, USUAL
from lib.studies.races import BY_GOALS, BY_LOSSES, RACED
from lib.studies.study import Study
from lib.workloads.catalogue import workload


def grid(
    name: str, batch_sizes: list[int], algorithms: list[str], sparsities: list[float], **fields
) -> Study:
    """All combinations for the workload called `name`, batch size slowest; further fields as in
    `Cell`.

    hits: unless given, a sixth of the trials and at most 5, so that a small search does not wait
    for its worst trials; or fewer, where such a search is on record: the steps to result are the
    same.  A race stands in where no exact search is. Raises ValueError for an empty list, for a
    field that cells do not have, and as `Cell`.
    """
    for field, given in {
        "batch_sizes": batch_sizes,
        "algorithms": algorithms,
        "sparsities": sparsities,
    }.items():
        several = not isinstance(given, str) and hasattr(given, "__len__") and len(given) > 0
        require(several, field, given, "a list of at least one")
    for level in sparsities:
        require(is_number(level), "sparsities", level, "numbers in [0, 1)")
    known = {f.name for f in dataclasses.fields(Cell)} - {
        "workload",
        "batch_size",
        "algorithm",
        "sparsity",
    }
    for field, value in fields.items():
        require(
            field in known,
            field,
            value,
            f"left out; the fields of a cell are {', '.join(sorted(known))}",
        )
    trials = fields.get("trials", 100)
    usual = min(5, max(1, trials // 6)) if isinstance(trials, int) else 1
    given = {"hits": usual, **fields}
    cells = (
        Cell(name, b, a, float(s), **given)
        for b in batch_sizes
        for a in algorithms
        for s in sparsities
    )
    return Study(
        name, workload(name).title, tuple(c if "hits" in fields else _on_record(c) for c in cells)
    )


def _on_record(cell: Cell) -> Cell:
    """The cell, or if it has no record the same search that has one: exact with fewer hits, or else
    a race.
    """
    searches = [dataclasses.replace(cell, hits=hits) for hits in range(cell.hits, 0, -1)]
    rules = (BY_GOALS, BY_LOSSES) if cell.stop == "goal" and cell.work.dataset in RACED else ()
    races = [dataclasses.replace(cell, hits=1, **rule) for rule in rules]
    return next((c for c in (*searches, *races) if store.exists(record(c, DATA))), cell)


def recorded(
    methods: Iterable[str], name: str, batch_sizes: list[int], sparsities: list[float], **fields
) -> list[str]:
    """Of these training methods those with which some search of such a `grid` is on record.  Raises
    ValueError as `grid`.
    """
    grids = {method: grid(name, batch_sizes, [method], sparsities, **fields) for method in methods}
    return [
        method
        for method, study in grids.items()
        if any(store.exists(record(cell, DATA)) for cell in study.cells)
    ]


_CURVE = (
    "workload",
    "algorithm",
    "pruning",
    "sparsity",
    "stop",
    "label_smoothing",
    "messages",
    "staleness",
    "delays",
)
_curve = operator.attrgetter(*_CURVE)
# However it was searched
_network = operator.attrgetter("workload", "algorithm", "pruning", "sparsity")
_point = operator.attrgetter(*_CURVE, "batch_size", "replicate", "split")
# However many hits, K* is the same
_protocol = operator.attrgetter("trials", "space", "precision", "checks", "max_steps")


def gathered(*more: Study, **fields) -> Study:
    """The cells of all studies, and of `more`, that have a record and these fields: one for every
    point of a curve.

    A search that was a race stands in only where no exact one is on record; of several the one that
    waited longest. A curve is of one protocol: where `more` has cells of a curve by another than
    the studies', they alone are taken. Studies' workloads with goals of another task than
    classification are left out: pages compare errors.  So are studies in `plans.APART`. Raises
    ValueError for a field that cells do not have.
    """
    known = [f.name for f in fields_of(Cell)]
    for field, value in fields.items():
        require(
            field in known, field, value, f"left out; the fields of a cell are {', '.join(known)}"
        )

    def found(cells: Iterable[Cell]) -> dict[Cell, None]:
        fitting = (c for c in cells if all(getattr(c, k) == v for k, v in fields.items()))
        return dict.fromkeys(c for c in fitting if store.exists(record(c)))

    usual = (s for name, s in STUDIES.items() if name not in APART)
    errors = (c for s in usual for c in s.cells if c.work.task == "classification")
    planned, given = found(errors), found(c for s in more for c in s.cells)
    points = {_point(c): _protocol(c) for c in planned}
    known = {(_curve(c), _protocol(c)) for c in planned}
    new = [c for c in given if c not in planned]
    other = (c for c in new if points.get(_point(c), _protocol(c)) != _protocol(c))
    apart = {
        _curve(c) for c in (*other, *(c for c in new if (_curve(c), _protocol(c)) not in known))
    }
    kept, taken = [c for c in planned if c in given or _curve(c) not in apart], {}
    for cell in sorted((*kept, *new), key=lambda c: (-(c.race or math.inf), c.rungs)):
        taken.setdefault(_point(cell), cell)
    return Study("gathered", "All that is measured", tuple(taken.values()))


def compared(*more: Study) -> Study:
    """What pages compare: `gathered` with `plans.USUAL`, and the curves of `plans.TO_BUDGETS` that
    it lacks.
    """
    found = gathered(*more, **USUAL).cells
    known = {_network(c) for c in found}
    others = (c for name in TO_BUDGETS for c in STUDIES[name].cells)
    lacking = [c for c in others if _network(c) not in known and store.exists(record(c))]
    return Study("compared", "All that pages compare", (*found, *lacking))


def status(folder: Path = DATA) -> pd.DataFrame:
    """A row per study: cells done and planned, trials, training steps, hours, devices, precisions,
    dates.
    """
    rows = []
    for s in STUDIES.values():
        heads = [store.head(f, c) for c in s.cells if store.exists(f := record(c, folder))]
        rows.append({"study": s.name, "cells": len(heads), "planned": len(s.cells), **_sums(heads)})
    return pd.DataFrame(rows)


def status_of_own(folder: Path = DATA) -> pd.DataFrame:
    """A row per workload and training method of which one is a reader's own and records are kept,
    of whatever version of its file: as `status`, without what is planned, which nobody knows.

    Files that are no records are passed over.
    """
    found: dict[tuple[str, str], list[dict]] = {}
    for file in sorted((folder / "own").rglob("*.csv")):
        with contextlib.suppress(store.RecordError, OSError, KeyError):
            head = store.head(file)
            key = head["cell"]["workload"], head["cell"].get("algorithm", "sgd")
            found.setdefault(key, []).append(head)
    return pd.DataFrame(
        {"workload": name, "method": method, "cells": len(heads), **_sums(heads)}
        for (name, method), heads in found.items()
    )


def _sums(heads: list[dict]) -> dict[str, object]:
    """What the records with these first lines took, and where they were made."""
    seen = ("device", "precision", "torch", "date")
    return {
        "trials": sum(h["rows"] for h in heads),
        "training steps": sum(h["trial_steps"] for h in heads),
        "core hours": sum(h["wall_s"] for h in heads) / 3600,
        **{k: ", ".join(sorted({h[k] for h in heads})) for k in seen},
    }
