"""Every claim, judged once from the records and kept for this code and these data: front page,
ledger and chapters read the same.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter

from lib import ROOT, code, whole
from lib.analysis import ranges, scaling
from lib.claims.claim import REGISTRY, Claim, Finding, Group, judged, place
from lib.records import results, selection
from lib.records import searches as table
from lib.records.store import DATA
from lib.studies.study import Study

# --- what is kept ---------------------------------------------------------------------------------

BUILD = (
    "BOOK_BUILD"  # names the folder of a build elsewhere: its caches are read and written, too
)
UNWRITTEN: dict[Path, str] = {}  # what no folder took


def kept(name: str, compute: Callable[[], dict], folders: Sequence[Path] = ()) -> dict:
    """What `compute` returns, as JSON knows it: from the file that this code and these data have,
    or into it.

    folders: where it may lie; () for those of the build.  It is written to the first that takes it,
    and if none does (they are another user's, or the disk is full) kept by this process.  Notebooks
    that run side by side may both compute.
    """
    files = [folder / f"{name}-{_digest()}.json" for folder in folders or _folders()]
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # none yet, or one that cannot be read
            return json.loads(file.read_text(encoding="utf-8"))
    found = UNWRITTEN.get(files[0]) or json.dumps(compute(), ensure_ascii=False, indent=1)
    for file in files:
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            with whole(file) as stream:
                stream.write(found.encode())
            break
    else:
        UNWRITTEN[files[0]] = found
    return json.loads(found)


def _folders() -> list[Path]:
    return [
        Path(build, "claims") for build in (ROOT / "_build", os.environ.get(BUILD)) if build
    ]


@functools.cache
def _digest() -> str:
    """Of all code in lib and beside chapters, and of when every record of the book's was last
    changed and its size.
    """
    files = (
        file for file in sorted(DATA.rglob("*")) if file.suffix != ".part" and file.is_file()
    )
    # Of a reader's own nothing is kept
    book = ((file, file.stat()) for file in files if not file.is_relative_to(DATA / "own"))
    stamps = [(str(file), of.st_mtime_ns, of.st_size) for file, of in book]
    beside = [file.read_bytes() for file in sorted(ROOT.glob("chapters/*/*.py"))]
    return hashlib.sha256(f"{code(['**/*.py'])} {beside} {stamps}".encode()).hexdigest()[:16]


# --- what claims are judged on --------------------------------------------------------------------


@functools.cache
def searches() -> pd.DataFrame:
    """All searches that pages compare, a row each, each workload at its goal, momentum over its
    whole range where that is measured (then a row for each half).
    """
    return at_goals(selection.compared())[1]


@functools.cache
def trials() -> pd.DataFrame:
    """All trials of the dense ones of `searches`; without what they had met within budgets.  It
    takes seconds.
    """
    halves = (selection.compared(), ranges.low_momentum())
    dense = [
        replace(half, searches=[c for c in half.searches if not c.sparsity]) for half in halves
    ]
    read = [results.read(study, without=scaling.WITHIN_BUDGETS) for study in dense]
    return scaling.at_goals(ranges.whole(scaling.at_goals(read[0]), read[1]))


@functools.cache
def published() -> pd.DataFrame:
    """As `searches`, momentum over the published range alone."""
    return at_goals(selection.compared())[0]


@functools.lru_cache(maxsize=2)
def at_goals(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`published` and `trials` of another study.  Raises RecordError as `results.read`."""
    found = scaling.at_goals(to_goals(study))
    return found, scaling.at_goals(ranges.whole(found, low()))


@functools.cache
def low() -> pd.DataFrame:
    """The searches below the published range of momentum."""
    return to_goals(ranges.low_momentum())


def to_goals(study: Study) -> pd.DataFrame:
    """The study's searches (`results.of_searches`)."""
    return results.of_searches(study)


def _once(compute: Callable) -> Callable:
    """A function of a table of searches that computes it once for all who ask it of `searches`."""
    known = functools.cache(lambda: compute(searches()))

    def of(found: pd.DataFrame) -> object:
        asked = searches.cache_info().currsize and found is searches()  # not read for this
        return known() if asked else compute(found)

    return of


summaries = _once(scaling.summaries)
points = _once(lambda found: scaling.across_replicates(scaling.steps_to_result(found)))


def summary() -> pd.DataFrame:
    """Every curve on one row (`scaling.summaries`)."""
    return summaries(searches())[0]


def curves() -> dict[tuple, scaling.Curve]:
    """Every curve by its key (workload, algorithm, pruning, sparsity)."""
    return summaries(searches())[1]


@functools.cache
def published_curves() -> dict[tuple, scaling.Curve]:
    """The dense curves of `published`, by their keys."""
    found = published()
    return scaling.curves(found[found.sparsity == 0])


@functools.cache
def ladders() -> dict[tuple, list[scaling.Curve]]:
    """Every curve at the rungs of `scaling.ladders`, by its key."""
    return scaling.ladders(searches(), orders())


def ladders_of(searches: pd.DataFrame, curves: Mapping[tuple, scaling.Curve]) -> dict:
    """The curves at several goals of these searches, by key; where nothing but K* is on record, the
    curve itself alone.
    """
    known = scaling.ladders(searches, orders()) if "record" in searches else {}
    return {key: known.get(key, [curve]) for key, curve in curves.items()}


@functools.cache
def orders() -> pd.DataFrame:
    """In how many steps the first ten trials of every search met each goal: record, goal, k1 ...
    k10.
    """
    every = table.table(*table.ORDER[1:])
    return every[["record", "goal", *table.ORDER]].astype({"record": object})


PROVIDED = {
    f.__name__: f
    for f in (searches, trials, published, published_curves, summary, curves, ladders)
}


# --- judging --------------------------------------------------------------------------------------


def judge() -> dict[str, Claim]:
    """Every claim by its key, judged on all records: computed once for this code and these data."""
    return TypeAdapter(dict[str, Claim]).validate_python(kept("claims", _judge))


def findings() -> dict[str, Finding]:
    """Every finding by its key, with what is measured, likewise."""
    return TypeAdapter(dict[str, Finding]).validate_python(kept("findings", _measure))


def every() -> dict[str, Finding]:
    """All claims and findings by key."""
    return {**judge(), **findings()}


def of_chapter(name: str) -> dict[str, Finding]:
    """The claims and findings of a chapter, by key."""
    return {key: one for key, one in every().items() if one.chapter == name}


def registered() -> dict[str, Claim]:
    """Every claim before it is judged, in the order of keys' papers and numbers."""
    for file in sorted(ROOT.glob("chapters/*/claims.py")):
        importlib.import_module(f"chapters.{file.parent.name}.claims")
    return dict(sorted(REGISTRY.claims.items(), key=lambda item: place(item[0])))


def _judge() -> dict[str, dict]:
    claims = registered().items()
    return {key: asdict(judged(claim, groups_of(key))) for key, claim in claims}


def _measure() -> dict[str, dict]:
    registered()
    entries = sorted(REGISTRY.findings.items(), key=lambda item: place(item[0]))
    return {key: asdict(replace(one, groups=tuple(groups_of(key)))) for key, one in entries}


def groups_of(key: str) -> list[Group]:
    """What the function of a claim or finding makes of the records."""
    function = REGISTRY.functions[key]
    wanted = inspect.signature(function).parameters
    return list(function(**{name: PROVIDED[name]() for name in wanted}))
