"""Branches of a run: those that have no record are trained."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lib.measuring import runner
from lib.probes.branches import FOLDER, Branch, record
from lib.records import store


def measure(branch: Branch, reports: str | None = None, folder: Path = FOLDER) -> Path:
    """Train the run and its branches, and write the record; returns the file."""
    from lib.probes import branching  # brings PyTorch, which is slow to import, and most chapters only read

    return runner.write(record(branch, folder), branch, lambda: branching.train(branch), branch.cell.arithmetic)


def missing(planned: Iterable[Branch], folder: Path = FOLDER) -> list[Branch]:
    """Those that have no record."""
    return store.missing(planned, record, folder)


def run(planned: Iterable[Branch], folder: Path = FOLDER, jobs: int = 1) -> None:
    """Train those that have no record, one a job, under a bar."""
    runner.run(missing(planned, folder), measure, "branches", "branch", jobs, folder=folder)
