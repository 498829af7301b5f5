"""The table of searches, `data/searches.csv.xz`: a row per search of the book and goal.

A search's trials are a hundred rows of its record.  What curves, claims and most pages need of
them is here: how soon the first ten trials met each goal, and which hyperparameters did well.
Pages read this table; trials are read only where trials are shown.

Everything in it is derived.  `rebuild` makes it from the packed records, `table` adds the loose
ones measured since.  Where an archive has changed since, a warning names the table, and it is made
anew.
"""

from __future__ import annotations

import contextlib
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
FIRST = 10  # order statistics of a search's steps that are kept
WINDOW = 2  # times the steps of the first trial: those that do well
REVERSED = {"momentum", "beta1", "beta2"}  # whose middle is that of 1 - value
# Of a search, of what is asked of its workers, and of what the search cost and what measured it
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
# The columns of a table of trials, or how they begin, that are no hyperparameters
OUTCOME = "trial seed status cause last_step best_error best_step sent".split()
BUDGETS = ("best@", "test@", "loss@", "sent@")  # how columns begin that are no goals
ORDER = [f"k{i}" for i in range(1, FIRST + 1)]
COUNTS = ["met", "well"]
# What a record's first line calls these columns
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
        The search's fields, those of its messages among them; goal; k1 ... k10 (steps in which the
        first ten trials met it, NaN beyond those that did); met (trials that did); well (those
        within WINDOW k1); of each hyperparameter NAME the value of the first trial (NAME), and of
        those that did well the geometric mean (NAME_mid; of 1 - value where `REVERSED`) and the
        ends (NAME_low, NAME_high); COSTS and ORIGIN.
    """
    fields = DEFAULTS | head["cell"]  # an early record lacks fields that came later
    fields |= fields.pop("messages", None) or {}
    names = list(trials.columns)
    tuned = [name for name in names if name not in OUTCOME and "@" not in name]
    drawn = {name: trials[name].to_numpy(float) for name in tuned if trials[name].notna().any()}
    shared = {
        **fields,
        "best_error": trials.best_error.min(),
        "last_step": trials.last_step.max(),
        "trial_steps": head.get("trial_steps"),
        "core_seconds": head.get("wall_s"),
        **{name: head.get(name) for name in ORIGIN},
        "arithmetic": head.get("precision"),
        "record": record,
    }
    for column in names:
        if column.startswith("steps@"):
            goal = float(column.removeprefix("steps@"))
            yield {**shared, "goal": goal, **_at_goal(trials[column].to_numpy(float), drawn)}


def _at_goal(steps: np.ndarray, drawn: dict[str, np.ndarray]) -> dict:
    """What `rows_of` says of one goal; steps: of each trial, NaN where it did not meet it."""
    met = int(np.isfinite(steps).sum())
    places = np.argsort(steps, kind="stable")[:met]
    ordered = steps[places]
    row = dict(zip(ORDER, ordered.tolist()))
    row["met"] = met
    row["well"] = 0
    if not met:
        return row
    well = places[ordered <= WINDOW * ordered[0]]
    row["well"] = len(well)
    for name, values in drawn.items():
        good = values[well]
        row[name] = values[places[0]]
        row[f"{name}_mid"] = _middle(name, good)
        row[f"{name}_low"] = good.min()
        row[f"{name}_high"] = good.max()
    return row


def _middle(name: str, values: np.ndarray) -> float:
    """The geometric mean of a hyperparameter's values, or one minus that of one minus them."""
    if name in REVERSED:
        return 1 - np.exp(np.log(1 - values).mean())
    return np.exp(np.log(values).mean())


# --- the file -------------------------------------------------------------------------------------


def folders(data: Path = DATA) -> list[Path]:
    """The folders of the book's workloads, DATA_SET/WORKLOAD, that hold packed searches."""
    return sorted(f.parent for f in data.glob(f"*/*/{archive.PACKED}") if "own" not in f.parts)


def rebuild(data: Path = DATA) -> pd.DataFrame:
    """Make the table of all packed records anew, write it and its seal, and return it.

    Raises:
        RecordError: naming an archive or a record that is damaged.
        OSError: naming a file that cannot be written.
    """
    frame = _made(data)
    _write(frame, data)
    return frame


@contextlib.contextmanager
def packing(files: Iterable[Path], data: Path = DATA, anew: bool = False) -> Iterator[None]:
    """A block in which these loose records are packed: at its end the table has their rows.

    anew: make all rows anew; else so only where the table does not belong to the archives before.
    """
    before = None
    if not anew and (data / SEAL).exists() and _sealed(data):
        before = pd.read_csv(data / FILE, low_memory=False)
    rows = pd.DataFrame(_summarised(files, data))
    yield
    if before is None:
        rebuild(data)
        return
    if len(rows):
        every = pd.concat([before, rows], ignore_index=True)
        every = every.drop_duplicates(["record", "goal"])
        _write(_ordered(every), data)


def _write(frame: pd.DataFrame, data: Path) -> None:
    """Write the table and its seal."""
    body = lzma.compress(frame.to_csv(index=False, float_format="%.8g").encode())
    for name, content in (
        (FILE, body),
        (SEAL, json.dumps(_seal(data, body), indent=1).encode()),
    ):
        with whole(data / name) as stream:
            stream.write(content)


def _made(data: Path) -> pd.DataFrame:
    """The table of all packed records."""
    packed = (folder / name for folder in folders(data) for name in archive.names(folder))
    return _ordered(pd.DataFrame(_summarised(packed, data)))


def summary(files: Iterable[Path], data: Path = DATA) -> pd.DataFrame:
    """The rows of some records, packed or not, as `table` has them."""
    columns = [*FIELDS, "goal", "k1", *COUNTS, *COSTS, *ORIGIN, "record"]
    return pd.DataFrame(_summarised(files, data)).reindex(columns=columns)


def _summarised(files: Iterable[Path], data: Path) -> list[dict]:
    """The rows of these records, read by workload, since goals are a workload's."""
    rows = []
    for _, group in itertools.groupby(sorted(files), lambda file: file.parents[2]):
        places = dict.fromkeys(group)
        heads, _, trials = store.read_all(places, lambda _: {}, BUDGETS)
        end = 0
        for file, head in zip(places, heads):
            start = end
            end += head["rows"]
            place = file.relative_to(data).as_posix()
            rows += rows_of(place, head, trials.iloc[start:end])
    return rows


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns: fields, goal, order statistics, hyperparameters by name, costs, origin, record."""
    last = [*COSTS, *ORIGIN, "record"]
    first = [*FIELDS, "goal", *ORDER, *COUNTS]
    return frame.reindex(columns=[*first, *sorted(set(frame) - {*first, *last}), *last])


def _seal(data: Path, body: bytes) -> dict[str, str]:
    """Digests of the table and of every archive that it was made from, by place."""
    files = [folder / archive.PACKED for folder in folders(data)]
    parts = {file.relative_to(data).as_posix(): file.read_bytes() for file in files}
    return {
        name: hashlib.sha256(part).hexdigest() for name, part in {FILE: body, **parts}.items()
    }


def _sealed(data: Path) -> bytes | None:
    """The table's bytes; None if its seal says that it is not of the archives that are there.

    Raises:
        OSError, ValueError: where one of the two cannot be read.
    """
    body = (data / FILE).read_bytes()
    return body if json.loads((data / SEAL).read_text("utf-8")) == _seal(data, body) else None


def table(*more: str, data: Path = DATA) -> pd.DataFrame:
    """All searches of the book, packed and loose, a row per search and goal.

    Args:
        more: columns of hyperparameters and order statistics beyond FIELDS, goal, k1, COUNTS,
            COSTS, ORIGIN and record.
        data: the folder.

    Where the file is lacking, damaged, or not of the archives that are there, a warning names it
    and the table is made anew; it is written if the folder allows.

    Raises:
        RecordError: naming a loose record that is damaged.
    """
    loose = [f for f in data.glob("*/*/*/sparsity-*/batch-*.csv") if "own" not in f.parts]
    stamps = *map(archive.stamp, (data / FILE, data / SEAL, *loose)), *map(str, loose)
    return _read(data, tuple(loose), more, stamps).copy(deep=False)


def recorded(cells: Iterable[Search], data: Path = DATA) -> dict[Path, Search]:
    """Those that have a record, by where it lies: of the book's as the table says, so that no
    archive is opened.
    """
    if data != DATA:
        return store.existing(cells, store.record, data)
    packed = set(table().record)
    files = {}
    for cell in cells:
        file = store.record(cell)
        place = file.relative_to(data)
        if place.parts[0] == "own":
            there = file.exists()
        else:
            there = place.as_posix() in packed
        if there:
            files[file] = cell
    return files


def with_winners(rows: pd.DataFrame, data: Path = DATA) -> pd.DataFrame:
    """Searches (record, goal) with what the first trial to meet that goal drew, a column per
    hyperparameter.
    """
    every = pd.read_csv(data / FILE, nrows=0).columns
    tuned = [name for name in every if f"{name}_mid" in every]
    drawn = table(*tuned, data=data)[["record", "goal", *tuned]]
    return rows.merge(drawn.astype({"record": object}), "left", ["record", "goal"])


@functools.lru_cache(maxsize=8)
def _read(data: Path, loose: tuple[Path, ...], more: tuple[str, ...], _: tuple) -> pd.DataFrame:
    columns = [*FIELDS, "goal", "k1", *more, *COUNTS, *COSTS, *ORIGIN, "record"]
    frame = _packed(data, columns)
    if rows := _summarised(loose, data):
        frame = pd.concat(
            [frame, pd.DataFrame(rows).reindex(columns=columns)], ignore_index=True
        )
        frame = frame.drop_duplicates(["record", "goal"])  # packed, but not yet removed
    return frame.astype({name: "category" for name in (*TEXT, *FLAGS)})


def _packed(data: Path, columns: list[str]) -> pd.DataFrame:
    """Those columns of the file, or else of the table made anew."""
    try:
        if body := _sealed(data):
            text = io.BytesIO(lzma.decompress(body))
            types = dict.fromkeys(TEXT, "category")
            # What no record has, a table without columns lacks
            return pd.read_csv(
                text, usecols=lambda name: name in columns, dtype=types, low_memory=False
            ).reindex(columns=columns)
        why = "does not belong to the archives beside it"
    except (OSError, ValueError, lzma.LZMAError) as error:
        why = f"cannot be read ({error})"
    warnings.warn(f"{data / FILE}: {why}; it is made anew from the records", stacklevel=4)
    with contextlib.suppress(OSError):  # a checkout that cannot be written
        return rebuild(data)[columns]
    return _made(data)[columns]
