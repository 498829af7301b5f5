"""Measures data parallelism and sparsity: from a study's searches to records and charts."""

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
    """Digest, twelve hex digits, of the modules of lib whose paths match a pattern."""
    files = sorted({file for pattern in patterns for file in (ROOT / "lib").glob(pattern)})
    return hashlib.sha256(b"".join(plain(file.read_bytes()) for file in files)).hexdigest()[:12]


def plain(text: bytes) -> bytes:
    """The text without a byte order mark, newlines as \\n: git and editors rewrite both."""
    return text.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class BookError(ValueError):
    """Its message tells the reader what to change; notebooks show it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows, and papermill prints, instead of a traceback."""
        return [str(self)]


class Stopped(KeyboardInterrupt):
    """The reader stopped a measurement; says what is kept, without a traceback in notebooks."""

    _render_traceback_ = BookError._render_traceback_


def require(
    fine: object, field: str, value: object, allowed: str | Iterable, **fields: object
) -> None:
    """Raise ValueError unless `fine`: it names the field, its value, other fields that it must fit,
    and what is allowed (in words, or every value).
    """
    if not fine:
        if not isinstance(allowed, str):
            allowed = f"one of {', '.join(map(str, allowed))}"
        others = " and ".join(f"{name} {shown(other)}" for name, other in fields.items())
        others = f" with {others}" if others else ""
        fault = f"{shown(value)} is not allowed{others}"
        raise BookError(f"{field}: {fault}; it must be {allowed}")


def shown(value: object) -> str:
    """A value as messages show it, up to 200 characters: arrays as class, dtype and shape."""
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


LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT)  # errors after which data may be lost


@contextlib.contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """A stream to a temporary file that replaces `file` at the end, or is removed if anything
    fails.  The folder is created if need be.

    File systems without modes or fsync (CIFS, exFAT, FUSE) do without them.

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
# Digest of the code that measures, taken when lib is loaded: a later edit is not what runs.
SOURCE = code(MEASURING)
