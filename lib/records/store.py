"""Records: where they lie, and how their files are written, checked and read.

A record is one text file: a line of JSON that says what was measured and how, then a table with a
row per trial.  Files are written under another name and renamed, so a record is complete or does
not exist.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
# Toy results of budget="smoke", never mixed with measurements or with those of other code (also
# of tracks and portraits)
SMOKE = ROOT / "_build" / "smoke" / code(["**/*.py"])
PROTOCOL = 1  # to be raised by hand when a change of the measuring code could change a result
T = TypeVar("T")  # what is measured
FOREIGN = "not a record of this book; move it out of data/"
AGAIN = "move it out of data/ and measure it again"
# Records in data/ of experiments whose code has been removed; commit 9ec9aaf7 was the last to have
# it (for Optuna, cb58af92)
CLOSED = {
    "Optuna at the batch sizes of the former adaptive search": "adaptive-before/*.csv",
    "branches": "branches/**/*.csv",
    "masks": "masks/*.csv",
    "norms": "norms/**/*.csv",
    "ramps": "ramps/**/*.csv",
    "sparse steps": "timings/sparsetimes-*.csv",
}


def digest(spec: object) -> str:
    """Digest, eight hex digits, of a spec's fields that are not at their defaults, its
    `definition()` if it has one (its workload's, say), and the protocol; the same for equal specs.

    A new field with a default, in the spec or in a dataclass in it, changes no digest, so old
    records stay valid.
    """
    content = [PROTOCOL, _set_fields(spec), getattr(spec, "definition", dict)()]
    nested = functools.partial(_set_fields, always=ALWAYS_TOLD)
    return _sha(json.dumps(content, sort_keys=True, default=nested))[:8]


# Fields of a dataclass in a spec that digests include even at their defaults, as the first digests
# did
ALWAYS_TOLD = set("workers compressor density feedback by_layer aggregation warm_up".split())


def _set_fields(spec: object, always: Iterable[str] = ()) -> dict:
    """The fields of a dataclass that are not at their defaults, and those in `always`; integers in
    fields of type float as floats.
    """
    values = {}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if field.type in ("float", float) and type(value) is int:
            value = float(value)
        if field.name in always or value != field.default:
            values[field.name] = value
    return values


# --- where records lie ---------------------------------------------------------------------------


LONGEST = 255  # bytes in a file name


def folder_name(name: str) -> str:
    """The name of a workload or training method with hyphens for whatever file names should not
    contain; if too long, its end and a digest.
    """
    plain = re.sub(r"[^\w.-]+", "-", name)
    if len(plain.encode()) <= LONGEST:
        return plain
    return f"{hashlib.sha256(name.encode()).hexdigest()[:12]}-{plain[-50:]}"


def path(folder: Path, spec) -> Path:
    """Where a search's record lies: folder/workload/algorithm/sparsity-S/batch-B-DIGEST.csv."""
    return folder / folder_name(spec.workload) / f"{_settings(spec)}-{digest(spec)}.csv"


def _settings(spec) -> str:
    return f"{folder_name(spec.algorithm)}/sparsity-{spec.sparsity:g}/batch-{spec.batch_size}"


def home(name: str) -> str:
    """The folder of a workload's records: DATASET/WORKLOAD."""
    return f"{workload(name).folder}/{folder_name(name)}"


def beginning(spec) -> str:
    """The beginning of a record's path, for specs named like searches: DATASET/.../batch-B."""
    return f"{home(spec.workload)}/{_settings(spec)}"


def record(search: Search, folder: Path = DATA) -> Path:
    """Where the search's record lies: by data set, so that every study shares it; under own/ for a
    reader's own workload or method.
    """
    return _record(search, folder, search.work, method(search.algorithm).source)


# Called a dozen times for every search of every study, and a digest takes longer than reading
@functools.lru_cache(maxsize=2**16)
def _record(search: Search, folder: Path, work: Workload, source: str) -> Path:
    """work, source: the workload and the digest of a reader's own method, so that a changed file is
    not served from the cache.
    """
    return path(folder / ("own" if source else work.folder), search)


# --- files ----------------------------------------------------------------------------------------


# What a record's checksum covers; without a field "sha256_of", only the table
ALL = "all but itself"
TABLE = "the table"


def prepare(file: Path) -> None:
    """Try to write a record, under a name that nobody reads, before anything is computed.  Raises
    OSError naming the file.
    """
    trial = file.with_suffix(".part")
    try:
        with whole(trial):
            pass
        trial.unlink(missing_ok=True)
    except OSError as error:
        error.filename = str(file)
        raise


def write(file: Path, spec, trials: pd.DataFrame, provenance: dict) -> None:
    """Write the record of a spec atomically.  Raises OSError naming the file."""
    body = trials.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    head = {
        "protocol": PROTOCOL,
        "cell": dataclasses.asdict(spec),
        **provenance,
        "rows": len(trials),
        "sha256_of": ALL,
        "sha256": "",
    }
    head["sha256"] = _sha(f"{json.dumps(head)}\n{body}")
    with whole(file) as stream:
        stream.write(f"{json.dumps(head)}\n{body}".encode())


def exists(file: Path) -> bool:
    """Whether there is a record at this path, as a file or in its workload's archive."""
    return archive.name(file) in heads(file.parents[2]) or file.exists()


def existing(
    planned: Iterable[T], place: Callable[[T, Path], Path], folder: Path = DATA
) -> dict[Path, T]:
    """The planned measurements that have a record in the folder, by its path.

    place: maps a measurement and the folder to the path of its record.
    """
    files = {place(spec, folder): spec for spec in planned}
    return {file: spec for file, spec in files.items() if exists(file)}


def read(file: Path, spec=None) -> tuple[dict, pd.DataFrame]:
    """A record's first line and its table.

    Raises RecordError, naming the file and what to do, if it is damaged, was measured under another
    protocol, or belongs to another spec than `spec` (if not None).
    """
    [head], table = read_all({file: spec})
    return head, table.reset_index(drop=True)


def read_all(
    files: Mapping[Path, object], without: tuple[str, ...] = ()
) -> tuple[list[dict], pd.DataFrame]:
    """As `read` for many records, each with its spec or None.

    without: prefixes of the names of columns that are not read.

    Returns their first lines, and their tables concatenated, with an index that counts records.
    """
    lines = [head(file, spec) for file, spec in files.items()]
    texts = {file: _text(file) for file in sorted(files)}  # archive by archive
    tables = pd.DataFrame(
        [texts[file].split("\n", 2)[1:] for file in files],
        columns=["columns", "rows"],
    )
    parts = [pd.DataFrame()]
    # Those with the same columns together: one by one takes ten times as long
    for columns, rows in tables.groupby("columns", sort=False).rows:
        text = io.StringIO(f"{columns}\n{''.join(rows)}")
        wanted = [name for name in columns.split(",") if not name.startswith(without)]
        part = pd.read_csv(text, low_memory=False, usecols=wanted)
        parts.append(part.set_index(rows.index.repeat(rows.str.count("\n"))))
    return lines, pd.concat(parts[1:] or parts).sort_index(kind="stable")


def heads(folder: Path) -> dict[str, dict]:
    """The first lines of all records in a workload's archive, by place.  Raises as `read`."""
    return _heads(folder, archive.stamp(folder / archive.PACKED))


@functools.lru_cache(maxsize=1024)
def _heads(folder: Path, written: archive.Stamp | None) -> dict[str, dict]:
    packed = archive.texts(folder).items()
    return {place: _checked(folder / place, text) for place, text in packed}


@functools.lru_cache(maxsize=2**16)  # chapters read the same records many times
def _loose(file: Path, written: archive.Stamp) -> dict:
    return _checked(file, _text(file))


def head(file: Path, spec=None) -> dict:
    """The first line of an intact record; its "sha256_of" says what the checksum covers.

    Raises RecordError as `read` does.
    """
    if written := archive.stamp(file):
        line = _loose(file, written)
    elif (place := archive.name(file)) in (packed := heads(file.parents[2])):
        line = packed[place]
    else:
        raise RecordError(f"{file}: {FOREIGN}")
    fields = line["cell"] if spec is None else asdict(spec)
    differing = [
        name
        for name, value in sorted(line["cell"].items())
        if name not in fields or _completed(value, fields[name]) != fields[name]
    ]
    if differing:
        words = f"belongs to another cell ({', '.join(differing)} differ)"
        raise RecordError(f"{file}: {words}; move it out of data/")
    return line


# The fields of a spec as in a record's first line; cached, since many pages' tables need them
asdict = functools.lru_cache(maxsize=2**16)(dataclasses.asdict)


def _completed(recorded: object, value: object) -> object:
    """A field's recorded value; if it has fields itself, with those added since."""
    nested = isinstance(recorded, dict) and isinstance(value, dict)
    return value | recorded if nested else recorded


def _text(file: Path) -> str:
    """A record's text with its original newlines, whatever an editor made of them."""
    try:
        return archive.text(file).replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise RecordError(f"{file}: {FOREIGN}") from None


def _checked(file: Path, text: str) -> dict:
    """The first line of a record with this text; raises RecordError if it must not be read."""
    first, _, body = text.partition("\n")
    try:
        line = json.loads(first)
        protocol, rows, sha256 = line["protocol"], line["rows"], line["sha256"]
        dict(line["cell"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RecordError(f"{file}: {FOREIGN}") from None
    if protocol != PROTOCOL:
        versions = f"measured under protocol {protocol}, not {PROTOCOL}"
        raise RecordError(f"{file}: {versions}; {AGAIN}")
    summed = line.setdefault("sha256_of", TABLE)
    covered = body if summed == TABLE else text.replace(f'"{sha256}"', '""', 1)
    if _sha(covered) != sha256 or rows != body.count("\n") - 1:
        raise RecordError(f"{file}: damaged (truncated or altered); {AGAIN}")
    return line


class Shared(list):
    """A list for `DataFrame.attrs` that is not copied: pandas deep-copies attrs at every selection,
    which took longer than the analysis.
    """

    def __deepcopy__(self, memo: dict) -> Shared:
        return self


# --- several records ------------------------------------------------------------------------------


def gather(
    planned: Iterable, place: Callable[[object, Path], Path], folder: Path
) -> pd.DataFrame:
    """The tables of all planned measurements that have a record in the folder, concatenated, with
    their fields.

    attrs: "provenance" (the first line of every record), "planned" (count).

    Args:
        place: as for `existing`.

    Raises:
        RecordError: as `read`.
    """
    planned = list(planned)
    files = existing(planned, place, folder)
    return _with_fields(files, map(asdict, files.values()), len(planned))


def closed(name: str, folder: Path = DATA) -> pd.DataFrame:
    """The tables of all records of an experiment in CLOSED, as from `gather`.

    Raises:
        RecordError: as `read`.
    """
    files = dict.fromkeys(sorted(folder.glob(CLOSED[name])))
    return _with_fields(files, (head(file)["cell"] for file in files), len(files))


def _with_fields(
    files: Mapping[Path, object], fields: Iterable[dict], planned: int
) -> pd.DataFrame:
    lines, rows = read_all(files)
    fields = pd.DataFrame(fields).reindex(rows.index)
    frame = rows.assign(**fields).reset_index(drop=True)
    frame.attrs.update(provenance=Shared(lines), planned=planned)
    return frame


def of_own(name: str, folder: Path = DATA, methods: Collection[str] = ()) -> Iterator[Search]:
    """The searches of a reader's own workload, as its file and its methods are now, that have a
    record.

    methods: names of the reader's own training methods.  Records of other methods in files are
    skipped, since loading a method that a record names would run whatever file it names.
    """
    for file in sorted((folder / "own" / folder_name(name)).rglob("*.csv")):
        # A record from before the reader's file changed may not fit any search now
        with contextlib.suppress(TypeError, ValueError, KeyError, RecordError):
            fields = head(file)["cell"]
            algorithm = fields["algorithm"]
            if fields["workload"] == name and (algorithm in methods or not in_file(algorithm)):
                search = Search(**fields)
                if record(search, folder) == file:
                    yield search


def same_data(
    name: str, folder: Path = DATA, mine: str | None = None, methods: Collection[str] = ()
) -> None:
    """Raise OwnError unless all records of a reader's own workload, as its file is now, are of the
    same tensors.

    mine: digest of the tensors (`Checked.data`) of a record to be added.
    methods: as for `of_own`.  Records without a digest pass.
    """
    places = {} if mine is None else {mine: "what the function returns now"}
    for search in of_own(name, folder, methods):
        file = record(search, folder)
        places.setdefault(head(file).get("data"), file)
    places.pop(None, None)
    if len(places) > 1:
        digests = ", ".join(f"{data} of {where}" for data, where in places.items())
        raise own.OwnError(
            f"{name}: data: different tensors ({digests}) are not allowed; they must be the same "
            f"in every process: move the records of the others out of data/"
        )


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
