"""Guard a chapter's parameters: papermill injects any name, mistyped ones too, and only warns.

    parameters.begin(globals())     # last line of the setup cell, before the parameters cell

    batch_sizes: str = "16 64"      # the parameters cell (tag `parameters`); papermill's comes next
    budget: str = "cached"

    @dataclass(frozen=True)         # the guard cell: names, types and limits
    class Parameters:
        batch_sizes: parameters.Listed(parameters.Whole(1, 4096))
        budget: Literal["cached", "smoke", "full"]

    chosen = parameters.guard(Parameters, globals())

A field's type is a kind of `lib.fields`, one of the kinds below, or a Literal of allowed values.  A
list is passed as text, and `guard` returns a list; "64", which papermill turns into a number, works
as well.  The guard cell checks what depends on several parameters, with `lib.require` and `fit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import AfterValidator, Field, WrapValidator

from lib import methods, require
from lib.fields import Count, Number, Whole, spec
from lib.workloads import catalogue

__all__ = ["Count", "Number", "Whole", "require"]  # for guard cells, too

T = TypeVar("T")
BEFORE = "_before_parameters"  # the name under which `begin` saves the namespace
# Names that IPython defines: _, _i12, _12, _dh, __builtins__
KEPT = re.compile(rf"_+|_(i+|i?\d+|[dios]h|exit_code)|__\w+__|{BEFORE}")
INJECTED = (type(None), bool, int, float, str, list, dict)  # types that papermill can inject
MOST = 100  # entries of a list

# --- kinds of parameters --------------------------------------------------------------------------

TRIALS = Count(4096)  # of a search
REPEATS = Count(100)  # of a whole measurement
SIZE = Count(10**6)  # of a batch
SPARSITY, DENSITY = Number("[0, 1)"), Number("(0, 1]")
NAME = catalogue.WorkloadName


def Listed(kind: Any, **words: Any) -> Any:
    """Text with values of a kind, separated by spaces, each once, since papermill's -p cannot pass
    a list; words: values that a single word stands for.
    """

    def read(value: Any, handler: Callable[[list], list]) -> Any:
        text = str(value)
        if text in words:
            return words[text]
        values = handler(text.split())
        if not 0 < len({*values}) == len(values):
            raise ValueError(f"{text!r:.200} is not allowed; it must list values, each once")
        return values

    entry = Annotated[kind, Field(strict=False)]  # numbers in text
    return Annotated[list[entry], Field(max_length=MOST), WrapValidator(read)]


def Method() -> Any:
    """The name of a training method with a learning rate, or of a function in a reader's file."""

    def read(name: str) -> str:
        tuned = "learning_rate" in methods.method(name).space
        require(tuned, "algorithm", name, "a training method with learning_rate")
        return name

    return Annotated[methods.MethodName, AfterValidator(read)]


# --- in a notebook --------------------------------------------------------------------------------


def begin(namespace: dict[str, Any]) -> None:
    """Remember the names in `namespace` (a notebook's globals()), so that `guard` can recognise
    later ones.
    """
    namespace[BEFORE] = dict(namespace)


def guard(kind: type[T], namespace: dict[str, Any]) -> T:
    """Return the dataclass `kind`, filled from `namespace`.

    Unknown names are reported until the first success, since later cells define further names.

    Raises:
        ValueError: listing every unknown or unfit parameter, what is allowed, and the most similar
            name.
    """
    names, before = {field.name for field in fields(kind)}, namespace[BEFORE]
    injected = {
        name: value
        for name, value in namespace.items()
        if name in names
        or before.get(name, before) is not value
        and isinstance(value, INJECTED)
        and not KEPT.fullmatch(name)
    }
    chosen = spec(kind)(**injected)
    namespace[BEFORE] = namespace  # so that no name counts as later
    return chosen


def fit(chosen: Any, batch: str, names: str = "workload", workers: int = 1) -> None:
    """Check that batches are no larger than the training set of any chosen workload, and divide
    evenly among workers.

    Args:
        batch, names: the fields of `chosen` that hold one or more batch sizes, and workloads.

    Raises:
        ValueError: as `lib.require`.
    """
    sizes, workloads = (np.ravel(getattr(chosen, field)).tolist() for field in (batch, names))
    text = " ".join(map(str, sizes))
    most, name = min((catalogue.workload(name).train_size, name) for name in workloads)
    allowed = f"from 1 to {most} ({name} has {most} training examples)"
    require(max(sizes) <= most, batch, text, allowed, **{names: " ".join(workloads)})
    even = not any(size % workers for size in sizes)
    require(even, batch, text, "a multiple of workers", workers=workers)
