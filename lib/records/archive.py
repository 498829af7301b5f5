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
    with contextlib.suppress(FileNotFoundError):
        status = file.stat()
        return status.st_mtime_ns, status.st_size
    return None


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
    return _texts(folder / PACKED, stamp(folder / PACKED))


@functools.lru_cache(maxsize=2)  # the largest has fifty megabytes
def _texts(file: Path, written: Stamp | None) -> dict[str, str]:
    try:
        lines = lzma.decompress(file.read_bytes()).splitlines() if written else ()
        return dict(map(json.loads, lines))
    except (OSError, EOFError, lzma.LZMAError, ValueError, TypeError) as error:
        message = f"{file}: not a readable archive ({error}); restore it from version control"
        raise RecordError(message) from None


def pack(folder: Path) -> int:
    """Move every record of a workload's folder into its archive; how many were moved.

    Of several processes one waits for the other.  A file is removed only after the archive, read
    back, has given the same text.
    """
    packed = folder / PACKED
    with FileLock(folder / LOCK):
        for part in folder.glob(".*.part"):  # by a process that was killed
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
            raise RuntimeError(f"{packed}: is not as it was packed; nothing is lost")
        for file in files.values():
            file.unlink()
    return len(files)
