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
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from lib import ROOT, plain
from lib.own import Training, is_text, named, require, telling, text_parts

if TYPE_CHECKING:
    from lib.workloads.own_network import Facts

# Of readers' files that were imported, those of lib aside
FOLDERS: set[Path] = set()
STEADY = (
    "the same whenever it is called or read (give a random_state, a seed, or a generator of its "
    "own, made inside, to whatever draws: write generator=torch.Generator().manual_seed(0))"
)


def canonical(name: str, field: str = "workload") -> str:
    """The one spelling of a name: with the file's path in the book's folder, or else its absolute
    one; no links, no "..".

    Raises OwnError, which begins with the field that holds the name, for a file that is missing.
    """
    file, function = (
        file_of(name, field),
        "" if is_text(name) else ":" + name.rpartition(":")[2],
    )
    within = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    return within.as_posix() + function


def load(name: str) -> Training:
    """The workload called "path/to/file.py:function", checked; read again if the file has changed.

    Raises OwnError for a file or function that is missing or fails, for fields that do not fit
    together, and for what is not the same whenever the function is called.
    """
    return _loaded(name)[0]


def source(name: str) -> str:
    """Digest of the file, which goes into the digest of its cells: a changed file shares no records
    with the old one.
    """
    return digest(file_of(name).read_bytes())


def data(name: str) -> str:
    """Digest of the workload's tensors, as this process made them.  Raises OwnError as `load`."""
    return _loaded(name)[1]


def facts(name: str) -> Facts:
    """What the checks have found out.  Raises OwnError as `load`."""
    return _loaded(name)[2]


def classifier(name: str) -> Training:
    """As `load`, for what computes many trials at once: raises OwnError where they cannot be."""
    with named(name):
        told = "one whose trials are trained one after the other,"
        allowed = (
            "a classifier of tensors, all of its layers trained and without dropout; or write "
        )
        allowed += f"papermill chapters/own_workload.ipynb out.ipynb -p workload {name}"
        require(facts(name).together, "workload", told, allowed)
    return load(name)


def file_of(name: str, field: str = "workload") -> Path:
    """The file, sought in the current folder and in the book's (a notebook runs in its own), links
    resolved.
    """
    given = Path(text_parts(name)[0] if is_text(name) else name.rpartition(":")[0])
    paths = (path for path in (ROOT / given, given) if os.path.isfile(path))
    found = {path.resolve() for path in paths if os.access(path, os.R_OK)}
    allowed = "that of one file that can be read, sought here and in the book's folder"
    require(len(found) == 1, field, f"{name!r}, of which there are {len(found)},", allowed)
    return found.pop()


@functools.lru_cache(maxsize=8)
def _load(name: str, text: bytes) -> tuple[Training, str, Facts]:
    from lib.workloads import batches, own_network

    handed = called(name, text, 1)
    again = called(name, text, 2)  # what hangs on random numbers differs, then
    with named(name):
        found, again = map(own_network.read, (handed, again))
        own_network.check_fields(found)
        prints = ""
        for part in ("train", "validation"):
            with own_network.alone(), telling(f"{part}: reading it raised"):
                each = [
                    batches.fingerprint(getattr(one, part)) for one in (found, again, found)
                ]
            require(len({*each}) == 1, part, "one that differs from call to call", STEADY)
            prints += each[0]
        found, notes = own_network.fitted(handed, found)
        facts = replace(own_network.check(found), converted=notes)
        return found, digest(prints.encode()), facts


def _loaded(name: str) -> tuple[Training, str, Facts]:
    # Brings PyTorch, which is slow to import, and most chapters only read records
    from lib.workloads import own_network

    name = canonical(name)
    with own_network.ALONE:  # one thread reads the file, the others wait for what it finds
        return _load(name, file_of(name).read_bytes())


def called(name: str, text: bytes, seed: int) -> object:
    """What the function in this text of the file returns, when all global random numbers begin at
    this seed.
    """
    from lib.workloads import own_network

    file = file_of(name)
    function = name.rpartition(":")[2]
    with own_network.alone(seed), named(name), _beside(file.parent):
        with telling(f"{file.name}: cannot be imported; it raised"):
            module = _module(file, text, f"{function} {seed}")
        made = getattr(module, function, None)
        theirs = [name for name, value in vars(module).items() if callable(value)]
        require(callable(made), "function", repr(function), f"of the file: {', '.join(theirs)}")
        with telling("raised"):
            return made()


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
    found = tempfile.TemporaryDirectory(prefix="own-")
    sys.path.append(found.name)
    return found


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """A block in which modules beside a reader's file come first, as beside a script; afterwards
    they come last, for what is imported or unpickled later, here or in a loader's processes.

    A module of the same name that lies beside another reader's file is imported anew.
    """
    here = {path.stem for path in folder.iterdir()}
    for name, module in [*sys.modules.items()]:
        top = name.partition(".")[0]
        file = Path(getattr(module, "__file__", None) or "")
        if top in here and any(
            file == one / f"{top}.py" or file.is_relative_to(one / top)
            for one in FOLDERS - {folder}
        ):
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
