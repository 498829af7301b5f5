"""Every claim, judged once from the records and cached for this code and these data, so that front
page, ledger and chapters agree.
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
from lib.records.archive import stamp
from lib.records.store import DATA
from lib.studies.study import Study

# --- what is kept ---------------------------------------------------------------------------------

# Names the folder of a build elsewhere, whose caches are read and written, too
BUILD = "BOOK_BUILD"
UNWRITTEN: dict[Path, str] = {}  # what could not be written to any folder


def kept(name: str, compute: Callable[[], dict], folders: Sequence[Path] = ()) -> dict:
    """What `compute` returns, as JSON: read from the file for this code and these data, or written
    to it.

    folders: where it may lie; () for those of the build.  It is written to the first that can be
    written, or else (another user's folders, or a full disk) kept by this process.  Notebooks that
    run in parallel may both compute.
    """
    builds = (ROOT / "_build", os.environ.get(BUILD))
    folders = folders or [Path(build, "claims") for build in builds if build]
    files = [folder / f"{name}-{_digest()}.json" for folder in folders]
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # missing or unreadable
            return json.loads(file.read_text(encoding="utf-8"))
    text = UNWRITTEN.get(files[0])
    text = text or json.dumps(compute(), ensure_ascii=False, indent=1)
    for file in files:
        with contextlib.suppress(OSError):
            with whole(file) as stream:
                stream.write(text.encode())
            break
    else:
        UNWRITTEN[files[0]] = text
    return json.loads(text)


@functools.cache
def _digest() -> str:
    """Digest of all code in lib, of all files beside chapters, and of the time of modification and
    size of every record of the book.
    """
    files = (file for file in sorted(DATA.rglob("*")) if file.suffix != ".part")
    # Nothing of readers' own workloads is cached
    book = (f for f in files if f.is_file() and not f.is_relative_to(DATA / "own"))
    stamps = [(str(file), stamp(file)) for file in book]
    chapters = [f.read_bytes() for f in sorted(ROOT.glob("chapters/*/*.*")) if f.is_file()]
    return hashlib.sha256(f"{code(['**/*.py'])} {chapters} {stamps}".encode()).hexdigest()[:16]


# --- what claims are judged on --------------------------------------------------------------------


@functools.cache
def searches() -> pd.DataFrame:
    """All searches that pages compare, a row each, each workload at its goal; momentum over its
    whole range if that is measured (then a row for each half).
    """
    return at_goals(selection.compared())[1]


@functools.cache
def trials() -> pd.DataFrame:
    """All trials of the dense `searches`, without what they reached within budgets.  Takes
    seconds.
    """
    halves = []
    for study in (selection.compared(), ranges.low_momentum()):
        dense = replace(study, searches=[s for s in study.searches if not s.sparsity])
        halves.append(results.read(dense, without=scaling.WITHIN_BUDGETS))
    return scaling.at_goals(ranges.whole(scaling.at_goals(halves[0]), halves[1]))


@functools.cache
def published() -> pd.DataFrame:
    """As `searches`, with momentum over the published range only."""
    return at_goals(selection.compared())[0]


@functools.lru_cache(maxsize=2)
def at_goals(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`published` and `searches` for another study.  Raises RecordError as `results.read`."""
    rows = scaling.at_goals(to_goals(study))
    return rows, scaling.at_goals(ranges.whole(rows, low()))


@functools.cache
def low() -> pd.DataFrame:
    """The searches below the published range of momentum."""
    return to_goals(ranges.low_momentum())


to_goals = results.of_searches


def _once(compute: Callable) -> Callable:
    """Make a function of a table compute only once for each table."""
    computed = {}  # holds the tables, too, so that no other gets the same id

    def look_up(table: pd.DataFrame) -> object:
        if id(table) not in computed:
            computed[id(table)] = table, compute(table)
        return computed[id(table)][1]

    return look_up


summaries = _once(scaling.summaries)
points = _once(lambda rows: scaling.across_replicates(scaling.steps_to_result(rows)))


def summary() -> pd.DataFrame:
    """A row for every curve (`scaling.summaries`)."""
    return summaries(searches())[0]


def curves() -> dict[tuple, scaling.Curve]:
    """Every curve by its key (workload, algorithm, pruning, sparsity)."""
    return summaries(searches())[1]


@functools.cache
def published_curves() -> dict[tuple, scaling.Curve]:
    """The dense curves of `published`, by their keys."""
    return scaling.curves(published().query("sparsity == 0"))


@functools.cache
def ladders() -> dict[tuple, list[scaling.Curve]]:
    """Every curve at the rungs of `scaling.ladders`, by its key."""
    return scaling.ladders(searches(), orders())


def ladders_of(searches: pd.DataFrame, curves: Mapping[tuple, scaling.Curve]) -> dict:
    """The curves of these searches at several goals, by key; only the curve itself if nothing but
    K* is on record.
    """
    ladder = scaling.ladders(searches, orders()) if "record" in searches else {}
    return {key: ladder.get(key, [curve]) for key, curve in curves.items()}


@functools.cache
def orders() -> pd.DataFrame:
    """The steps in which the first ten trials of every search met each goal: record, goal, k1 ...
    k10.
    """
    rows = table.table(*table.ORDER[1:])
    return rows[["record", "goal", *table.ORDER]].astype({"record": object})


PROVIDED = {
    f.__name__: f
    for f in (searches, trials, published, published_curves, summary, curves, ladders)
}


# --- judging --------------------------------------------------------------------------------------


def registered(kind: type = Claim) -> dict:
    """Every claim (or finding, for Finding) before it is judged, in the order of keys' papers and
    numbers.
    """
    for file in sorted(ROOT.glob("chapters/*/claims.py")):
        importlib.import_module(f"chapters.{file.parent.name}.claims")
    entries = {key: REGISTRY[key][0] for key in sorted(REGISTRY, key=place)}
    return {key: entry for key, entry in entries.items() if type(entry) is kind}


def judge() -> dict[str, Claim]:
    """Every claim by its key, judged on all records: computed once for this code and these data."""
    return _computed("claims", Claim, judged)


def findings() -> dict[str, Finding]:
    """Every finding by its key, with what is measured, computed likewise."""
    return _computed("findings", Finding, lambda f, groups: replace(f, groups=tuple(groups)))


def _computed(name: str, kind: type, measured: Callable) -> dict:
    def compute() -> dict[str, dict]:
        entries = registered(kind).items()
        return {key: asdict(measured(entry, groups_of(key))) for key, entry in entries}

    return TypeAdapter(dict[str, kind]).validate_python(kept(name, compute))


def every() -> dict[str, Finding]:
    """All claims and findings by key."""
    return {**judge(), **findings()}


def of_chapter(name: str) -> dict[str, Finding]:
    """The claims and findings of a chapter, by key."""
    return {key: entry for key, entry in every().items() if entry.chapter == name}


def groups_of(key: str) -> list[Group]:
    """The groups that the function of a claim or finding returns for the records."""
    _, function = REGISTRY[key]
    tables = inspect.signature(function).parameters
    return list(function(**{name: PROVIDED[name]() for name in tables}))
