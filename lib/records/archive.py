"""Records of finished searches, packed: a few compressed files a workload, not one a search.

A workload's folder (data/digits/digits-mlp) then holds `heads.jsonl.xz`, a line per record with its
place in the folder, the name of its table and its first line; and tables `trials-DIGEST.csv.xz`,
each with the trials of all records that have the same columns, in the order of the heads.  Text is
kept to the last byte, so that the checksums of the records hold and `text` gives back every file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import hashlib
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

from lib.atomic import whole

HEADS = "heads.jsonl.xz"
BEFORE_HEAD = ', "head": '  # in a line of the heads, which ends with the record's first line
Stamp = tuple[int, int]  # when the heads were last written, and their size


class RecordError(RuntimeError):
    """A file under data/ that must not be read: damaged, foreign, or measured under another
    protocol.
    """


@dataclasses.dataclass(frozen=True)
class Packed:
    """A record as the heads tell of it."""

    name: str  # where it lay in the workload's folder
    table: str  # the file with its trials
    rows: int  # how many those are
    first: str  # its first line


def holds(file: Path) -> bool:
    """Whether the record that lay there is in its workload's archive."""
    folder, name = _place(file)
    return name in _heads(folder, stamp(folder))


def text(file: Path) -> str:
    """The record that lay there, to the byte.  Raises FileNotFoundError if no archive holds it."""
    folder, name = _place(file)
    known = stamp(folder)
    if name not in _heads(folder, known):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(file))
    return _texts(folder, known)[name]


def stamp(folder: Path) -> Stamp | None:
    """What changes with the archive of a workload's folder; None where there is none."""
    try:
        about = (folder / HEADS).stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


def pack(folder: Path) -> int:
    """Move every record of a workload's folder into its archive; how many were moved.

    A file is removed only after the archive, read back, has given the same bytes.  What is no
    record's text stays a file.
    """
    loose = {file: file.read_bytes() for file in sorted(folder.glob("*/*/*.csv"))}
    new = {_place(file)[1]: body.decode() for file, body in loose.items() if _is_record(body)}
    if not new:
        return 0
    _write(folder, {**_texts(folder, stamp(folder)), **new})
    packed = [file for file in loose if _place(file)[1] in new]
    for file in packed:
        if text(file).encode() != loose[file]:
            raise RuntimeError(f"{file}: differs from what the archive gives back; nothing is lost")
    for file in packed:
        file.unlink()
    for inner in sorted(folder.rglob("*/"), reverse=True):
        if not any(inner.iterdir()):
            inner.rmdir()
    return len(packed)


def _place(file: Path) -> tuple[Path, str]:
    """The workload's folder of a record, folder/method/sparsity/batch.csv, and its name there."""
    return file.parents[2], "/".join(file.parts[-3:])


def _is_record(body: bytes) -> bool:
    first, _, rows = body.partition(b"\n")
    try:
        head = json.loads(first)
        return 1 <= head["rows"] == rows.count(b"\n") - 1 and body.endswith(b"\n")
    except (ValueError, KeyError, TypeError):  # UnicodeDecodeError is a ValueError
        return False


def _write(folder: Path, records: dict[str, str]) -> None:
    """The archive of these records, by name: tables first, so that the heads never name one that is
    not there.
    """
    tables: dict[str, list[str]] = {}  # by their line of columns
    for _, record in sorted(records.items()):
        _, columns, rows = record.split("\n", 2)
        tables.setdefault(columns, []).append(rows)
    written = {columns: _write_table(folder, columns, rows) for columns, rows in tables.items()}
    lines = []
    for name, record in sorted(records.items()):
        first, columns, _ = record.split("\n", 2)
        place = json.dumps(name)
        lines.append(f'{{"file": {place}, "table": "{written[columns]}"{BEFORE_HEAD}{first}}}\n')
    _compress(folder / HEADS, "".join(lines))
    for old in folder.glob("trials-*.csv.xz"):
        if old.name not in written.values():
            old.unlink()


def _write_table(folder: Path, columns: str, rows: list[str]) -> str:
    table = f"{columns}\n{''.join(rows)}"
    name = f"trials-{hashlib.sha256(table.encode()).hexdigest()[:8]}.csv.xz"
    _compress(folder / name, table)
    return name


def _compress(file: Path, content: str) -> None:
    with whole(file) as stream:
        stream.write(lzma.compress(content.encode()))


@functools.lru_cache(maxsize=1024)
def _heads(folder: Path, known: Stamp | None) -> dict[str, Packed]:
    """All records of an archive by name, in the order of its lines."""
    if known is None:
        return {}
    found = {}
    with naming(folder / HEADS):
        for line in _decompressed(folder / HEADS).split("\n")[:-1]:
            told = json.loads(line)
            first = line.partition(BEFORE_HEAD)[2].removesuffix("}")
            name = told["file"]
            found[name] = Packed(name, told["table"], told["head"]["rows"], first)
    return found


@functools.lru_cache(maxsize=1024)
def _texts(folder: Path, known: Stamp | None) -> dict[str, str]:
    """All records of an archive by name, each as the text of its file."""
    of_table: dict[str, list[Packed]] = {}
    for record in _heads(folder, known).values():
        of_table.setdefault(record.table, []).append(record)
    texts = {}
    for table, records in of_table.items():
        with naming(folder / table):
            columns, *rows = _decompressed(folder / table).split("\n")
        end = 0
        for record in records:
            start, end = end, end + record.rows
            lines = [record.first, columns, *rows[start:end]]
            texts[record.name] = "\n".join(lines) + "\n"
    return texts


def _decompressed(file: Path) -> str:
    return lzma.decompress(file.read_bytes()).decode()


@contextlib.contextmanager
def naming(file: Path) -> Iterator[None]:
    """Turn what goes wrong while a file of an archive is read into a RecordError that names it."""
    try:
        yield
    except (OSError, EOFError, lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        restore = "restore it from version control"
        raise RecordError(
            f"{file}: not a readable part of an archive ({error}); {restore}"
        ) from None
