"""Records of finished searches, packed: a few compressed files a workload, not one a search.

A workload's folder (data/digits/digits-mlp) then holds `heads.jsonl.xz`, a line per record with its
place in the folder, the name of its table and its first line; and tables `trials-DIGEST.csv.xz`,
each with the trials of all records that have the same columns, in the order of the heads.  Text is
kept to the last byte, so that the checksums of the records hold and `text` gives back every file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import json
import lzma
from pathlib import Path

from lib import whole

HEADS = "heads.jsonl.xz"
Stamp = tuple[int, int]  # when a file was last written, and its size


class RecordError(RuntimeError):
    """A file under data/ that must not be read: damaged, foreign, or measured under another
    protocol.
    """


def stamp(file: Path) -> Stamp | None:
    """What changes with a file; None where there is none."""
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return about.st_mtime_ns, about.st_size


def names(folder: Path) -> dict[str, dict]:
    """What a workload's archive holds: each record's line of the heads, by its place there."""
    return _heads(folder, stamp(folder / HEADS))


def text(file: Path) -> str:
    """The record that lay there, to the byte; KeyError if the archive holds none."""
    folder = file.parents[2]
    return _texts(folder, stamp(folder / HEADS))[name(file)]


def pack(folder: Path) -> int:
    """Move every record of a workload's folder into its archive; how many were moved.

    A file is removed only after the archive, read back, has given the same bytes.
    """
    loose = {file: file.read_bytes().decode() for file in folder.glob("*/sparsity-*/batch-*.csv")}
    if not loose:
        return 0
    new = {name(file): body for file, body in loose.items()}
    _write(folder, _texts(folder, stamp(folder / HEADS)) | new)
    for file, body in loose.items():
        if text(file) != body:
            raise RuntimeError(f"{file}: differs from what the archive gives back; nothing is lost")
    for file in loose:
        file.unlink()
    for inner in sorted(folder.rglob("*/"), reverse=True):
        with contextlib.suppress(OSError):  # not empty
            inner.rmdir()
    return len(loose)


def name(file: Path) -> str:
    """A record's place in its workload's folder: method/sparsity/batch.csv."""
    return "/".join(file.parts[-3:])


def _write(folder: Path, records: dict[str, str]) -> None:
    """The archive of these records, by name: tables first, so that the heads never name one that is
    not there.
    """
    parts = {name: record.split("\n", 2) for name, record in sorted(records.items())}
    tables: dict[str, str] = {}  # by their line of columns
    for _, columns, rows in parts.values():
        tables[columns] = tables.get(columns, f"{columns}\n") + rows
    written = {}
    for columns, table in tables.items():
        digest = hashlib.sha256(table.encode()).hexdigest()[:8]
        written[columns] = f"trials-{digest}.csv.xz"
        _compress(folder / written[columns], table)
    lines = ""
    for name, (first, columns, _) in parts.items():
        line = {
            "file": name,
            "table": written[columns],
            "head": json.loads(first),
        }
        lines += f"{json.dumps(line)}\n"
    _compress(folder / HEADS, lines)
    for old in folder.glob("trials-*.csv.xz"):
        if old.name not in written.values():
            old.unlink()


def _compress(file: Path, content: str) -> None:
    with whole(file) as stream:
        stream.write(lzma.compress(content.encode()))


def _decompressed(file: Path) -> io.StringIO:
    """The lines of a file.  Raises RecordError that names it."""
    try:
        return io.StringIO(lzma.decompress(file.read_bytes()).decode())
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        told = f"not a readable part of an archive ({error}); restore it from version control"
        raise RecordError(f"{file}: {told}") from None


@functools.lru_cache(maxsize=1024)
def _heads(folder: Path, known: Stamp | None) -> dict[str, dict]:
    """`names`, in the order of the lines; known: the heads' `stamp`."""
    lines = map(json.loads, _decompressed(folder / HEADS)) if known else ()
    return {line["file"]: line for line in lines}


@functools.lru_cache(maxsize=1024)
def _texts(folder: Path, known: Stamp | None) -> dict[str, str]:
    """All records of an archive by name, each as the text of its file."""
    columns: dict[str, str] = {}
    rows: dict[str, io.StringIO] = {}
    texts = {}
    for name, line in _heads(folder, known).items():
        head = line["head"]
        table = line["table"]
        if table not in rows:
            rows[table] = _decompressed(folder / table)
            columns[table] = rows[table].readline()
        own = itertools.islice(rows[table], head["rows"])
        texts[name] = "".join([f"{json.dumps(head)}\n", columns[table], *own])
    return texts
