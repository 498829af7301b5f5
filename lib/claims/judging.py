"""Every claim, judged once from the records and kept: front page, ledger and chapters read the
same.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect

import numpy as np
import pandas as pd

from lib import ROOT
from lib.analysis import goals, ranges, scaling
from lib.claims.cache import kept
from lib.claims.claim import REGISTRY, Change, Claim, Group, judged, with_discoveries
from lib.records import on_record, results, store
from lib.studies.cells import Cell
from lib.studies.study import Study

# --- what claims are judged on --------------------------------------------------------------------


@functools.cache
def trials() -> pd.DataFrame:
    """All trials that pages compare, each workload at its goal, momentum over its whole range where
    that is measured; without what they had met within budgets.
    """
    return at_goals(on_record.compared())[1]


@functools.cache
def published() -> pd.DataFrame:
    """As `trials`, momentum over the published range alone."""
    return at_goals(on_record.compared())[0]


def at_goals(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`published` and `trials` of another study; the same tables where its cells are the same.

    Raises RecordError as `results.read`.
    """
    return _at_goals(study.cells)


@functools.lru_cache(maxsize=2)
def _at_goals(cells: tuple[Cell, ...]) -> tuple[pd.DataFrame, pd.DataFrame]:
    found = goals.at_goals(_to_goals(cells))
    return found, goals.at_goals(ranges.whole(found, low()))


@functools.cache
def low() -> pd.DataFrame:
    """The trials below the published range of momentum."""
    return to_goals(ranges.low_momentum())


def to_goals(study: Study) -> pd.DataFrame:
    """The study's trials as of `results.read`, but for their fifty columns of errors within budgets
    and of losses, which take half of the time.

    Taken from those that claims are judged on, if these are read and hold them all.
    """
    if trials.cache_info().currsize:
        every = on_record.compared().cells
        wanted = set(study.cells)
        if [cell for cell in every if cell in wanted] == list(study.cells):
            return _rows_of(_to_goals(every), [cell in wanted for cell in every])
    return results.read(study, without=scaling.WITHIN_BUDGETS)


@functools.lru_cache(maxsize=2)  # a table takes seconds to read
def _to_goals(cells: tuple[Cell, ...]) -> pd.DataFrame:
    study = Study("compared", "All that pages compare", cells)
    return results.read(study, without=scaling.WITHIN_BUDGETS)


def _rows_of(found: pd.DataFrame, wanted: list[bool]) -> pd.DataFrame:
    """The trials of these of the table's records, all of which it has."""
    heads = found.attrs["provenance"]
    rows = np.repeat(wanted, [head["rows"] for head in heads])
    left = found[rows].reset_index(drop=True)
    kept = [head for head, of_study in zip(heads, wanted) if of_study]
    heads = store.Shared(kept)
    left.attrs.update(missing=store.Shared(), cells_planned=len(kept), provenance=heads)
    return left


@functools.cache
def _summaries() -> tuple[pd.DataFrame, dict]:
    return scaling.summaries(trials())


def summaries(found: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple, scaling.Curve]]:
    """`scaling.summaries`, computed once for all who ask it of `trials`."""
    return _summaries() if _are_trials(found) else scaling.summaries(found)


@functools.cache
def _points() -> pd.DataFrame:
    return scaling.across_replicates(scaling.steps_to_result(trials()))


def points(found: pd.DataFrame) -> pd.DataFrame:
    """The points of all curves (`scaling.across_replicates`), as `summaries`."""
    if _are_trials(found):
        return _points()
    return scaling.across_replicates(scaling.steps_to_result(found))


def _are_trials(found: pd.DataFrame) -> bool:
    """Whether it is the table of `trials`, which is not read for this."""
    return trials.cache_info().currsize > 0 and found is trials()


def summary() -> pd.DataFrame:
    """Every curve on one row (`scaling.summaries`)."""
    return _summaries()[0]


def curves() -> dict[tuple, scaling.Curve]:
    """Every curve by its key (workload, algorithm, pruning, sparsity)."""
    return _summaries()[1]


@functools.cache
def published_curves() -> dict[tuple, scaling.Curve]:
    """The dense curves of `published`, by their keys."""
    found = published()
    return scaling.curves(found[found.sparsity == 0])


PROVIDED = {f.__name__: f for f in (trials, published, published_curves, summary, curves)}


# --- judging --------------------------------------------------------------------------------------


def judge() -> dict[str, Claim]:
    """Every claim by its key, judged on all records: computed once for this code and these data."""
    return {key: _read(fields) for key, fields in kept("claims", _judge).items()}


def registered() -> dict[str, Claim]:
    """Every claim before it is judged, in the order of keys' papers and numbers."""
    for file in sorted(ROOT.glob("chapters/*/claims.py")):
        importlib.import_module(f"chapters.{file.parent.name}.claims")
    return dict(sorted(REGISTRY.claims.items(), key=lambda item: _order(item[0])))


def _order(key: str) -> tuple:
    number = "".join(c for c in key if c.isdigit())
    return "LSTMOGABIPFNURHDQWVC".find(key[0]), int(number), key


def _judge() -> dict[str, dict]:
    found = [judged(claim, groups_of(key)) for key, claim in registered().items()]
    return {claim.key: dataclasses.asdict(claim) for claim in with_discoveries(found)}


def groups_of(key: str) -> list[Group]:
    """What a claim's function finds on the records."""
    function = REGISTRY.functions[key]
    return list(
        function(**{name: PROVIDED[name]() for name in inspect.signature(function).parameters})
    )


def _read(fields: dict) -> Claim:
    history = tuple(Change(**change) for change in fields["history"])
    groups = tuple(Group(**group) for group in fields["groups"])
    return Claim(**fields | {"history": history, "groups": groups})
