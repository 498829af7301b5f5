"""Which cells are on record: of the studies of the book, and of a grid that a chapter asks for."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pandas as pd

from lib.records import searches, store
from lib.records.searches import HEAD
from lib.studies import study
from lib.studies.cells import Cell
from lib.studies.plans import STUDIES, TO_BUDGETS, USUAL
from lib.studies.study import BY_GOALS, BY_LOSSES, RACED, Study
from lib.workloads.catalogue import workload


def grid(
    name: str, batch_sizes: list[int], algorithms: list[str], sparsities: list[float], **fields
) -> Study:
    """All combinations for a workload, batch size slowest.

    A race stands in where no exact search is on record.

    Args:
        name: of the workload.
        **fields: further ones of `Cell`. hits: unless given, a sixth of the trials and at most 5,
            so that a small search does not wait for its worst trials; or fewer, where such a
            search is on record: the steps to result are the same.

    Raises as `Cell`.
    """
    axes = {"batch_size": batch_sizes, "algorithm": algorithms, "sparsity": sparsities}
    usual = min(5, max(1, fields.get("trials", 100) // 6))
    cells = list(study.grid(workload=name, **axes, **{"hits": usual} | fields))
    return Study(
        name, workload(name).title, cells if "hits" in fields else map(_on_record, cells)
    )


def _on_record(cell: Cell) -> Cell:
    """The cell, or if it has no record the same search that has one: exact with fewer hits, or else
    a race.
    """
    searches = [replace(cell, hits=hits) for hits in range(cell.hits, 0, -1)]
    if cell.stop == "goal" and cell.work.dataset in RACED:
        searches += [replace(cell, hits=1, **rule) for rule in (BY_GOALS, BY_LOSSES)]
    return next(recorded_of(searches), cell)


def recorded_of(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Those that have a record."""
    yield from searches.recorded(cells).values()


_CURVE = (
    *("workload", "algorithm", "pruning", "sparsity", "stop", "label_smoothing"),
    *("messages", "staleness", "delays"),
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
    classification are left out: pages compare errors.  So are studies that are `apart`.
    """
    usual = (
        cell
        for study in STUDIES.values()
        if not study.apart
        for cell in study.cells
        if cell.work.task == "classification"
    )
    planned = _with_fields(usual, fields)
    given = _with_fields((c for s in more for c in s.cells), fields)
    new = [c for c in given if c not in planned]
    points = {_point(cell): _protocol(cell) for cell in planned}
    curves = {(_curve(cell), _protocol(cell)) for cell in planned}
    foreign = set()
    for cell in new:
        own = _protocol(cell)
        at_point = points.get(_point(cell), own)
        if (_curve(cell), own) not in curves or at_point != own:
            foreign.add(_curve(cell))
    kept = [c for c in planned if c in given or _curve(c) not in foreign]
    taken = {}
    for cell in sorted((*kept, *new), key=lambda c: (-(c.race or math.inf), c.rungs)):
        taken.setdefault(_point(cell), cell)
    return Study("gathered", "All that is measured", taken.values())


def _with_fields(cells: Iterable[Cell], fields: dict) -> dict[Cell, None]:
    """Those with these fields and a record, each once."""
    fitting = (c for c in cells if all(_fits(c, *field) for field in fields.items()))
    return dict.fromkeys(recorded_of(fitting))


def _fits(cell: Cell, field: str, value: object) -> bool:
    own = getattr(cell, field)
    # Up to the workload's own limit, a search with a longer one is the same
    longer = field == "max_steps" and value is None and (own or 0) > cell.work.max_steps
    return longer or own == value


def compared(*more: Study) -> Study:
    """What pages compare: `gathered` with `plans.USUAL`, and the curves of `plans.TO_BUDGETS` that
    it lacks.
    """
    found = gathered(*more, **USUAL).cells
    known = {_network(c) for c in found}
    others = (c for name in TO_BUDGETS for c in STUDIES[name].cells)
    lacking = recorded_of(c for c in others if _network(c) not in known)
    return Study("compared", "All that pages compare", (*found, *lacking))


def status() -> pd.DataFrame:
    """A row per study: cells done and planned, trials, training steps, hours, devices, precisions,
    dates.
    """
    rows, texts = [], ["device", "precision", "torch", "date"]
    every = searches.table().drop_duplicates("record").set_index("record")
    every = every.drop(columns="precision").rename(columns=HEAD)
    for s in STUDIES.values():
        there = searches.recorded(s.cells)
        heads = [file.relative_to(store.DATA).as_posix() for file in there]
        told = every.loc[heads]
        row = {"study": s.name, "cells": len(heads), "planned": len(s.cells)}
        row["trials"], row["training steps"] = told.rows.sum(), told.trial_steps.sum()
        row["core hours"] = told.wall_s.sum() / 3600
        rows.append(row | {name: ", ".join(sorted(set(told[name]))) for name in texts})
    return pd.DataFrame(rows)
