"""Measuring tracks.

python -m lib.probes.track_runs run digits --jobs 2     # measures what is missing; stop and resume at any time
"""

from __future__ import annotations

import argparse
import datetime
import time
from pathlib import Path

import joblib
import pandas as pd
from tqdm import tqdm

from lib import SOURCE
from lib.measuring import sweeps
from lib.measuring.jobs import MOST, each, number, stoppable
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
    store.prepare(file := record(track, data / "tracks"))
    began, date = time.perf_counter(), datetime.datetime.now(datetime.UTC).date()
    table = follow.follow(track, data)
    provenance = {
        "date": date.isoformat(),
        "torch": torch.__version__,
        "device": machine.device_name("cpu"),
        "source": SOURCE,
        "wall_s": round(time.perf_counter() - began, 2),
    }
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


def missing(planned: list[Track], data: Path = DATA) -> list[Track]:
    """Those that have no record."""
    return [t for t in planned if not record(t, data / "tracks").exists()]


def run(planned: list[Track], data: Path = DATA, jobs: int = 1) -> None:
    """Measure the tracks that have no record, one a job; data: the folder of the cells' records."""
    if todo := missing(planned, data):
        for _ in tqdm(each((joblib.delayed(measure)(t, data) for t in todo), jobs), total=len(todo), unit="track"):
            pass


def main(arguments: list[str] | None = None) -> None:
    """The command line: measure what is missing."""
    parser = argparse.ArgumentParser(prog="python -m lib.probes.tracks", description="Follow the fastest trials again.")
    parser.add_argument("command", choices=["run"])
    parser.add_argument("tracks", choices=list(TRACKS | TWINS))
    parser.add_argument("--jobs", type=number, default=1, help=f"tracks followed side by side, 1 to {MOST}")
    chosen = parser.parse_args(arguments)
    planned = (TRACKS | TWINS)[chosen.tracks]()
    print(f"{chosen.tracks}: {len(missing(planned)) or 'none'} of {len(planned)} tracks to follow")
    again = f"python -m lib.probes.tracks run {chosen.tracks} --jobs {chosen.jobs}"
    with stoppable(lambda: f"{len(planned) - len(missing(planned))} of {len(planned)} tracks are in data/", again):
        run(planned, jobs=chosen.jobs)


if __name__ == "__main__":
    main()
