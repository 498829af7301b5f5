"""A reader's own training method: a function in a Python file that returns a `Method`, or an
`Optimiser`, by the name "path/to/file.py:function".
"""

from __future__ import annotations

import dataclasses
import functools

from lib.methods import optimisers
from lib.methods.method import Method
from lib.workloads import own_file


def load(name: str) -> Method:
    """The method called so, by whatever spelling (`own_file.canonical`), checked; read again if the
    file has changed.

    Raises OwnError for a file or function that is missing or fails, and for a method that the
    engine cannot train with.
    """
    name = own_file.canonical(name, "algorithm")
    return _load(name, own_file.file_of(name, "algorithm").read_bytes())


@functools.lru_cache(maxsize=8)
def _load(name: str, text: bytes) -> Method:
    # Brings PyTorch, which is slow to import, and most chapters only read records
    from lib.methods import own_check

    found = own_file.called(name, text, 1)
    if isinstance(found, optimisers.Optimiser):
        found = optimisers.method(found, name)
    own_check.check(name, found)
    return dataclasses.replace(found, name=name, source=own_file.digest(text))
