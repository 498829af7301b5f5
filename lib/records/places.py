"""Where records lie."""

from __future__ import annotations

from pathlib import Path

from lib import ROOT
from lib.records import store
from lib.studies.cells import Cell
from lib.workloads.catalogue import workload

DATA = ROOT / "data"


def place(name: str) -> str:
    """The folder of a workload's records."""
    return "own" if workload(name).source else workload(name).dataset


def record(cell: Cell, folder: Path = DATA) -> Path:
    """Where the cell's record lies: by data set, so that every study finds it; a reader's own workloads under own/."""
    return store.path(folder / place(cell.workload), cell)
