"""A reader's own workload: a function in a Python file that says what to train, on what, and to
which error.

Its name is "path/to/file.py:function", wherever the name of a workload is asked for.  Its records
belong to the contents of that one file, newlines and a byte order mark aside, and tell which
tensors it made: records of other tensors are not added to them (`lib.records.places.same_data`).
When a module that the file imports is changed, they have to be moved out of data/ by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lib import Told

if TYPE_CHECKING:
    from torch import Tensor, nn


class OwnError(Told):
    """Something is wrong with a reader's own workload or training method; the message names the
    file, the field and what is allowed.
    """


@dataclass(frozen=True)
class Own:
    """What the function returns.

    model: builds the network anew, initialised by the random numbers of torch, of numpy's global
    generator or of Python's, which are seeded for every trial; its last layer is linear with a bias
    and registered last.  Trials share one module, whose parameters are all that is trained and all
    that is kept: the same input always gives the same output (no dropout), an example's does not
    depend on the others (but for batch normalisation), and there are no buffers.  Inputs of four
    dimensions come to it with channels last in memory.  train, validation: inputs, float [N, ...]
    or indices, int64 [N, ...], and labels, int64 [N], classes from 0; the same ones whenever the
    function is called.  goals: validation errors, or what else the task counts, the hardest first.
    task: a name in `lib.workloads.tasks.TASKS`.  max_steps: training steps after which a trial is
    given up.  precision: "float32" or "bfloat16".  decay: whether the learning rate decays.
    """

    model: Callable[[], nn.Module]
    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    goals: tuple[float, ...]
    title: str = ""
    max_steps: int = 20_000
    precision: str = "float32"
    decay: bool = False
    task: str = "classification"


MODULE = re.compile(r"own_[0-9a-f]{12}")  # names of the modules that readers' files are read as


def raised(error: BaseException) -> str:
    """An exception in words, with the last line of a reader's file that led to it, if one did:
    "KeyError: 'x' (mine.py, line 12)".
    """
    said, at = f"{type(error).__name__}: {error}", error.__traceback__
    where = ""
    while at:
        code = at.tb_frame.f_code
        if MODULE.fullmatch(at.tb_frame.f_globals.get("__name__", "")):
            where = f" ({Path(code.co_filename).name}, line {at.tb_lineno})"
        at = at.tb_next
    return said + where


def is_own(name: str) -> bool:
    """Whether the name of a workload or of a training method is that of a function in a file."""
    return isinstance(name, str) and ".py:" in name


def text_parts(name: str) -> tuple[str, str]:
    """The path of a reader's own text, and the goals after the last colon, if any; of any other
    name itself, and nothing.
    """
    path, _, goals = name.rpartition(":")
    return (path, goals) if path.endswith(".txt") else (name, "")


def is_text(name: str) -> bool:
    """Whether the name of a workload is that of a reader's own text (`lib.workloads.own_text`)."""
    return isinstance(name, str) and text_parts(name)[0].endswith(".txt")


def is_readers(name: str) -> bool:
    """Whether a name is that of a file of the reader's, a function in it or a text."""
    return is_own(name) or is_text(name)


def folder_name(name: str) -> str:
    """The name of a workload or a training method with a hyphen for whatever no file name should
    hold.
    """
    return re.sub(r"[^\w.-]+", "-", name)
