"""Guard a chapter's parameters: papermill injects any name, mistyped ones too, and only warns.

    parameters.begin(globals())     # last line of the setup cell, before the parameters cell

    batch_sizes: str = "16 64"      # the parameters cell (tag `parameters`); papermill's comes next
    budget: str = "cached"

    @dataclass(frozen=True)         # the guard cell: names, types and limits
    class Parameters:
        batch_sizes: parameters.Numbers(parameters.Whole(1, 4096))
        budget: Literal["cached", "smoke", "full"]

    chosen = parameters.guard(Parameters, globals())

A field's type is a kind of `lib.fields`, of the kinds below, or a Literal of the values allowed.
A list comes as text, and leaves `guard` as a list; papermill makes one of the list "64", which is
as good.  What depends on several parameters, the guard cell checks with `require`, `among` and
`fit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import numpy as np
from annotated_types import Len
from pydantic import AfterValidator, Field, WrapValidator

from lib import Told, fields, methods
from lib.fields import Unfit, check, nearest, shown
from lib.workloads import catalogue

T = TypeVar("T")
BEFORE = "_before_parameters"  # where `begin` leaves what it saw
# What a notebook keeps for itself: _, _i12, _12, _dh, __builtins__
KEPT = re.compile(rf"_+|_(i+|i?\d+|[dios]h|exit_code)|__\w+__|{BEFORE}")
INJECTED = (type(None), bool, int, float, str, list, dict)  # all that papermill can inject
MOST = 100  # entries of a list
Whole, Count = fields.Whole, fields.Count

# --- kinds of parameters --------------------------------------------------------------------------


def Number(interval: str) -> Any:
    """A number in an interval, written "(0, 1]"; whole numbers are converted, and -0.0 is 0.0."""
    return Annotated[fields.Number(interval), AfterValidator(lambda value: value + 0.0)]


TRIALS = Count(4096)  # of a search
REPEATS = Count(100)  # of a whole measurement
SIZE = Count(10**6)  # of a batch
SPARSITY, DENSITY = Number("[0, 1)"), Number("(0, 1]")


def _listed(each: Any, words: str, **instead: Any) -> Any:
    """Text that holds values of a kind, separated by spaces, each once: papermill's -p cannot pass
    a list.

    Args:
        words: what the text must be, for messages.
        instead: by a word that may stand there alone, what it is read as.
    """

    def read(value: Any, handler: Callable[[Any], list]) -> Any:
        if type(value) is str and value in instead:
            return instead[value]
        parts = str(value).split() if type(value) in (str, int, float) else []
        values = handler(parts)
        twice = [one for one in values if values.count(one) > 1]
        if twice:
            raise Unfit(f"{words} ({shown(twice[0])} is there twice)")
        return values

    allowed = " or ".join([*instead, words])
    checks = Len(1, MOST), WrapValidator(read)
    return Annotated[(list[each], *checks, allowed)]


def Numbers(each: Any, **instead: Any) -> Any:
    """Text that holds numbers of a kind, separated by spaces, each once.

    Args:
        instead: as of `_listed`.
    """
    number, *bounds = get_args(each)
    words = fields.allowed(each).replace("a ", "", 1).replace("number", "numbers", 1)
    kind = Annotated[(number, Field(strict=False), *bounds)]
    return _listed(kind, f"{words}, separated by spaces, each once", **instead)


def _named(find: Callable[[str], str], words: str) -> Any:
    """The name of something, which `find` returns; it raises ValueError for what is none."""

    def read(name: str) -> str:
        try:
            return find(name)
        except OSError as error:  # a path that is too long, a file that must not be read
            raise Unfit(f"{words} that can be read ({error.strerror})") from None

    return Annotated[str, AfterValidator(read), words]


def Name() -> Any:
    """The name of a workload, or of a function in a reader's file."""
    words = "the name of a workload, or file.py:function"
    return _named(lambda name: catalogue.workload(name) and name, words)


def Names() -> Any:
    """Text that holds names of workloads, separated by spaces, each once."""
    listed = ", ".join([*catalogue.WORKLOADS, "file.py:function"])
    return _listed(Name(), f"names separated by spaces, each once: {listed}")


def Method(tuned: str = "learning_rate") -> Any:
    """The name of a training method, or of a function in a reader's file; tuned: a hyperparameter
    that it must have.
    """

    def read(name: str) -> str:
        method = methods.method(name)
        if tuned not in method.space:
            raise Unfit(f"a training method with {tuned}")
        return method.name

    return _named(read, "the name of a training method, or file.py:function")


def Methods(every: Collection[str]) -> Any:
    """Text that holds names of training methods, separated by spaces, each once, or "all": those of
    `every`.
    """
    known = f"{', '.join(methods.METHODS)}, file.py:function"
    words = f"training methods separated by spaces, each once: {known}"
    return _listed(Method(), words, all=list(every))


# --- in a notebook --------------------------------------------------------------------------------


def begin(namespace: dict[str, Any]) -> None:
    """Remember the names in `namespace` (a notebook's globals()), so that `guard` can tell which
    came later.
    """
    namespace[BEFORE] = dict(namespace)


def guard(kind: type[T], namespace: dict[str, Any]) -> T:
    """Return the dataclass `kind`, filled from `namespace`.

    Unknown names are looked for until the first success: later cells define names of their own.

    Raises:
        ValueError: listing every unknown or unfit parameter, what is allowed, and the nearest known
            name.
    """
    types, values = get_type_hints(kind, include_extras=True), {}
    before, problems = namespace[BEFORE], []
    for name in sorted(namespace.keys() - types.keys()):
        came = before.get(name, before) is not namespace[name]
        if came and not KEPT.fullmatch(name) and isinstance(namespace[name], INJECTED):
            words = f"unknown parameter{nearest(name, types)} (allowed: {', '.join(types)})"
            problems.append(f"{name}: {words}")
    for name, allowed in types.items():
        try:
            values[name] = check(name, namespace[name], allowed)
        except ValueError as error:  # of a workload, perhaps in several lines
            told = " ".join(str(error).split())
            given = f"{name}: {shown(namespace[name])} is not allowed; "
            problems.append(told if told.startswith(f"{name}: ") else given + told)
    if problems:
        raise Told("; ".join(problems))
    namespace[BEFORE] = namespace  # so that nothing came later
    return kind(**values)


def require(fine: object, allowed: str, name: str, value: Any, **beside: Any) -> None:
    """Raise ValueError unless all is fine, naming the parameter, its value, others that it must
    fit, and what is allowed.
    """
    if not fine:
        given = " and ".join(f"{other} {shown(held)}" for other, held in beside.items())
        given = f" with {given}" if given else ""
        raise Told(f"{name}: {shown(value)} is not allowed{given}; it must be {allowed}")


def among(name: str, value: Any, allowed: Collection, **beside: Any) -> Any:
    """The value, if it is one of those allowed; raises ValueError as `require`."""
    require(value in allowed, f"one of {', '.join(map(repr, allowed))}", name, value, **beside)
    return value


def fit(chosen: Any, batch: str, names: str = "workload", workers: int = 1) -> None:
    """Check that batches fit the training examples of every workload chosen, and their workers'
    equal shares.

    Args:
        batch, names: the fields of `chosen` that hold one or more batch sizes, and workloads.

    Raises:
        ValueError: as `require`.
    """
    sizes, named = (np.ravel(getattr(chosen, field)).tolist() for field in (batch, names))
    told = " ".join(map(str, sizes))
    most, name = min((catalogue.workload(name).train_size, name) for name in named)
    allowed = f"from 1 to {most} ({name} has {most} training examples)"
    require(max(sizes) <= most, allowed, batch, told, **{names: " ".join(named)})
    even = not any(size % workers for size in sizes)
    require(even, "a multiple of workers", batch, told, workers=workers)
