"""Retracing paths: those that have no record are measured."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lib.measuring import runner
from lib.probes.paths import Walk, missing, record
from lib.records.store import DATA


def run(walks: Iterable[Walk], data: Path = DATA, jobs: int = 1) -> None:
    """Measure those that have no record, one a job; data: the folder of the cells' records."""
    runner.run(missing(walks, data / "paths"), measure, "paths", "path", jobs, data=data)


def measure(walk: Walk, reports: str | None = None, data: Path = DATA) -> Path:
    """Train the trial again and write its record under data/paths; returns the file."""
    # Brings PyTorch, which is slow to import, and most chapters only read
    from lib.probes import (
        walking,
    )

    file = record(walk, data / "paths")
    return runner.write(file, walk, lambda: walking.measured(walk, data), walk.cell.arithmetic)
