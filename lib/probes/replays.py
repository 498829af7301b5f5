"""Measures searches on record again: does today's code on this machine reproduce their records?"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib import SOURCE, require
from lib.fields import POSITIVE, Count, spec
from lib.measuring import runner, sweeps
from lib.records import store
from lib.records.store import DATA, record
from lib.studies import plans
from lib.studies.search import NUMBER, Search
from lib.studies.study import Study

FOLDER = DATA / "replays"
MOST = 1000  # searches of a replay


@spec
class Replay:
    """A sample of a study's searches, drawn with a seed among those on record that took no longer
    than `longest`.

    code: digest of what measures them again (`lib.SOURCE`); other code is another replay.
    longest: in seconds.
    """

    study: str
    sample: Count(MOST) = 20
    seed: NUMBER = 0
    code: str = ""
    longest: POSITIVE = 600.0

    def cells(self, data: Path = DATA) -> tuple[Search, ...]:
        """The searches to measure again; fewer than `sample` if no more are on record."""
        files = {cell: record(cell, data) for cell in plans.study(self.study).searches}
        short = [
            cell
            for cell, file in files.items()
            if store.exists(file) and store.head(file)["wall_s"] <= self.longest
        ]
        order = np.random.default_rng(self.seed).permutation(len(short))[: self.sample]
        return tuple(short[place] for place in order)


def place(what: Replay, folder: Path = FOLDER) -> Path:
    """Where a replay's record lies."""
    return folder / f"{what.study}-{store.digest(what)}.csv"


def run(what: Replay, data: Path = DATA, jobs: int = 1) -> Path:
    """Measure the searches again, in a folder apart from the records, and record how they compare;
    returns the file.

    Raises ValueError naming `longest` if no search on record was that short.
    """
    what = replace(what, code=SOURCE)
    cells = what.cells(data)
    allowed = f"enough for some recorded search of {what.study}"
    require(cells, "longest", what.longest, allowed)

    def measure() -> pd.DataFrame:
        with tempfile.TemporaryDirectory() as folder:
            sweeps.run(Study("replay", "", cells), Path(folder), jobs)
            files = [(record(cell, data), record(cell, Path(folder))) for cell in cells]
            rows = [_compared(cell, *pair) for cell, pair in zip(cells, files)]
        return pd.DataFrame(rows)

    return runner.write(place(what, data / "replays"), what, measure)


def _compared(cell: Search, before: Path, again: Path) -> dict:
    """Compares a search and its replay: whether tables and steps to every goal are equal, and K* at
    the hardest goal that both met.
    """
    (about, table), (_, anew) = (store.read(file, cell) for file in (before, again))
    goals = [column for column in table if column.startswith("steps@")]
    best = pd.DataFrame({"recorded": table[goals].min(), "again": anew[goals].min()})
    met = best.dropna()
    shared = ("workload", "algorithm", "sparsity", "batch_size", "replicate")
    return {
        **{name: getattr(cell, name) for name in shared},
        "equal": table.equals(anew),
        "equal_steps": table[goals].equals(anew[goals]),
        **(met.iloc[0] if len(met) else dict.fromkeys(best, np.nan)),
        "measured_on": _machine(about),
        "record": before.stem,
    }


def _machine(about: dict) -> str:
    """The machine in a record: its processor, or in older records only its device."""
    return about.get("processor", about["device"])


def every(folder: Path = FOLDER) -> pd.DataFrame:
    """A row per search that has been replayed, by the newest of its replays.

    Columns: those of `_compared`; study; source, replayed_on (of the replay); factor (K* again over
    recorded, or its inverse), equal_result (K*).
    """
    records = map(store.read, sorted(folder.glob("*.csv")))
    # The newest last; dates only give the day
    records = sorted(records, key=lambda pair: (pair[0]["date"], pair[0]["source"] == SOURCE))
    tables = [
        table.assign(
            study=head["cell"]["study"], source=head["source"], replayed_on=_machine(head)
        )
        for head, table in records
    ]
    rows = pd.concat(tables, ignore_index=True)
    # In replays that did not name records, each row counts
    rows["record"] = rows.record.fillna(rows.index.to_series().astype(str))
    rows = rows.drop_duplicates(["study", "record"], keep="last")
    off = np.log(rows.again / rows.recorded).abs()
    unmet = rows.recorded.isna() & rows.again.isna()
    equal = (off == 0) | (unmet & rows.equal_steps)
    return rows.assign(factor=np.exp(off), equal_result=equal)


def summary(folder: Path = FOLDER) -> pd.DataFrame:
    """A row per study that has been replayed: all its replays together (`every`).

    Columns: study; searches (how many were measured again), equal (tables), equal_steps (to every
    goal), equal_result (K*), factor (the largest); measured_on, replayed_on (models of processors);
    source (the newest replay's code).
    """

    def models(machines: pd.Series) -> str:
        return ", ".join(sorted({machine.partition(",")[0] for machine in machines}))

    by_study = every(folder).groupby("study")
    return by_study.agg(
        searches=("record", "size"),
        **{name: (name, "sum") for name in ("equal", "equal_steps", "equal_result")},
        factor=("factor", "max"),
        **{name: (name, models) for name in ("measured_on", "replayed_on")},
        source=("source", "last"),
    ).reset_index()
