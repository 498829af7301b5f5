"""A reader's own workload: a function in a Python file that says what to train, on what, and to
which error.

Its name is "path/to/file.py:function", wherever the name of a workload is asked for; goals may
follow another colon, "mine.py:task:0.1,0.2".  Its records belong to the contents of that one file,
newlines and a byte order mark aside, and tell which tensors it made: records of other tensors are
not added to them (`lib.records.store.same_data`).  When a module that the file imports is changed,
they have to be moved out of data/ by hand.
"""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lib import BookError

if TYPE_CHECKING:
    from torch import nn


class OwnError(BookError):
    """Something is wrong with a reader's own workload or training method; the message names the
    file, the field and what is allowed.
    """


@dataclass(frozen=True)
class Metric:
    """What the goals of a `Training` are of.

    Attributes:
        measure: of a model and a batch: values [any] of which the mean over the validation set is
            taken.
        name: as pages spell it.
        highest: None where lower is better; where higher is, a value that none exceeds (1.0 of an
            accuracy), from which records count down.
        whole: measure is called once, with the outputs and the targets of the whole validation set
            on the CPU, and returns one number (F1, AUC).
        constant: of the targets of that set, the value of an answer that is always the same; None:
            goals must be harder than what an untrained model has.
    """

    measure: Callable
    name: str
    highest: float | None = None
    whole: bool = False
    constant: Callable | None = None


@dataclass(frozen=True)
class Within:
    """Goals that a search finds out first: errors up to `share` above the lowest after `steps`."""

    share: float
    steps: int


@dataclass(frozen=True)
class Training:
    """What the function returns: a classifier of tensors, unless it is told otherwise.

    All trials of a classifier of tensors are trained at once if all layers of its network are plain
    ones (`lib.workloads.own_network.LAYERS`), trained, without buffers and none in place, and the
    last is linear with a bias, whose outputs are the network's.  All others are trained one after
    the other, each trial with a module, an optimiser and random numbers of its own.

    Arrays of numpy, tables of pandas, numbers in double precision, labels that are no int64 or of
    shape [N, 1], and what the fields below name in brackets, are converted, and pages say so.

    Attributes:
        model: builds an nn.Module on the CPU, from the random numbers of torch, numpy or Python,
            which are seeded for every trial: with whatever buffers, modes and parameters, tied,
            frozen or loaded.  What it remembers from step to step is in these or in an
            extra state (get_extra_state).  (Or a module, all layers of which have a
            reset_parameters.)
        train, validation: tensors [N, ...], a tuple or a dictionary of any number, the same ones
            whenever the function is called; or a Dataset, whose examples are collated as a
            DataLoader does; or a function of a batch size and a seed that returns the batches of
            one pass, such as a DataLoader (of validation it must be the same ones), all of that
            size, but for the last one if it is what is left of the examples.  (Or a dictionary and
            labels, or a DataLoader, whose data set and collate_fn are taken.)
        goals: values of the metric, the hardest first; or "within 10 % of the best after 500
            steps", errors that an adaptive search finds out.
        loss: a name in `lib.workloads.kinds.KINDS`, or a function of model and batch that returns a
            scalar.  Of a named one, outputs are model(*batch[:-1]) for targets batch[-1], or of a
            dictionary model(**inputs) for batch["labels"]; of outputs that are no tensor, their
            logits.
        metric: a name there, or in `lib.workloads.kinds.READY`, or a `Metric`; None for that of
            the loss.
        examples: to train on; to be told where train is a function.
        title: of the workload.
        max_steps: training steps after which a trial is given up.
        precision: "float32" or "bfloat16"; one after the other, for torch.autocast.
    """

    model: Callable[[], nn.Module]
    train: object
    validation: object
    goals: tuple[float, ...] | str | Within
    loss: str | Callable = "classification"
    metric: str | Metric | None = None
    examples: int | None = None
    title: str = ""
    max_steps: int = 20_000
    precision: str = "float32"


def Own(*values: object, task: str = "classification", **fields: object) -> Training:
    """A classifier of tensors by the name that it once had.

    Args:
        values, fields: of `Training`: model, train, validation, goals, title, max_steps and
            precision, in this order.
        task: "classification", or "cross-entropy" where goals are nats.
    """
    order = "model train validation goals title max_steps precision".split()
    metric = {"cross-entropy": "tokens"}.get(task, task)
    return Training(**dict(zip(order, values)), **{"metric": metric, **fields})


# What to write instead of what is refused, by the fields that messages begin with
LINES = {
    "model": "model=lambda: MyNet()",
    "train": "train=(x, y), with x.nan_to_num(), x.to_dense() or x.cpu() where it is needed",
    "validation": "validation=(x, y), with x.nan_to_num() and the like where it is needed",
    "goals": "goals=(0.05, 0.1, 0.2)",
    "inputs": "x.float() where these are whole numbers, and layers for so many inputs and outputs",
    "loss": 'loss="regression", or loss=lambda model, batch: f(model(batch[0]), batch[1]).mean()',
    "metric": 'metric="f1", or metric=Metric(f, "F1", highest=1.0)',
    "examples": "examples=len(dataset)",
    "title": 'title="My network"',
    "max_steps": "max_steps=20_000",
    "precision": 'precision="float32"',
    "outputs": "return logits",
    "returned": "return Training(model=MyNet, train=(x, y), validation=(x, y), goals=(0.1, 0.2))",
}
LINES |= dict.fromkeys(("measure", "name", "highest", "whole"), LINES["metric"])
LINES |= dict.fromkeys(("share", "steps"), 'goals="within 10 % of the best after 500 steps"')


MODULE = re.compile(r"own_[0-9a-f]{12}")  # names of the modules that readers' files are read as


def raised(error: BaseException) -> str:
    """An exception in words, with the last line of a reader's file that led to it, if one did:
    "KeyError: 'x' (mine.py, line 12)".
    """
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        reader = MODULE.fullmatch(frame.f_globals.get("__name__", ""))
        if reader and frame.f_code.co_filename == frame.f_globals["__file__"]:
            place = f" ({Path(frame.f_code.co_filename).name}, line {line})"
    return f"{type(error).__name__}: {error}{place}"


@contextlib.contextmanager
def telling(start: str) -> Iterator[None]:
    """A block in which what a reader's code raises is an OwnError: a start, "it raised" for
    example, and the exception.
    """
    try:
        yield
    except OwnError:
        raise
    except (Exception, SystemExit) as error:
        raise OwnError(f"{start} {raised(error)}") from error


@contextlib.contextmanager
def named(name: str | Path) -> Iterator[None]:
    """A block of which every ValueError is an OwnError that begins with this name, and ends with
    the line to write unless it says what to write, or where the reader's own code raised.
    """
    try:
        yield
    except ValueError as error:
        message = f"{name}: {error}"
        line = LINES.get(re.split(r"\W", str(error))[0])
        if line and not re.search(" write |, line ", str(error)):
            message += f": write {line}"
        raise OwnError(message) from error.__cause__


def require(fine: object, field: str, value: object, allowed: str) -> None:
    """`lib.require` of what a reader wrote: raises OwnError, and the value is words."""
    if not fine:
        raise OwnError(f"{field}: {value} is not allowed; it must be {allowed}")


class Name(NamedTuple):
    """A reader's name in parts: the file, the function after a colon, goals after another."""

    file: str
    function: str = ""
    goals: str = ""


FUNCTION = re.compile(r"(.+\.py):([^:]*)(?::(.*))?", re.DOTALL)
TEXT = re.compile(r"(.+\.txt)()(?::(.*))?", re.DOTALL)


def parts(name: object) -> Name | None:
    """What a name says of a reader's file: "mine.py:task", "mytext.txt", either with goals after a
    colon.  None: the name is none of a reader's.
    """
    match = isinstance(name, str) and (FUNCTION.fullmatch(name) or TEXT.fullmatch(name))
    return Name(*match.groups("")) if match else None


def is_own(name: object) -> bool:
    """Whether the name of a workload or of a training method is that of a function in a file."""
    return isinstance(name, str) and FUNCTION.fullmatch(name) is not None
