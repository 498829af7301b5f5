"""Every claim, judged once from the records and kept: front page, ledger and chapters read the
same.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
from collections.abc import Callable

import pandas as pd
from pydantic import TypeAdapter

from lib import ROOT
from lib.analysis import ranges, scaling
from lib.claims.cache import kept
from lib.claims.claim import REGISTRY, Claim, Group, judged
from lib.records import on_record, results
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


@functools.lru_cache(maxsize=2)  # a table takes seconds to read
def at_goals(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`published` and `trials` of another study.  Raises RecordError as `results.read`."""
    found = scaling.at_goals(to_goals(study))
    return found, scaling.at_goals(ranges.whole(found, low()))


@functools.cache
def low() -> pd.DataFrame:
    """The trials below the published range of momentum."""
    return to_goals(ranges.low_momentum())


def to_goals(study: Study) -> pd.DataFrame:
    """The study's trials as of `results.read`, but for their fifty columns of errors within budgets
    and of losses, which take half of the time.
    """
    return results.read(study, without=scaling.WITHIN_BUDGETS)


def _once(compute: Callable) -> Callable:
    """A function of a table of trials that computes it once for all who ask it of `trials`."""
    known = functools.cache(lambda: compute(trials()))

    def of(found: pd.DataFrame) -> object:
        asked = trials.cache_info().currsize and found is trials()  # not read for this
        return known() if asked else compute(found)

    return of


summaries = _once(scaling.summaries)
points = _once(lambda found: scaling.across_replicates(scaling.steps_to_result(found)))


def summary() -> pd.DataFrame:
    """Every curve on one row (`scaling.summaries`)."""
    return summaries(trials())[0]


def curves() -> dict[tuple, scaling.Curve]:
    """Every curve by its key (workload, algorithm, pruning, sparsity)."""
    return summaries(trials())[1]


@functools.cache
def published_curves() -> dict[tuple, scaling.Curve]:
    """The dense curves of `published`, by their keys."""
    found = published()
    return scaling.curves(found[found.sparsity == 0])


PROVIDED = {f.__name__: f for f in (trials, published, published_curves, summary, curves)}


# --- judging --------------------------------------------------------------------------------------


def judge() -> dict[str, Claim]:
    """Every claim by its key, judged on all records: computed once for this code and these data."""
    return TypeAdapter(dict[str, Claim]).validate_python(kept("claims", _judge))


def registered() -> dict[str, Claim]:
    """Every claim before it is judged, in the order of keys' papers and numbers."""
    for file in sorted(ROOT.glob("chapters/*/claims.py")):
        importlib.import_module(f"chapters.{file.parent.name}.claims")
    return dict(sorted(REGISTRY.claims.items(), key=lambda item: _order(item[0])))


def _order(key: str) -> tuple:
    return "LSTMOGABIPFNURHDQWVC".find(key[0]), int(re.sub(r"\D", "", key)), key


def _judge() -> dict[str, dict]:
    found = {key: judged(claim, groups_of(key)) for key, claim in registered().items()}
    return {key: dataclasses.asdict(claim) for key, claim in found.items()}


def groups_of(key: str) -> list[Group]:
    """What a claim's function finds on the records."""
    function = REGISTRY.functions[key]
    wanted = inspect.signature(function).parameters
    return list(function(**{name: PROVIDED[name]() for name in wanted}))
