"""A reader's own workload, read from its file and checked."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from dataclasses import fields
from pathlib import Path

from lib import ROOT
from lib.own import Own, OwnError


def load(name: str) -> Own:
    """The workload called "path/to/file.py:function", checked; read again if the file has changed.

    Raises OwnError for a file or function that is missing or fails, and for fields that do not fit together.
    """
    return _load(name, source(name))


def source(name: str) -> str:
    """Digest of the file, which goes into the digest of its cells: a changed file shares no records with the old one."""
    return hashlib.sha256(_file(name).read_bytes()).hexdigest()[:12]


def _file(name: str) -> Path:
    """The file, sought from the current folder, then from the book's (a notebook runs in its own)."""
    given = Path(name.rpartition(":")[0])
    for file in (given, ROOT / given):
        if file.is_file():
            return file
    raise OwnError(f"workload: {name!r} is not allowed; there is no file {given} here or in the book's folder")


@functools.lru_cache(maxsize=8)
def _load(name: str, digest: str) -> Own:
    from lib.workloads import (
        own_network,  # brings PyTorch, which is slow to import, and most chapters only read records
    )

    file, function = _file(name), name.rpartition(":")[2]
    spec = importlib.util.spec_from_file_location(f"own_{digest}", file)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise OwnError(f"{file}: cannot be imported; it raised {type(error).__name__}: {error}") from error
    if not callable(getattr(module, function, None)):
        named = [k for k, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
        raise OwnError(f"{name}: no function {function!r} in the file; it has {', '.join(named) or 'none'}")
    try:
        own = getattr(module, function)()
    except Exception as error:
        raise OwnError(f"{name}: raised {type(error).__name__}: {error}") from error
    own_network.check(name, own)
    return own


def settings(own: Own) -> dict:
    """The fields of a `lib.workloads.catalogue.Workload` that the reader sets."""
    shared = ("title", "goals", "max_steps", "precision", "decay")
    return {f.name: getattr(own, f.name) for f in fields(own) if f.name in shared}
