"""Packs records of finished searches: a workload's folder (data/digits/digits-mlp) then holds
`records.jsonl.xz`, a line per record with its place in the folder and its text, byte for byte.
"""

from __future__ import annotations

import contextlib
import functools
import json
import lzma
from pathlib import Path

from filelock import FileLock

from lib import whole

PACKED = "records.jsonl.xz"
LOCK = ".records.lock"
Stamp = tuple[int, int]  # a file's time of modification, and its size


class RecordError(RuntimeError):
    """A file under data/ that must not be read: damaged, foreign, or measured under another
    protocol.
    """


def stamp(file: Path) -> Stamp | None:
    """A stamp that changes with a file; None if there is no file."""
    with contextlib.suppress(FileNotFoundError):
        status = file.stat()
        return status.st_mtime_ns, status.st_size
    return None


def name(file: Path) -> str:
    """A record's place in its workload's folder: method/sparsity/batch.csv."""
    return "/".join(file.parts[-3:])


def text(file: Path) -> str:
    """The exact text of a record, from its file or the archive; KeyError if it is in neither.

    To read many, read workload by workload: only the last archives are kept in memory.
    """
    with contextlib.suppress(FileNotFoundError):
        return file.read_bytes().decode()
    return texts(file.parents[2])[name(file)]


def texts(folder: Path) -> dict[str, str]:
    """All records in a workload's archive, by place; raises RecordError if it cannot be read."""
    return _texts(folder / PACKED, stamp(folder / PACKED))


@functools.lru_cache(maxsize=2)  # the largest is fifty megabytes
def _texts(file: Path, written: Stamp | None) -> dict[str, str]:
    try:
        lines = lzma.decompress(file.read_bytes()).splitlines() if written else ()
        return dict(map(json.loads, lines))
    except (OSError, EOFError, lzma.LZMAError, ValueError, TypeError) as error:
        message = f"{file}: not a readable archive ({error}); restore it from version control"
        raise RecordError(message) from None


def pack(folder: Path) -> int:
    """Move every record of a workload's folder into its archive; returns how many.

    Processes wait for each other.  A file is removed only after its text has been read back from
    the archive.
    """
    packed = folder / PACKED
    with FileLock(folder / LOCK):
        for part in folder.glob(".*.part"):  # left by a process that was killed
            part.unlink()
        files = {name(file): file for file in folder.glob("*/sparsity-*/batch-*.csv")}
        if not files:
            return 0
        records = texts(folder)
        for place, file in files.items():
            if records.setdefault(place, text(file)) != text(file):
                raise RecordError(
                    f"{file}: another record of this search is in {packed}; move one of them away"
                )
        lines = (f"{json.dumps(item)}\n" for item in sorted(records.items()))
        with whole(packed) as stream:
            stream.write(lzma.compress("".join(lines).encode()))
        if texts(folder) != records:
            raise RuntimeError(f"{packed}: reads back differently; nothing is lost")
        for file in files.values():
            file.unlink()
    return len(files)
