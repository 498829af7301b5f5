"""What is computed from the records, kept for this code and these data."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from lib import ROOT, code, whole
from lib.records.store import DATA

BUILD = "BOOK_BUILD"  # names the folder of a build elsewhere: its caches are read and written, too
UNWRITTEN: dict[Path, str] = {}  # what no folder took


def kept(name: str, compute: Callable[[], dict], folders: Sequence[Path] = ()) -> dict:
    """What `compute` returns, as JSON knows it: from the file that this code and these data have,
    or into it.

    folders: where it may lie; () for those of the build.  It is written to the first that takes it,
    and if none does (they are another user's, or the disk is full) kept by this process.  Notebooks
    that run side by side may both compute.
    """
    files = [folder / f"{name}-{_digest()}.json" for folder in folders or _folders()]
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # none yet, or one that cannot be read
            return json.loads(file.read_text(encoding="utf-8"))
    found = UNWRITTEN.get(files[0])
    if found is None:
        found = json.dumps(compute(), ensure_ascii=False, indent=1)
        if not any(_written(file, found) for file in files):
            UNWRITTEN[files[0]] = found
    return json.loads(found)


def _folders() -> list[Path]:
    return [Path(build, "claims") for build in (ROOT / "_build", os.environ.get(BUILD)) if build]


def _written(file: Path, text: str) -> bool:
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file) as stream:
            stream.write(text.encode())
        return True
    return False


@functools.cache
def _digest() -> str:
    """Of all code in lib and beside chapters, and of when every record of the book's was last
    changed and its size.
    """
    files = (file for file in sorted(DATA.rglob("*")) if file.suffix != ".part")
    # Of a reader's own nothing is kept
    book = (file for file in files if not file.is_relative_to(DATA / "own") and file.is_file())
    stamps = [(str(file), (of := file.stat()).st_mtime_ns, of.st_size) for file in book]
    beside = [file.read_bytes() for file in sorted(ROOT.glob("chapters/*/*.py"))]
    return hashlib.sha256(f"{code(['**/*.py'])} {beside} {stamps}".encode()).hexdigest()[:16]
