"""Following tracks: those that have no record are measured, and their points read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lib.measuring import runner
from lib.probes.tracks import Track, of_cells, read, record
from lib.records import store
from lib.records.store import DATA, SMOKE
from lib.studies.study import Study


def measure(track: Track, reports: str | None = None, data: Path = DATA) -> Path:
    """Follow a track and write its record under data/tracks; returns the file."""
    # Brings PyTorch, which is slow to import, and most chapters only read
    from lib.probes import (
        follow,
    )

    file = record(track, data / "tracks")
    return runner.write(file, track, lambda: follow.follow(track, data), track.cell.arithmetic)


def along(study: Study, count: int, points: int, budget: str = "cached") -> pd.DataFrame:
    """The points of the `count` fastest trials of each of a study's cells that has a record;
    budget: as for results.

    "cached" reads, "full" follows what is missing, "smoke" follows one trial of each toy cell.
    """
    if budget == "smoke":
        study, data, count, points = study.smoke(), SMOKE, 1, 3
    else:
        data = DATA
    planned = of_cells(study.cells, count, data, points=points)
    if budget != "cached":
        run(planned, data)
    return read(planned, data / "tracks")


def missing(planned: list[Track], data: Path = DATA) -> list[Track]:
    """Those that have no record."""
    return store.missing(planned, record, data / "tracks")


def run(planned: list[Track], data: Path = DATA, jobs: int = 1) -> None:
    """Measure the tracks that have no record, one a job; data: the folder of the cells' records."""
    runner.run(missing(planned, data), measure, "tracks", "track", jobs, data=data)
