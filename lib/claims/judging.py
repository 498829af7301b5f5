"""Every claim, judged once from the records and kept: front page, ledger and chapters read the
same.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect

import pandas as pd

from lib import ROOT
from lib.analysis import goals, ranges, scaling
from lib.claims.cache import kept
from lib.claims.claim import REGISTRY, Change, Claim, Group, judged, with_discoveries
from lib.records import on_record, results
from lib.studies.study import Study

# --- what claims are judged on --------------------------------------------------------------------


@functools.cache
def trials() -> pd.DataFrame:
    """All trials that pages compare, each workload at its goal, momentum over its whole range where
    that is measured; without what they had met within budgets.
    """
    return goals.at_goals(ranges.whole(published(), low()))


@functools.cache
def published() -> pd.DataFrame:
    """As `trials`, momentum over the published range alone."""
    return goals.at_goals(_to_goals(on_record.compared()))


@functools.cache
def low() -> pd.DataFrame:
    """The trials below the published range of momentum."""
    return _to_goals(ranges.low_momentum())


def _to_goals(study: Study) -> pd.DataFrame:
    """The study's trials but for their fifty columns of errors within budgets and of losses, which
    take half of the time.
    """
    return results.read(study, without=scaling.WITHIN_BUDGETS)


@functools.cache
def _summaries() -> tuple[pd.DataFrame, dict]:
    return scaling.summaries(trials())


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
    return "LSTMOGABIPFNURQW".find(key[0]), int(number), key


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
