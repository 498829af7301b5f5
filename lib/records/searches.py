"""The table of searches, `data/searches.csv.xz`: a row per search of the book and goal.

A search's record holds a hundred trials.  This table has what curves, claims and most pages need of
them: how soon the first ten trials met each goal, and which hyperparameters did well.  Pages read
this table; trials are read only where trials are shown.

Everything in it is derived.  `rebuild` makes it from the packed records, and `table` adds loose
ones measured since.  If an archive has changed since, a warning names the table, and it is made
anew.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import itertools
import json
import lzma
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from lib import whole
from lib.records import archive, store
from lib.records.store import DATA
from lib.studies.search import Search

FILE, SEAL = "searches.csv.xz", "searches.json"
WINDOW = 2  # trials within so many times the steps of the first do well
REVERSED = {"momentum", "beta1", "beta2"}  # averaged as 1 - value
# Columns of a search, of its messages, of what it cost, and of what measured it
FIELDS = """
workload batch_size algorithm sparsity pruning trials replicate split stop checks hits precision
max_steps space label_smoothing race rungs staleness delays
workers compressor density feedback by_layer aggregation warm_up
""".split()
COSTS = ["best_error", "last_step", "trial_steps", "core_seconds"]
ORIGIN = ["date", "device", "torch", "arithmetic", "source"]
TEXT = """
workload algorithm pruning stop checks precision space rungs delays compressor aggregation
date device torch arithmetic source record
""".split()
FLAGS = ["feedback", "by_layer"]
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Search)[2:]}
# Columns, and prefixes of columns, of a table of trials that are not hyperparameters
OUTCOME = "trial seed status cause last_step best_error best_step sent".split()
BUDGETS = ("best@", "test@", "loss@", "sent@")  # prefixes of columns that are not goals
ORDER = [f"k{i}" for i in range(1, 11)]  # the order statistics of a search's steps in the table
COUNTS = ["met", "well"]
# The names of these columns in a record's first line
HEAD = {
    "core_seconds": "wall_s",
    "trials": "rows",
    "arithmetic": "precision",
    "last_step": "steps",
}


def rows_of(record: str, head: Mapping, trials: pd.DataFrame) -> Iterator[dict]:
    """The rows of one search, a dictionary per goal, the hardest first.

    Args:
        record: the place of its record under data/.
        head: the record's first line.
        trials: its table, a row per trial.

    Yields:
        The search's fields, including those of its messages; goal; k1 ... k10 (steps in which the
        first ten trials met it, NaN beyond those that did); met (number of trials that did); well
        (number within WINDOW k1); for each hyperparameter NAME the value of the first trial (NAME)
        and, over those that did well, the geometric mean (NAME_mid; of 1 - value if `REVERSED`) and
        the ends (NAME_low, NAME_high); COSTS and ORIGIN.
    """
    fields = DEFAULTS | head["cell"]  # early records lack fields that were added later
    fields |= fields.pop("messages", None) or {}
    for name in (*COSTS, *ORIGIN):
        fields[name] = head.get(HEAD.get(name, name))
    fields["best_error"] = trials.best_error.min()
    fields["last_step"] = trials.last_step.max()
    fields["record"] = record
    tuned = [name for name in trials if name not in OUTCOME and "@" not in name]
    drawn = {name: trials[name].to_numpy(float) for name in tuned if trials[name].notna().any()}
    for column in trials:
        if column.startswith("steps@"):
            steps = trials[column].to_numpy(float)
            goal = float(column.removeprefix("steps@"))
            yield {**fields, "goal": goal, **_at_goal(steps, drawn)}


def _at_goal(steps: np.ndarray, drawn: dict[str, np.ndarray]) -> dict:
    """The columns of `rows_of` for one goal; steps: of each trial, NaN if it did not meet it."""
    first = np.argsort(steps, kind="stable")[: np.isfinite(steps).sum()]
    ordered = steps[first]
    row = dict(zip(ORDER, ordered.tolist())) | {"met": len(first), "well": 0}
    if not len(first):
        return row
    well = first[ordered <= WINDOW * ordered[0]]
    row["well"] = len(well)
    for name, values in drawn.items():
        good = values[well]
        row[name] = values[first[0]]
        if name in REVERSED:
            row[f"{name}_mid"] = 1 - np.exp(np.log(1 - good).mean())
        else:
            row[f"{name}_mid"] = np.exp(np.log(good).mean())
        row[f"{name}_low"] = good.min()
        row[f"{name}_high"] = good.max()
    return row


# --- the file -------------------------------------------------------------------------------------


def folders(data: Path = DATA) -> list[Path]:
    """The folders of the book's workloads, DATA_SET/WORKLOAD, with packed searches."""
    return sorted(f.parent for f in data.glob(f"*/*/{archive.PACKED}") if "own" not in f.parts)


def rebuild(data: Path = DATA) -> pd.DataFrame:
    """Rebuild the table from all packed records, write it and its seal, and return it; a warning
    names a file that cannot be written.

    Raises:
        RecordError: naming an archive or a record that is damaged.
    """
    frame = summary((f / place for f in folders(data) for place in store.heads(f)), data)
    tuned = sorted(set(frame) - {*FIELDS, "goal", *ORDER, *COUNTS, *COSTS, *ORIGIN, "record"})
    columns = [*FIELDS, "goal", *ORDER, *COUNTS, *tuned, *COSTS, *ORIGIN, "record"]
    frame = frame.reindex(columns=columns)
    body = lzma.compress(frame.to_csv(index=False, float_format="%.8g").encode())
    contents = {FILE: body, SEAL: json.dumps(_seal(data, body), indent=1).encode()}
    try:
        for name, content in contents.items():
            with whole(data / name) as stream:
                stream.write(content)
    except OSError as error:
        warnings.warn(str(error), stacklevel=2)
    return frame


def summary(files: Iterable[Path], data: Path = DATA) -> pd.DataFrame:
    """The rows of some records, packed or not, as in `table`."""
    rows = []
    # By workload, since goals depend on it
    for _, group in itertools.groupby(sorted(files), lambda file: file.parents[2]):
        places = dict.fromkeys(group)
        heads, trials = store.read_all(places, BUDGETS)
        end = 0
        for file, head in zip(places, heads):
            start, end = end, end + head["rows"]
            place = file.relative_to(data).as_posix()
            rows += rows_of(place, head, trials.iloc[start:end])
    return pd.DataFrame(rows, columns=None if rows else _columns())


def _columns(*more: str) -> list[str]:
    return [*FIELDS, "goal", "k1", *more, *COUNTS, *COSTS, *ORIGIN, "record"]


def _seal(data: Path, body: bytes) -> dict[str, str]:
    """Digests of the table and of every archive from which it was made, by place."""
    files = [folder / archive.PACKED for folder in folders(data)]
    parts = {file.relative_to(data).as_posix(): file.read_bytes() for file in files}
    digests = {FILE: body, **parts}.items()
    return {name: hashlib.sha256(part).hexdigest() for name, part in digests}


def table(*more: str, data: Path = DATA) -> pd.DataFrame:
    """All searches of the book, packed and loose, a row per search and goal.

    Args:
        more: columns of hyperparameters and order statistics beyond FIELDS, goal, k1, COUNTS,
            COSTS, ORIGIN and record.
        data: the folder.

    If the file is missing, damaged, or does not match the archives, a warning names it and the
    table is made anew; it is written if the folder allows.

    Raises:
        RecordError: naming a loose record that is damaged.
    """
    loose = [f for f in data.glob("*/*/*/sparsity-*/batch-*.csv") if "own" not in f.parts]
    files = (data / FILE, data / SEAL, *loose)
    written = tuple((file, archive.stamp(file)) for file in files)
    return _read(data, written, more).copy(deep=False)


@functools.lru_cache(maxsize=8)
def _read(data: Path, written: tuple[tuple[Path, object], ...], more: tuple) -> pd.DataFrame:
    """`table`; written: the table, its seal and loose records, each with its `archive.stamp`."""
    frame = _packed(data, _columns(*more))
    loose = [file for file, _ in written[2:]]
    if loose:
        rows = summary(loose, data).reindex(columns=list(frame))
        frame = pd.concat([frame, rows], ignore_index=True)
        frame = frame.drop_duplicates(["record", "goal"])  # files packed, but not yet removed
    return frame.astype(dict.fromkeys([*TEXT, *FLAGS], "category"))


def _packed(data: Path, columns: list[str]) -> pd.DataFrame:
    """These columns of the file, or else of the table made anew."""
    try:
        body = (data / FILE).read_bytes()
        if json.loads((data / SEAL).read_text("utf-8")) == _seal(data, body):
            text = io.BytesIO(lzma.decompress(body))
            options = {"dtype": dict.fromkeys(TEXT, "category"), "low_memory": False}
            # Columns that no record has are missing from the file
            frame = pd.read_csv(text, usecols=lambda name: name in columns, **options)
            return frame.reindex(columns=columns)
        why = "does not match the archives beside it"
    except (OSError, ValueError, lzma.LZMAError) as error:
        why = f"cannot be read ({error})"
    warnings.warn(f"{data / FILE}: {why}; rebuilding it from the records", stacklevel=4)
    return rebuild(data).reindex(columns=columns)


def recorded(planned: Iterable[Search], data: Path = DATA) -> dict[Path, Search]:
    """Those that have a record, by its path; for the book's workloads according to the table, so
    that no archive is opened.
    """
    if data != DATA:
        return store.existing(planned, store.record, data)
    places = set(table().record)
    files = {store.record(search): search for search in planned}
    return {
        file: search
        for file, search in files.items()
        if file.relative_to(data).as_posix() in places
        or ("own" in file.parts and file.exists())
    }


def with_winners(rows: pd.DataFrame, data: Path = DATA) -> pd.DataFrame:
    """Searches (record, goal) with the hyperparameters of the first trial to meet that goal, a
    column each.
    """
    names = pd.read_csv(data / FILE, nrows=0).columns
    tuned = [name for name in names if f"{name}_mid" in names]
    drawn = table(*tuned, data=data)[["record", "goal", *tuned]]
    return rows.merge(drawn.astype({"record": object}), "left", ["record", "goal"])
