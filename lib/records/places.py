"""Where records lie."""

from __future__ import annotations

import functools
from pathlib import Path

from lib import ROOT
from lib.records import store
from lib.studies.cells import Cell
from lib.workloads.catalogue import Workload, workload

DATA = ROOT / "data"


def place(name: str) -> str:
    """The folder of a workload's records."""
    return "own" if workload(name).source else workload(name).dataset


def record(cell: Cell, folder: Path = DATA) -> Path:
    """Where the cell's record lies: by data set, so that every study finds it; a reader's own workloads under own/."""
    return _record(cell, folder, workload(cell.workload))


@functools.lru_cache(maxsize=2**16)  # asked for every cell of every study a dozen times, and a digest takes longer than reading
def _record(cell: Cell, folder: Path, _: Workload) -> Path:
    return store.path(folder / place(cell.workload), cell)
