"""A reader's own workload, read from its file and checked; and what any file of a reader's is read
with.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from lib import ROOT, plain
from lib.own import is_own, named, parts, require, telling

if TYPE_CHECKING:
    from lib.workloads.own_network import Checked

FOLDERS: set[Path] = set()  # of readers' files that were imported


def canonical(name: str, field: str = "workload") -> str:
    """The one spelling of a name: with the file's path in the book's folder, or else its absolute
    one; no links, no "..".

    Raises OwnError, which begins with the field that holds the name, for a file that is missing,
    and for goals that are no numbers.
    """
    file = file_of(name, field)
    file = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    function = f":{parts(name).function}" * is_own(name)
    values = ",".join(f"{goal:g}" for goal in goals(name))
    return f"{file.as_posix()}{function}" + f":{values}" * bool(values)


def file_of(name: str, field: str = "workload") -> Path:
    """The file, sought in the current folder and in the book's (a notebook runs in its own), links
    resolved.
    """
    path = Path(parts(name).file)
    candidates = (place for place in (ROOT / path, path) if os.path.isfile(place))
    files = {place.resolve() for place in candidates if os.access(place, os.R_OK)}
    allowed = "that of one file that can be read, sought here and in the book's folder"
    require(len(files) == 1, field, f"{name!r}, of which there are {len(files)},", allowed)
    return files.pop()


def goals(name: str) -> tuple[float, ...]:
    """The goals that a name tells, of a text in their order.  Raises OwnError for what are no
    numbers.
    """
    words = parts(name).goals
    with named(name):
        try:
            values = tuple(map(float, filter(None, words.split(","))))
        except ValueError:
            require(False, "goals", repr(words), "numbers with commas between them")
    return values if is_own(name) else tuple(sorted({*values}))


def load(name: str) -> Checked:
    """The workload of a function in a file, checked; read again if the file has changed.

    Raises OwnError for a file or function that is missing or fails, for fields that do not fit
    together, and for what is not the same whenever the function is called.
    """
    # Brings PyTorch, which is slow to import, and most chapters only read records
    from lib.workloads import own_network

    name = canonical(name)
    with own_network.ALONE:  # one thread reads the file, the others wait for what it finds
        return _load(name, file_of(name).read_bytes())


@functools.lru_cache(maxsize=8)
def _load(name: str, text: bytes) -> Checked:
    from lib.workloads import own_network

    # What hangs on random numbers differs between the two
    handed, again = (called(name, text, seed) for seed in (1, 2))
    with named(name):
        return own_network.checked(handed, again, goals(name), digest(text))


def called(name: str, text: bytes, seed: int) -> object:
    """What the function in this text of the file returns, when all global random numbers begin at
    this seed.
    """
    from lib.workloads import own_network

    file, function = file_of(name), parts(name).function
    with own_network.alone(seed), named(name), _importing_from(file.parent):
        with telling(f"{file.name}: cannot be imported; it raised"):
            module = _module(file, text, f"{function} {seed}")
        build = getattr(module, function, None)
        functions = ", ".join(name for name, value in vars(module).items() if callable(value))
        require(callable(build), "function", repr(function), f"of the file: {functions}")
        with telling("raised"):
            return build()


def _module(file: Path, text: bytes, use: str) -> ModuleType:
    """The file with this text as a module, run anew, which processes that a loader starts can
    import, too; another one for another use.
    """
    # The import system would take a compiled module that is as old and as long for the same
    code = f"__file__ = {str(file)!r}\n"
    code += f"exec(compile({text!r}, __file__, 'exec', dont_inherit=True))\n"
    name = f"own_{digest(f'{code}{use}'.encode())}"
    if not sys.modules.pop(name, None):
        Path(_folder().name, f"{name}.py").write_text(code, encoding="utf-8")
        importlib.invalidate_caches()
    return importlib.import_module(name)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    """Of modules that are readers' files, on the path as long as this process lasts."""
    folder = tempfile.TemporaryDirectory(prefix="own-")
    sys.path.append(folder.name)
    return folder


@contextlib.contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """A block in which modules beside a reader's file come first, as beside a script; afterwards
    they come last, for what is imported or unpickled later, here or in a loader's processes.

    A module of the same name that lies beside another reader's file is imported anew.
    """
    names = {path.stem for path in folder.iterdir()}
    for name, module in [*sys.modules.items()]:
        file = Path(getattr(module, "__file__", None) or "")
        if name.partition(".")[0] in names and (FOLDERS - {folder}) & {*file.parents}:
            del sys.modules[name]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file has changed the path itself
            sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
            FOLDERS.add(folder)


def digest(text: bytes) -> str:
    """Twelve hex digits of a `plain` text."""
    return hashlib.sha256(plain(text)).hexdigest()[:12]
