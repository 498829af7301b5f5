"""Records: where they lie, and how their files are written, checked and read.

A record is one text file: a line of JSON that says what was measured and how, then a table with a
row per trial. Files are written beside their place and renamed into it, so a record is there whole
or not at all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pandas as pd

from lib import ROOT, code, own, whole
from lib.methods import in_file, method
from lib.records import archive
from lib.records.archive import RecordError
from lib.studies.search import Search
from lib.workloads.catalogue import Workload, workload

DATA = ROOT / "data"
# Toy results of budget="smoke", never mixed with measurements, nor with those of other code, be it
# a track's or a portrait's.
SMOKE = ROOT / "_build" / "smoke" / code(["**/*.py"])
PROTOCOL = 1  # raised by hand whenever a change of the measuring code could change a result
T = TypeVar("T")  # what is measured
FOREIGN = "not a record of this book; move it out of data/"
AGAIN = "move it out of data/ and measure the cell again"
# Records in data/ of experiments whose code has left; commit 9ec9aaf7 was the last to have it, of
# Optuna cb58af92
CLOSED = {
    "Optuna at the batch sizes of the former adaptive search": "adaptive-before/*.csv",
    "branches": "branches/**/*.csv",
    "masks": "masks/*.csv",
    "norms": "norms/**/*.csv",
    "ramps": "ramps/**/*.csv",
    "sparse steps": "timings/sparsetimes-*.csv",
}


def digest(cell) -> str:
    """Eight hex digits of the cell's non-default fields, its `definition()` if it has one, such as
    of its workload, and the protocol; the same for equal cells.

    A new field with a default changes none, of the cell or of a dataclass in it, so old records
    stay valid.
    """
    what = [PROTOCOL, _given(cell), getattr(cell, "definition", dict)()]
    nested = functools.partial(_given, always=ALWAYS_TOLD)
    return _sha(json.dumps(what, sort_keys=True, default=nested))[:8]


# Fields of a dataclass in a cell that digests tell even at their default, as they did when the
# first were computed.
ALWAYS_TOLD = {
    "workers",
    "compressor",
    "density",
    "feedback",
    "by_layer",
    "aggregation",
    "warm_up",
}


def _given(one, always: Iterable[str] = ()) -> dict:
    """The fields of a dataclass that are not at their default, and some always; a whole number in a
    field of type float as a float.
    """
    given = {}
    for f in dataclasses.fields(one):
        value = getattr(one, f.name)
        if f.type in ("float", float) and type(value) is int:
            value = float(value)
        if f.name in always or value != f.default:
            given[f.name] = value
    return given


# --- where records lie ---------------------------------------------------------------------------


LONGEST = 255  # bytes of a file's name


def folder_name(name: str) -> str:
    """The name of a workload or a training method with a hyphen for whatever no file name should
    hold; of one that is too long its end and a digest.
    """
    plain = re.sub(r"[^\w.-]+", "-", name)
    if len(plain.encode()) <= LONGEST:
        return plain
    return f"{hashlib.sha256(name.encode()).hexdigest()[:12]}-{plain[-50:]}"


def path(folder: Path, cell) -> Path:
    """Where a cell's record lies: folder/workload/algorithm/sparsity-S/batch-B-DIGEST.csv."""
    return folder / folder_name(cell.workload) / f"{_settings(cell)}-{digest(cell)}.csv"


def _settings(cell) -> str:
    return f"{folder_name(cell.algorithm)}/sparsity-{cell.sparsity:g}/batch-{cell.batch_size}"


def place(name: str) -> str:
    """The folder of a data set's records."""
    return workload(name).folder


def home(name: str) -> str:
    """The folder of a workload's records: DATASET/WORKLOAD."""
    return f"{place(name)}/{folder_name(name)}"


def beginning(cell) -> str:
    """How the record of what is named as a cell begins: DATASET/WORKLOAD/.../batch-B."""
    return f"{home(cell.workload)}/{_settings(cell)}"


def record(cell: Search, folder: Path = DATA) -> Path:
    """Where the cell's record lies: by data set, so that every study finds it; of a reader's own
    workload or method under own/.
    """
    return _record(cell, folder, cell.work, method(cell.algorithm).source)


# Asked for every cell of every study a dozen times, and a digest takes longer than reading
@functools.lru_cache(maxsize=2**16)
def _record(cell: Search, folder: Path, work: Workload, source: str) -> Path:
    """work, source: the workload and the digest of a reader's own method, so that a changed file is
    looked up anew.
    """
    return path(folder / ("own" if source else work.folder), cell)


# --- files ----------------------------------------------------------------------------------------


# What a record's sum is of; of records without a field "sha256_of", its table alone
ALL = "all but itself"
TABLE = "the table"


def prepare(file: Path) -> None:
    """Do all that it takes to write a record, under a name that nobody reads, before anything is
    computed.  Raises OSError naming the file.
    """
    trial = file.with_suffix(".part")
    try:
        with whole(trial):
            pass
        trial.unlink(missing_ok=True)
    except OSError as error:
        error.filename = str(file)
        raise


def write(file: Path, cell, trials: pd.DataFrame, provenance: dict) -> None:
    """Write a cell's record in one step: a reader sees the whole file or none.  Raises OSError
    naming the file.
    """
    body = trials.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    head = {
        "protocol": PROTOCOL,
        "cell": dataclasses.asdict(cell),
        **provenance,
        "rows": len(trials),
        "sha256_of": ALL,
        "sha256": "",
    }
    head["sha256"] = _sha(f"{json.dumps(head)}\n{body}")
    with whole(file) as stream:
        stream.write(f"{json.dumps(head)}\n{body}".encode())


def exists(file: Path) -> bool:
    """Whether there is a record in this place, as a file or in its workload's archive."""
    return archive.name(file) in archive.names(file.parents[2]) or file.exists()


def existing(
    planned: Iterable[T], place: Callable[[T, Path], Path], folder: Path = DATA
) -> dict[Path, T]:
    """Those planned measurements that have a record in the folder, each by where it lies; `exists`
    of many, which looks at an archive once.

    place: where the record of one lies in the folder.
    """
    packed = functools.cache(archive.names)
    found = {}
    for one in planned:
        file = place(one, folder)
        if archive.name(file) in packed(file.parents[2]) or file.exists():
            found[file] = one
    return found


def read(file: Path, cell=None) -> tuple[dict, pd.DataFrame]:
    """A record's first line and its table.

    Raises RecordError, naming the file and what to do, if it is damaged, was measured under another
    protocol, or (where `cell` is given) belongs to another cell.
    """
    return head(file, cell), _table(_bodies([file])).copy()


def read_all(
    files: dict[Path, object], fields: Callable[[object], dict], without: tuple[str, ...] = ()
) -> tuple[list[dict], pd.DataFrame, pd.DataFrame]:
    """As `read` for many records, each with what it is of.

    Args:
        fields: what is told of that, by column.
        without: beginnings of the names of columns that are not read.

    Returns:
        Their first lines; a row of fields for every row of their tables; and those tables, one
        below the other.
    """
    if not files:
        return [], pd.DataFrame(), pd.DataFrame()
    heads = [head(file, cell) for file, cell in files.items()]
    counts = [about["rows"] for about in heads]
    told = pd.DataFrame(map(fields, files.values()))
    told = told.loc[told.index.repeat(counts)]
    told = told.reset_index(drop=True)
    table = _table(_bodies(files), without)
    return heads, told, table.copy(deep=False)


def head(file: Path, cell=None) -> dict:
    """The first line of a record that is whole; its "sha256_of" says what the checksum is of.

    Raises RecordError as `read` does.
    """
    if known := archive.stamp(file):
        about = _loose(file, known)
    else:
        folder = file.parents[2]
        packed = _packed(folder, archive.stamp(folder / archive.PACKED))
        about = packed.get(archive.name(file), f"{file}: {FOREIGN}")
    if isinstance(about, str):
        raise RecordError(about)
    recorded = about["cell"]
    fields = recorded if cell is None else told(cell)
    if recorded == fields:
        return about
    other = recorded.keys() - fields.keys()
    for name, value in fields.items():
        if _filled(recorded.get(name, value), value) != value:
            other.add(name)
    if other:
        words = f"belongs to another cell ({', '.join(sorted(other))} differ)"
        raise RecordError(f"{file}: {words}; move it out of data/")
    return about


# The fields of a cell as a record's first line tells them; kept, since many pages' tables ask
told = functools.lru_cache(maxsize=2**16)(dataclasses.asdict)


def _filled(told: object, own: object) -> object:
    """What a record tells of a field; of one that holds fields itself, with those added since."""
    return {**own, **told} if isinstance(told, dict) and isinstance(own, dict) else told


@functools.lru_cache(maxsize=2**16)  # chapters read the same records many times
def _loose(file: Path, known: archive.Stamp) -> dict | str:
    """`_checked` of a file; known: its `archive.stamp`, so that it is read again if that has
    changed.
    """
    try:
        return _checked(file, _text(file))
    except ValueError:  # UnicodeDecodeError
        return f"{file}: {FOREIGN}"


def _text(file: Path) -> str:
    """A record, with newlines as it was written with, whatever an editor made of them."""
    return archive.text(file).replace("\r\n", "\n")


@functools.lru_cache(maxsize=1024)
def _packed(folder: Path, known: archive.Stamp | None) -> dict[str, dict | str]:
    """`_checked` of all records in an archive, by place; known: its `archive.stamp`."""
    packed = archive.texts(folder).items()
    return {name: _checked(folder / name, text) for name, text in packed}


def _checked(file: Path, text: str) -> dict | str:
    """The first line of a record with this text, or in words why it must not be read."""
    first, _, body = text.partition("\n")
    try:
        about = json.loads(first)
        protocol, rows, sha256 = about["protocol"], about["rows"], about["sha256"]
        dict(about["cell"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"{file}: {FOREIGN}"
    if protocol != PROTOCOL:
        versions = f"measured under protocol {protocol}, this is protocol {PROTOCOL}"
        return f"{file}: {versions}; {AGAIN}"
    summed = about.setdefault("sha256_of", TABLE)
    covered = body if summed == TABLE else text.replace(f'"{sha256}"', '""', 1)
    if _sha(covered) != sha256 or rows != body.count("\n") - 1:
        return f"{file}: damaged (truncated or altered); {AGAIN}"
    return about


def _bodies(files: Collection[Path]) -> tuple[str, ...]:
    """The texts of records' tables; those in an archive are read one archive after the other."""
    texts = {file: _text(file) for file in sorted(files, key=str)}
    return tuple(texts[file].partition("\n")[2] for file in files)


@functools.lru_cache(maxsize=64)
def _table(bodies: tuple[str, ...], without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Tables one below the other, those with the same columns parsed at once: one by one takes ten
    times as long.  Columns whose names begin with one of `without` are left out.
    """
    tables = pd.DataFrame([body.split("\n", 1) for body in bodies], columns=["columns", "rows"])
    parts = []
    for columns, rows in tables.groupby("columns", sort=False).rows:
        text = io.StringIO(f"{columns}\n{''.join(rows)}")
        wanted = [name for name in columns.split(",") if not name.startswith(without)]
        part = pd.read_csv(text, low_memory=False, usecols=wanted)
        parts.append(part.set_index(rows.index.repeat(rows.str.count("\n"))))
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


class Shared(list):
    """A list for `DataFrame.attrs`: pandas deep-copies those at every selection, which took longer
    than the analysis.
    """

    def __deepcopy__(self, memo: dict) -> Shared:
        return self


def missing(planned: Iterable[T], place: Callable[[T, Path], Path], folder: Path) -> list[T]:
    """Those planned measurements that have no record in the folder; place: as of `existing`."""
    planned = list(planned)
    there = set(existing(planned, place, folder).values())
    return [one for one in planned if one not in there]


def gather(
    planned: Iterable, place: Callable[[object, Path], Path], folder: Path
) -> pd.DataFrame:
    """The tables of those planned measurements that have a record in the folder, one below the
    other, with their fields.

    attrs: "provenance" (the first line of every record), "planned" (count).

    Args:
        place: as of `existing`.

    Raises:
        RecordError: as `read`.
    """
    planned = list(planned)
    heads, fields, rows = read_all(existing(planned, place, folder), dataclasses.asdict)
    frame = rows.assign(**fields)
    frame.attrs.update(provenance=Shared(heads), planned=len(planned))
    return frame


def closed(name: str, folder: Path = DATA) -> pd.DataFrame:
    """The tables of all records of an experiment in CLOSED, as of `gather`.

    Raises:
        RecordError: as `read`.
    """
    files = sorted(folder.glob(CLOSED[name]))
    heads, _, rows = read_all(dict.fromkeys(files), lambda _: {})
    fields = pd.DataFrame([about["cell"] for about in heads])
    fields = fields.loc[fields.index.repeat([about["rows"] for about in heads])]
    frame = rows.join(fields.reset_index(drop=True))
    frame.attrs.update(provenance=Shared(heads), planned=len(heads))
    return frame


def of_own(name: str, folder: Path = DATA, methods: Collection[str] = ()) -> Iterator[Search]:
    """The cells of a reader's own workload, as its file and its methods are now, that have a
    record.

    methods: names of the reader's own training methods.  What a record names besides is never
    loaded, since that would run whatever file it names: records of other methods in files are
    passed over.
    """
    for file in sorted((folder / "own" / folder_name(name)).rglob("*.csv")):
        # One that was in the data before the reader's file changed may be of no cell now
        with contextlib.suppress(TypeError, ValueError, KeyError, RecordError):
            fields = head(file)["cell"]
            if fields["workload"] == name and _may_load(fields["algorithm"], methods):
                cell = Search(**fields)
                if record(cell, folder) == file:
                    yield cell


def _may_load(algorithm: str, methods: Collection[str]) -> bool:
    return algorithm in methods or not in_file(algorithm)


def same_data(
    name: str, folder: Path = DATA, mine: str | None = None, methods: Collection[str] = ()
) -> None:
    """Raise OwnError unless all records of a reader's own workload, as its file is now, are of the
    same tensors.

    mine: the digest of the tensors (`own_file.data`) of which another record is to be added.
    methods: as of `of_own`.  Records that tell none pass.
    """
    found = {} if mine is None else {mine: "what the function returns here and now"}
    for cell in of_own(name, folder, methods):
        file = record(cell, folder)
        found.setdefault(head(file).get("data"), file)
    found.pop(None, None)
    if len(found) > 1:
        each = ", ".join(f"{data} of {where}" for data, where in found.items())
        raise own.OwnError(
            f"{name}: data: tensors that differ ({each}) is not allowed; it must be the same in "
            f"every process, or the records of the others moved out of data/"
        )


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
