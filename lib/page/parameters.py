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
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from annotated_types import Len
from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator

from lib import Told, fields, methods, own
from lib.fields import Unfit, check, nearest, shown
from lib.workloads import catalogue

T = TypeVar("T")
BEFORE = "_before_parameters"  # where `begin` leaves what it saw
INJECTED = (type(None), bool, int, float, str, list, dict)  # all that papermill can inject
# Names that a notebook's globals have by themselves
IPYTHON = re.compile(r"_+|_i{1,3}|_i?\d+|_[iod]h|_exit_code|__\w+__")
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

    def split(value: Any) -> list[str]:
        if type(value) in (str, int, float):
            return str(value).split()
        return []

    def once(values: list) -> list:
        for value in values:
            if values.count(value) > 1:
                raise Unfit(f"{words} ({shown(value)} is there twice)")
        return values

    def read(value: Any, handler: Callable[[Any], list]) -> Any:
        if type(value) is str and value in instead:
            return instead[value]
        return handler(value)

    checks = Len(1, MOST), BeforeValidator(split), AfterValidator(once), WrapValidator(read)
    return Annotated[(list[each], *checks, " or ".join([*instead, words]))]


def Numbers(each: Any, **instead: Any) -> Any:
    """Text that holds numbers of a kind, separated by spaces, each once.

    Args:
        instead: as of `_listed`.
    """
    number, *bounds = get_args(each)
    words = fields.allowed(each).replace("a ", "", 1).replace("number", "numbers", 1)
    kind = Annotated[(number, Field(strict=False), *bounds)]
    return _listed(kind, f"{words}, separated by spaces, each once", **instead)


def _workload(value: Any) -> str:
    if type(value) is not str:
        raise Unfit("the name of a workload (text)")
    try:
        catalogue.workload(value)
    except OSError as error:  # a path that is too long, a file that must not be read
        reason = f"({error.strerror})"
        raise Unfit(f"the name of a workload, or of a file that can be read {reason}") from None
    return value


def Name() -> Any:
    """The name of a workload, or of a function in a reader's file."""
    return Annotated[Any, AfterValidator(_workload)]


def Names(known: Collection[str] = ()) -> Any:
    """Text that holds names, separated by spaces, each once: of those known, or of workloads."""
    listed = ", ".join(known or (*catalogue.WORKLOADS, "file.py:function"))
    each = Literal[tuple(known)] if known else Name()
    return _listed(each, f"names separated by spaces, each once: {listed}")


def Method(tuned: str = "learning_rate") -> Any:
    """The name of a training method, or of a function in a reader's file; tuned: a hyperparameter
    that it must have.
    """
    names = [name for name, method in methods.METHODS.items() if tuned in method.space]
    allowed = f"one of {', '.join(names)}, torch.optim:CLASS, or file.py:function"
    allowed += f" with {tuned}" * (tuned != "learning_rate")

    def read(value: Any) -> str:
        try:
            method = methods.method(value)
        except (ValueError, OSError) as error:  # a path that is too long, a file not to be read
            if isinstance(error, own.OwnError) or methods.optimisers.is_class(value):
                raise
            raise Unfit(allowed) from None
        if tuned not in method.space:
            raise Unfit(allowed)
        return method.name

    return Annotated[Any, AfterValidator(read)]


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
    namespace.pop(BEFORE, None)
    namespace[BEFORE] = dict(namespace)


def guard(kind: type[T], namespace: dict[str, Any]) -> T:
    """Return the dataclass `kind`, filled from `namespace`.

    Unknown names are looked for until the first success: later cells define names of their own.

    Raises:
        ValueError: listing every unknown, missing or unfit parameter, what is allowed, and the
            nearest known name.
    """
    if BEFORE not in namespace:
        raise ValueError("call parameters.begin(globals()) before the parameters cell")
    types, values = get_type_hints(kind, include_extras=True), {}
    problems = [
        f"{name}: unknown parameter{nearest(name, types)} (allowed: {', '.join(types)})"
        for name in _injected(namespace)
        if name not in types
    ]
    for name, allowed in types.items():
        if name not in namespace:
            problems.append(f"{name}: missing from the parameters cell")
            continue
        try:
            values[name] = check(name, namespace[name], allowed)
        except ValueError as error:  # of a workload, perhaps in several lines
            told = " ".join(str(error).split())
            named = told.startswith(f"{name}: ")
            given = f"{name}: {shown(namespace[name])} is not allowed; "
            problems.append(told if named else given + told)
    if problems:
        raise Told("; ".join(problems))
    namespace[BEFORE] = None
    return kind(**values)


def _injected(namespace: dict[str, Any]) -> list[str]:
    """Names that papermill may have brought since `begin`; none after a first success."""
    before = namespace[BEFORE]
    if before is None:
        return []
    return [
        name
        for name, value in namespace.items()
        if isinstance(value, INJECTED)
        and name != BEFORE
        and not IPYTHON.fullmatch(name)
        and not (name in before and before[name] is value)
    ]


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
    sizes = told = getattr(chosen, batch)
    named = getattr(chosen, names)
    if type(named) is str:
        named = [named]
    if type(sizes) is int:
        sizes = [sizes]
    else:
        told = " ".join(map(str, sizes))
    examples = {name: catalogue.workload(name).train_size for name in named}
    name = min(examples, key=examples.get)
    most = examples[name]
    has = f"from 1 to {most} ({name} has {most} training examples)"
    beside = {names: " ".join(named)}
    require(max(sizes) <= most, has, batch, told, **beside)
    shared = all(size % workers == 0 for size in sizes)
    require(shared, "a multiple of workers", batch, told, workers=workers)
