"""Measuring data parallelism and sparsity: from a study's cells to records, and from records to
charts.
"""

import codecs
import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parent.parent


def code(patterns: Iterable[str]) -> str:
    """Twelve hex digits of the modules of lib whose paths match."""
    files = sorted({file for pattern in patterns for file in (ROOT / "lib").glob(pattern)})
    return hashlib.sha256(b"".join(plain(file.read_bytes()) for file in files)).hexdigest()[:12]


def plain(text: bytes) -> bytes:
    """The text without a byte order mark and with newlines as \\n: what git and editors rewrite is
    no part of it.
    """
    return text.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class BookError(ValueError):
    """Tells a reader what to change, in its message alone: a notebook shows no traceback of it."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback, and papermill prints."""
        return [str(self)]


class Stopped(KeyboardInterrupt):
    """A measurement that its reader stopped: says what is kept; no traceback in a notebook."""

    _render_traceback_ = BookError._render_traceback_


def require(
    fine: object, field: str, value: object, allowed: str | Iterable, **fields: object
) -> None:
    """Raise ValueError that names the field, its value, others that it must fit, and what is
    allowed (in words, or each), unless all is fine.
    """
    if not fine:
        if not isinstance(allowed, str):
            allowed = f"one of {', '.join(map(str, allowed))}"
        others = " and ".join(f"{name} {shown(other)}" for name, other in fields.items())
        others = f" with {others}" if others else ""
        fault = f"{shown(value)} is not allowed{others}"
        raise BookError(f"{field}: {fault}; it must be {allowed}")


def shown(value: object) -> str:
    """A value as messages have it, in 200 characters: of arrays kind, type and shape."""
    sequence = type(value) in (list, tuple)
    if sequence and len(value) < 10:
        first, last = repr(type(value)())
        return f"{first}{', '.join(map(shown, value))}{last}"[:200]
    if sequence or (hasattr(value, "__array__") and hasattr(value, "__len__")):
        text = type(value).__name__
        with contextlib.suppress(Exception):  # lists have none, and nested tensors no shape
            text += f" {value.dtype} {[*value.shape]}".replace("torch.", "")
        return text
    return f"{value!r:.200}"


LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT)  # what was written may not be there


@contextlib.contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """A stream to a file beside `file` that takes its place at the end; where anything fails,
    nothing is left of it.  The folder is made if need be.

    A file system that knows no modes or cannot wait for the disk (CIFS, exFAT, FUSE) goes without.

    Raises OSError naming `file` if its folder cannot be written or the disk is full.
    """
    name = ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Shortened, so that it fits wherever the name itself does
        affixes = {"prefix": f".{file.name[:50]}.", "suffix": ".part"}
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False, **affixes) as part:
            name = part.name
            yield part
            part.flush()
            try:
                os.fsync(part.fileno())
            except OSError as error:
                if error.errno in LOST:
                    raise
        with contextlib.suppress(OSError):
            os.chmod(name, 0o644)
        os.replace(name, file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            message = f"cannot be written ({error.strerror or error})"
            raise type(error)(error.errno, message, str(file)) from None
        raise


MEASURING = (
    "own.py",
    "methods/**/*.py",
    "workloads/**/*.py",
    "messages/**/*.py",
    "engine/**/*.py",
    "studies/search.py",
    "measuring/machine.py",
    "measuring/one_search.py",
)
# The code that measures, taken when lib is loaded: a later edit is not what runs.
SOURCE = code(MEASURING)
