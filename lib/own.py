"""A reader's own workload: a function in a Python file that says what to train, on which data, and
to which error.

Its name is "path/to/file.py:function" wherever a workload is named; goals may follow a second
colon, "mine.py:task:0.1,0.2".  Its records belong to the contents of that one file (newlines and a
byte order mark aside) and identify the tensors it made; records of other tensors are not added to
them (`lib.records.store.same_data`).  After a change to a module that the file imports, they have
to be moved out of data/ by hand.
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
    """The metric in which the goals of a `Training` are set.

    Attributes:
        measure: maps a model and a batch to values [any], whose mean over the validation set is the
            metric.
        name: as pages spell it.
        highest: None if lower is better; if higher is better, a value that none exceeds (1.0 for an
            accuracy), from which records count down.
        whole: measure is called once, with the outputs and the targets of the whole validation set
            on the CPU, and returns one number (F1, AUC).
        constant: maps the targets of that set to the value of a constant answer; if None, goals
            must be harder than what an untrained model reaches.
    """

    measure: Callable
    name: str
    highest: float | None = None
    whole: bool = False
    constant: Callable | None = None


@dataclass(frozen=True)
class Within:
    """Goals that a first search sets: errors up to `share` above the lowest after `steps`."""

    share: float
    steps: int


@dataclass(frozen=True)
class Training:
    """What the function returns: by default, a classifier of tensors.

    All trials of a classifier of tensors are trained at once if the layers of its network are plain
    ones (`lib.workloads.own_network.LAYERS`), trainable, without buffers and not in place, and the
    network's outputs are those of a last, linear layer with a bias.  Otherwise they are trained one
    after another, each with its own module, optimiser and random numbers.

    NumPy arrays, pandas tables, numbers in double precision, labels that are not int64 or have
    shape [N, 1], and what stands in parentheses below are converted, and pages say so.

    Attributes:
        model: builds an nn.Module on the CPU from the random numbers of torch, numpy or Python,
            which are seeded for every trial.  Any buffers, modes and parameters will do, also tied,
            frozen or loaded ones.  Whatever it remembers between steps must be in these or in its
            extra state (get_extra_state).  (Or a module whose layers all have a
            reset_parameters.)
        train, validation: tensors [N, ...], in a tuple or a dictionary of any length, the same
            whenever the function is called; or a Dataset, whose examples are collated as in a
            DataLoader; or a function of a batch size and a seed that returns the batches of one
            pass, such as a DataLoader (for validation, always the same ones), all of that size
            except the last, which may hold what is left of the examples.  (Or a dictionary and
            labels, or a DataLoader, whose dataset and collate_fn are used.)
        goals: values of the metric, the hardest first; or "within 10 % of the best after 500
            steps", which an adaptive search turns into errors.
        loss: a name in `lib.workloads.kinds.KINDS`, or a function of model and batch that returns a
            scalar.  A named loss compares model(*batch[:-1]) with the targets batch[-1] or, if
            batches are dictionaries, model(**inputs) with batch["labels"]; outputs that are not a
            tensor must have logits.
        metric: a name there, or in `lib.workloads.kinds.READY`, or a `Metric`; None for that of
            the loss.
        examples: number of training examples, required if train is a function.
        title: of the workload.
        max_steps: training steps after which a trial is given up.
        precision: "float32" or "bfloat16" (torch.autocast, if trained one after another).
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
    """Former name of `Training`, for a classifier of tensors.

    Args:
        values, fields: of `Training`: model, train, validation, goals, title, max_steps and
            precision, in this order.
        task: "classification", or "cross-entropy" where goals are nats.
    """
    order = "model train validation goals title max_steps precision".split()
    metric = {"cross-entropy": "tokens"}.get(task, task)
    return Training(**dict(zip(order, values)), **{"metric": metric, **fields})


# The line to write instead, by the field that a message begins with
LINES = {
    "model": "model=lambda: MyNet()",
    "train": "train=(x, y), with x.nan_to_num(), x.to_dense() or x.cpu() where needed",
    "validation": "validation=(x, y), with x.nan_to_num() and the like where needed",
    "goals": "goals=(0.05, 0.1, 0.2)",
    "inputs": "x.float() if x holds whole numbers, and layers that fit the inputs and outputs",
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


MODULE = re.compile(r"own_[0-9a-f]{12}")  # names of the modules made from readers' files


def raised(error: BaseException) -> str:
    """An exception in words, with the last line of a reader's file on the way to it, if any:
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
    """Within the block, turn what a reader's code raises into an OwnError: `start` ("it raised",
    say), then the exception.
    """
    try:
        yield
    except OwnError:
        raise
    except (Exception, SystemExit) as error:
        raise OwnError(f"{start} {raised(error)}") from error


@contextlib.contextmanager
def named(name: str | Path) -> Iterator[None]:
    """Within the block, turn every ValueError into an OwnError that begins with this name.  It ends
    with the line to write, unless it already says that or where the reader's code raised.
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
    """`lib.require` for what a reader wrote: raises OwnError, and the value is in words."""
    if not fine:
        raise OwnError(f"{field}: {value} is not allowed; it must be {allowed}")


class Name(NamedTuple):
    """A reader's name in parts: the file, then the function and the goals, each after a colon."""

    file: str
    function: str = ""
    goals: str = ""


FUNCTION = re.compile(r"(.+\.py):([^:]*)(?::(.*))?", re.DOTALL)
TEXT = re.compile(r"(.+\.txt)()(?::(.*))?", re.DOTALL)


def parts(name: object) -> Name | None:
    """The parts of the name of a reader's file, "mine.py:task" or "mytext.txt", either with goals
    after a colon; None for any other name.
    """
    match = isinstance(name, str) and (FUNCTION.fullmatch(name) or TEXT.fullmatch(name))
    return Name(*match.groups("")) if match else None


def is_own(name: object) -> bool:
    """Whether the name of a workload or of a training method is that of a function in a file."""
    return isinstance(name, str) and FUNCTION.fullmatch(name) is not None
