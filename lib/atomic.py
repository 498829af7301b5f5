"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """A stream to a file beside `file` that takes its place at the end; where anything fails,
    nothing is left of it.

    Raises OSError naming `file` if its folder cannot be written or the disk is full.
    """
    name = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=file.parent, prefix=f".{file.name}.", suffix=".part", delete=False
        ) as part:
            name = part.name
            yield part
            part.flush()
            os.fsync(part.fileno())
        os.chmod(name, 0o644)
        os.replace(name, file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name or "")
        if isinstance(error, OSError):
            raise naming_file(error, file) from None
        raise


def naming_file(error: OSError, file: Path) -> OSError:
    return type(error)(error.errno, f"cannot be written ({error.strerror or error})", str(file))
