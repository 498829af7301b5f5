"""Where records lie."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

from lib import ROOT, code, own
from lib.methods import method
from lib.records import store
from lib.studies.cells import Cell
from lib.workloads.catalogue import Workload, workload

DATA = ROOT / "data"
# Toy results of budget="smoke", never mixed with measurements, nor with those of other code, be it
# a track's or a portrait's.
SMOKE = ROOT / "_build" / "smoke" / code(["."])


def place(name: str) -> str:
    """The folder of a workload's records."""
    return "own" if workload(name).source else workload(name).dataset


def record(cell: Cell, folder: Path = DATA) -> Path:
    """Where the cell's record lies: by data set, so that every study finds it; of a reader's own
    workload or method under own/.
    """
    return _record(cell, folder, cell.work, method(cell.algorithm).source)


# Asked for every cell of every study a dozen times, and a digest takes longer than reading
@functools.lru_cache(maxsize=2**16)
def _record(cell: Cell, folder: Path, work: Workload, source: str) -> Path:
    """work, source: the workload and the digest of a reader's own method, so that a changed file is
    looked up anew.
    """
    return store.path(folder / ("own" if own.is_own(cell.algorithm) else place(work.name)), cell)


def same_data(name: str, folder: Path = DATA, mine: str | None = None) -> None:
    """Raise OwnError unless all records of a reader's own workload, as its file is now, are of the
    same tensors.

    mine: the digest of the tensors (`own_file.data`) of which another record is to be added.
    Records that tell none pass.
    """
    found = {} if mine is None else {mine: "what the function returns here and now"}
    work = workload(name)
    for file in sorted((folder / place(name) / own.folder_name(work.name)).rglob("*.csv")):
        stat = file.stat()
        if data := _data(file, folder, work.source, (stat.st_mtime_ns, stat.st_size)):
            found.setdefault(data, file)
    if len(found) > 1:
        each = ", ".join(f"{data} of {where}" for data, where in found.items())
        raise own.OwnError(
            f"{name}: data: tensors that differ ({each}) is not allowed; it must be the same in every process, or the records "
            f"of the others moved out of data/"
        )


@functools.lru_cache(maxsize=2**16)  # every cell that is measured asks again
def _data(file: Path, folder: Path, source: str, stamp: tuple[int, int]) -> str | None:
    """The tensors of which a record tells, if it is of the reader's file with this digest; stamp:
    as the record is now.
    """
    with contextlib.suppress(
        TypeError, ValueError, store.RecordError
    ):  # of the file as it was, or another's
        head = store.head(file)
        if record(Cell(**head["cell"]), folder) == file:
            return head.get("data")
    return None
