"""Reads a reader's own workload from its file and checks it; also reads other files of a reader's,
such as training methods.
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

FOLDERS: set[Path] = set()  # of readers' files imported so far


def canonical(name: str, field: str = "workload") -> str:
    """The canonical spelling of a name: with the file's path relative to the book's folder, if it
    lies there, else its absolute path; no links, no "..".

    Raises OwnError, beginning with the field that holds the name, for a missing file and for goals
    that are not numbers.
    """
    file = file_of(name, field)
    file = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    function = f":{parts(name).function}" * is_own(name)
    values = ",".join(f"{goal:g}" for goal in goals(name))
    return f"{file.as_posix()}{function}" + f":{values}" * bool(values)


def file_of(name: str, field: str = "workload") -> Path:
    """The file, searched for in the current folder and in the book's (a notebook runs in another),
    links resolved.
    """
    path = Path(parts(name).file)
    candidates = (place for place in (ROOT / path, path) if os.path.isfile(place))
    files = {place.resolve() for place in candidates if os.access(place, os.R_OK)}
    allowed = "the name of one readable file, here or in the book's folder"
    require(len(files) == 1, field, f"{name!r}, which names {len(files)} files,", allowed)
    return files.pop()


def goals(name: str) -> tuple[float, ...]:
    """The goals in a name; for a text, sorted.  Raises OwnError for goals that are not numbers."""
    words = parts(name).goals
    with named(name):
        try:
            values = tuple(map(float, filter(None, words.split(","))))
        except ValueError:
            require(False, "goals", repr(words), "numbers separated by commas")
    return values if is_own(name) else tuple(sorted({*values}))


def load(name: str) -> Checked:
    """The workload of a function in a file, checked; read again if the file has changed.

    Raises OwnError for a file or function that is missing or fails, for fields that do not fit
    together, and for results that differ from one call to the next.
    """
    # Imports PyTorch, which is slow; most chapters only read records
    from lib.workloads import own_network

    name = canonical(name)
    with own_network.ALONE:  # one thread reads the file, the others wait for its result
        return _load(name, file_of(name).read_bytes())


@functools.lru_cache(maxsize=8)
def _load(name: str, text: bytes) -> Checked:
    from lib.workloads import own_network

    # Whatever depends on random numbers differs between the two
    handed, again = (called(name, text, seed) for seed in (1, 2))
    with named(name):
        return own_network.checked(handed, again, goals(name), digest(text))


def called(name: str, text: bytes, seed: int) -> object:
    """What the function returns, if its file has this text, with all global random numbers seeded
    by `seed`.
    """
    from lib.workloads import own_network

    file, function = file_of(name), parts(name).function
    with own_network.alone(seed), named(name), _importing_from(file.parent):
        with telling(f"{file.name}: cannot be imported; it raised"):
            module = _module(file, text, f"{function} {seed}")
        build = getattr(module, function, None)
        functions = ", ".join(name for name, value in vars(module).items() if callable(value))
        require(callable(build), "function", repr(function), f"one of: {functions}")
        with telling("raised"):
            return build()


def _module(file: Path, text: bytes, use: str) -> ModuleType:
    """The file with this text, run anew as a module that a loader's processes can import, too; a
    separate module for each use.
    """
    # The import system would reuse a compiled module of the same age and length
    code = f"__file__ = {str(file)!r}\n"
    code += f"exec(compile({text!r}, __file__, 'exec', dont_inherit=True))\n"
    name = f"own_{digest(f'{code}{use}'.encode())}"
    if not sys.modules.pop(name, None):
        Path(_folder().name, f"{name}.py").write_text(code, encoding="utf-8")
        importlib.invalidate_caches()
    return importlib.import_module(name)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    """A folder for modules made from readers' files, on the path while this process lasts."""
    folder = tempfile.TemporaryDirectory(prefix="own-")
    sys.path.append(folder.name)
    return folder


@contextlib.contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Within the block, modules beside a reader's file come first, as beside a script; after it
    they come last, for later imports and unpickling, here or in a loader's processes.

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
        with contextlib.suppress(ValueError):  # the file may have changed the path itself
            sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
            FOLDERS.add(folder)


def digest(text: bytes) -> str:
    """Twelve hex digits of a `plain` text."""
    return hashlib.sha256(plain(text)).hexdigest()[:12]
