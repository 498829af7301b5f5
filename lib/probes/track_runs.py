"""Measuring tracks.

python -m lib.probes.track_runs run digits --jobs 2     # measures what is missing; stop and resume at any time
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

import joblib
import pandas as pd
from tqdm import tqdm

from lib import SOURCE
from lib.measuring import sweeps
from lib.probes.tracks import TRACKS, TWINS, Track, _of, read, record
from lib.records import store
from lib.records.places import DATA
from lib.studies.study import Study


def measure(track: Track, data: Path = DATA) -> Path:
    """Follow a track and write its record under data/tracks; returns the file."""
    import torch  # slow to import, and most chapters only read

    from lib.measuring import machine
    from lib.probes import follow

    machine.use_one_core()
    began = datetime.datetime.now(datetime.UTC)
    table = follow.follow(track, data)
    provenance = {
        "date": began.date().isoformat(),
        "torch": torch.__version__,
        "device": machine.device_name("cpu"),
        "source": SOURCE,
        "wall_s": round((datetime.datetime.now(datetime.UTC) - began).total_seconds(), 2),
    }
    file = record(track, data / "tracks")
    store.write(file, track, table, provenance)
    return file


def along(study: Study, count: int, points: int, budget: str = "cached") -> pd.DataFrame:
    """The points of the `count` fastest trials of each of a study's cells that has a record; budget: as for results.

    "cached" reads, "full" follows what is missing, "smoke" follows one trial of each toy cell.
    """
    if budget == "smoke":
        study, data, count, points = study.smoke(), sweeps.SMOKE, 1, 3
    else:
        data = DATA
    planned = _of(study.cells, count, data, points=points)
    if budget != "cached":
        run(planned, data)
    return read(planned, data / "tracks")


def run(planned: list[Track], data: Path = DATA, jobs: int = 1) -> None:
    """Measure the tracks that have no record, one a job; data: the folder of the cells' records."""
    todo = [t for t in planned if not record(t, data / "tracks").exists()]
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs + 1", batch_size=1)
    for _ in tqdm(parallel(joblib.delayed(measure)(t, data) for t in todo), total=len(todo), unit="track"):
        pass


def main(arguments: list[str] | None = None) -> None:
    """The command line: measure what is missing."""
    parser = argparse.ArgumentParser(prog="python -m lib.probes.tracks", description="Follow the fastest trials again.")
    parser.add_argument("command", choices=["run"])
    parser.add_argument("tracks", choices=list(TRACKS | TWINS))
    parser.add_argument("--jobs", type=sweeps.positive, default=1, help="tracks followed side by side, one thread each")
    chosen = parser.parse_args(arguments)
    run((TRACKS | TWINS)[chosen.tracks](), jobs=chosen.jobs)
