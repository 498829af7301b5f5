"""Records of finished searches, packed: a workload's folder (data/digits/digits-mlp) then holds
`records.jsonl.xz`, a line per record with its place in the folder and its text, to the last byte.
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


def names(folder: Path) -> frozenset[str]:
    """The places of the records in a workload's archive, as of `name`."""
    return _heads(folder, stamp(folder / PACKED))


def name(file: Path) -> str:
    """A record's place in its workload's folder: method/sparsity/batch.csv."""
    return "/".join(file.parts[-3:])


def text(file: Path) -> str:
    """A record, from its file or else from the archive, to the byte; KeyError if it is in neither.

    Whoever asks for many asks for those of one workload after the other: the last archives' alone
    are kept.
    """
    with contextlib.suppress(FileNotFoundError):
        return file.read_bytes().decode()
    return texts(file.parents[2])[name(file)]


def texts(folder: Path) -> dict[str, str]:
    """All records in a workload's archive, by place.  Raises RecordError if it cannot be read."""
    return _texts(folder, stamp(folder / PACKED))


def pack(folder: Path) -> int:
    """Move every record of a workload's folder into its archive; how many were moved.

    Of several processes one waits for the other.  A file is removed only after the archive, read
    back, has given the same text.
    """
    with FileLock(folder / LOCK):
        for left in folder.glob(".*.part"):  # by a process that was killed
            left.unlink()
        loose = {name(file): text(file) for file in folder.glob("*/sparsity-*/batch-*.csv")}
        if loose:
            _write(folder, loose)
        packed = texts(folder)
        for place, record in loose.items():
            if packed[place] != record:
                file = folder / PACKED
                raise RuntimeError(f"{file}: {place} is not as it was packed; nothing is lost")
        for place in loose:
            (folder / place).unlink(missing_ok=True)
    return len(loose)


def _write(folder: Path, records: dict[str, str]) -> None:
    """Put these records, by place, into the archive."""
    file, body, seen = folder / PACKED, b"", ()
    while (
        now := stamp(file)
    ) != seen:  # again if a process that the lock does not hold was here
        seen = now
        every = texts(folder) | records
        lines = (f"{json.dumps(item)}\n" for item in sorted(every.items()))
        body = lzma.compress("".join(lines).encode())
    with whole(file) as stream:
        stream.write(body)


@functools.lru_cache(maxsize=1024)
def _heads(folder: Path, known: Stamp | None) -> frozenset[str]:
    """`names`; known: the archive's `stamp`."""
    return frozenset(_texts(folder, known))


@functools.lru_cache(maxsize=2)  # the largest has fifty megabytes
def _texts(folder: Path, known: Stamp | None) -> dict[str, str]:
    """`texts`; known: the archive's `stamp`."""
    file = folder / PACKED
    try:
        lines = lzma.decompress(file.read_bytes()).splitlines() if known else ()
        return dict(map(json.loads, lines))
    except (OSError, EOFError, lzma.LZMAError, ValueError, TypeError) as error:
        message = f"{file}: not a readable archive ({error}); restore it from version control"
        raise RecordError(message) from None
