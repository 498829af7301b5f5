"""Guard a chapter's parameters: papermill injects whatever name it is given, mistyped ones too, and only warns.

    parameters.begin(globals())     # last line of the setup cell, which comes before the parameters cell

    batch_sizes: str = "16 64"      # the parameters cell (tag `parameters`); papermill puts its own right after it
    budget: str = "cached"

    @dataclass(frozen=True)         # the guard cell: names and types that this chapter knows, with their limits
    class Parameters:
        batch_sizes: parameters.Numbers(parameters.Whole(1, 4096))
        budget: Literal["cached", "smoke", "full"]

    chosen = parameters.guard(Parameters, globals())

A field's type is Whole, Number, Numbers, Name, Names, Method, Methods, Device, or a Literal of
the values allowed.  A list comes as text, and leaves `guard` as a list; papermill makes one of the
list "64", which is as good.  What depends on several parameters, the guard cell checks with
`require`, `among` and `fit`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from lib import Told, methods, own
from lib.workloads import catalogue

T = TypeVar("T")
BEFORE = "_before_parameters"  # where `begin` leaves what it saw
INJECTED = (type(None), bool, int, float, str, list, dict)  # all that papermill can inject
# Names that a notebook's globals have by themselves
IPYTHON = re.compile(r"_+|_i{1,3}|_i?\d+|_[iod]h|_exit_code|__\w+__")
LONG = 120  # characters of a value that a message shows
MOST = 100  # entries of a list


class Unfit(ValueError):
    """A value that a field must not have; the message says what it must be."""


@dataclass(frozen=True)
class Whole:
    """A whole number from `least` to `most`."""

    least: int
    most: int

    def __str__(self):
        return f"a whole number from {self.least} to {self.most}"

    def read(self, value: Any) -> int:
        if type(value) is not int or not self.least <= value <= self.most:
            raise Unfit(str(self))
        return value

    def of(self, word: str) -> int:
        """The number that a word of a list stands for.  Raises ValueError."""
        return self.read(int(word))


def Count(most: int) -> Whole:
    """A whole number from 1."""
    return Whole(1, most)


@dataclass(frozen=True)
class Number:
    """A number in an interval, written "(0, 1]"; whole numbers are converted."""

    interval: str

    def __str__(self):
        return f"a number in {self.interval}"

    def read(self, value: Any) -> float:
        low, high = map(float, self.interval[1:-1].split(","))
        inside = type(value) in (int, float) and low <= value <= high
        if (
            not inside
            or value == low
            and self.interval[0] == "("
            or value == high
            and self.interval[-1] == ")"
        ):
            raise Unfit(str(self))
        return float(value) + 0.0  # no -0.0

    def of(self, word: str) -> float:
        """The number that a word of a list stands for.  Raises ValueError."""
        return self.read(float(word))


TRIALS = Count(4096)  # of a search
REPEATS = Count(100)  # of a whole measurement
SIZE = Count(10**6)  # of a batch
SPARSITY, DENSITY = Number("[0, 1)"), Number("(0, 1]")


@dataclass(frozen=True)
class Numbers:
    """Text that holds numbers, separated by spaces, each once: papermill's -p cannot pass a list."""

    each: Whole | Number

    def __str__(self):
        return f"{str(self.each).replace('a ', '', 1).replace('number', 'numbers', 1)}, separated by spaces, each once"

    def read(self, value: Any) -> list:
        words = str(value).split() if type(value) in (str, int, float) else []
        found = [_read(word, self.each.of, self) for word in words]
        _once(found, words, self)
        return found


@dataclass(frozen=True)
class Name:
    """The name of a workload, or of a function in a reader's file."""

    def read(self, value: Any) -> str:
        if type(value) is not str:
            raise Unfit("the name of a workload (text)")
        try:
            catalogue.workload(value)
        except OSError as error:  # a path that is too long, a file that must not be read
            raise Unfit(
                f"the name of a workload, or of a file that can be read ({error.strerror})"
            ) from None
        return value


@dataclass(frozen=True)
class Method:
    """The name of a training method, or of a function in a reader's file; tuned: a hyperparameter
    that it must have.
    """

    tuned: str = "learning_rate"

    def read(self, value: Any) -> str:
        fitting = [name for name, one in methods.METHODS.items() if self.tuned in one.space]
        allowed = (
            f"one of {', '.join(fitting)}, torch.optim:CLASS, or file.py:function"
            + f" with {self.tuned}" * (self.tuned != "learning_rate")
        )
        try:
            chosen = methods.method(value)
        except own.OwnError:
            raise
        except (ValueError, OSError) as error:  # a path that is too long, a file not to be read
            if methods.optimisers.is_class(value):
                raise ValueError(str(error)) from None
            raise Unfit(allowed) from None
        if self.tuned not in chosen.space:
            raise Unfit(allowed)
        return chosen.name


@dataclass(frozen=True)
class Methods:
    """Text that holds names of training methods, separated by spaces, each once, or "all": those of
    `every`.
    """

    every: tuple[str, ...]

    def __str__(self):
        return f"all, or training methods separated by spaces, each once: {', '.join(methods.METHODS)}, file.py:function"

    def read(self, value: Any) -> list[str]:
        words = value.split() if type(value) is str else []
        found = (
            list(self.every)
            if words == ["all"]
            else [_read(word, Method().read, self) for word in words]
        )
        _once(found, words if words != ["all"] else found, self)
        return found


@dataclass(frozen=True)
class Names:
    """Text that holds names, separated by spaces, each once: of those allowed, or of workloads."""

    allowed: Collection[str] = ()

    def __str__(self):
        return f"names separated by spaces, each once: {', '.join(self.allowed or (*catalogue.WORKLOADS, 'file.py:function'))}"

    def read(self, value: Any) -> list[str]:
        words = value.split() if type(value) is str else []
        _once(words, words, self)
        for word in words:
            if self.allowed and word not in self.allowed:
                raise Unfit(f"{self} ({shown(word)} is none)")
            if not self.allowed:
                _read(word, Name().read, self)
        return words


@dataclass(frozen=True)
class Device:
    """The name of a device on which torch computes here."""

    def read(self, value: Any) -> str:
        if value == "cpu":
            return value
        import torch  # slow to import, and needed to train only

        try:
            torch.zeros(1, device=value).item()
        except (RuntimeError, AssertionError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise Unfit(f"cpu, or a device on which torch computes here ({reason})") from None
        return value


def _read(word: str, read: Any, kind: Any) -> Any:
    """What `read` makes of one of the words of a list of this kind.  Raises Unfit, which says which
    word is to blame.
    """
    try:
        return read(word)
    except ValueError as error:
        telling = kind == Names() or isinstance(kind, Methods)
        why = "" if isinstance(error, Unfit) or not telling else f": {error}"
        raise Unfit(f"{kind} ({shown(word)} is none{why})") from None


def _once(found: list, words: list[str], kind: Any) -> None:
    """Raises Unfit for no entry, too many, or one that is there twice."""
    if not found or len(found) > MOST:
        raise Unfit(f"{kind}, from 1 to {MOST} of them")
    if twice := [word for n, word in enumerate(words) if found[n] in found[:n]]:
        raise Unfit(f"{kind} ({shown(twice[0])} is there twice)")


def begin(namespace: dict[str, Any]) -> None:
    """Remember the names in `namespace` (a notebook's globals()), so that `guard` can tell which
    came later.
    """
    namespace.pop(BEFORE, None)
    namespace[BEFORE] = dict(namespace)


def guard(kind: type[T], namespace: dict[str, Any]) -> T:
    """Return the dataclass `kind`, filled from `namespace`.

    Raises ValueError listing every unknown, missing or unfit parameter, what is allowed, and the
    nearest known name. Unknown names are looked for until the first success: later cells define
    names of their own.
    """
    if BEFORE not in namespace:
        raise ValueError("call parameters.begin(globals()) before the parameters cell")
    before, types = namespace[BEFORE], get_type_hints(kind)
    problems = [
        _unknown(name, types)
        for name, value in namespace.items()
        if before is not None
        and name not in (*types, BEFORE)
        and not IPYTHON.fullmatch(name)
        and isinstance(value, INJECTED)
        and not (name in before and before[name] is value)
    ]
    problems += [
        f"{name}: missing from the parameters cell" for name in types if name not in namespace
    ]
    values = {}
    for name in (name for name in types if name in namespace):
        try:
            values[name] = _value(namespace[name], types[name])
        except Unfit as error:
            problems.append(f"{name}: {shown(namespace[name])} is not allowed; it must be {error}")
        except ValueError as error:  # of a workload, perhaps in several lines
            said = " ".join(str(error).split())
            problems.append(
                said
                if said.startswith(f"{name}: ")
                else f"{name}: {shown(namespace[name])} is not allowed; {said}"
            )
    if problems:
        raise Told("; ".join(problems))
    namespace[BEFORE] = None
    return kind(**values)


def _unknown(name: str, types: dict[str, Any]) -> str:
    near = difflib.get_close_matches(name, types, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name}: unknown parameter{hint} (allowed: {', '.join(types)})"


def _value(value: Any, kind: Any) -> Any:
    if get_origin(kind) is not Literal:
        return kind.read(value)
    choices = get_args(kind)
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise Unfit("one of " + ", ".join(map(repr, choices)))
    return value


def shown(value: Any) -> str:
    """A value as a message shows it, cut where it is long."""
    if (
        type(value) is int and abs(value) >= 10**LONG
    ):  # Python writes no number of more than 4,300 digits
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text):,} characters)"


def require(fine: object, allowed: str, name: str, value: Any, **beside: Any) -> None:
    """Raises ValueError unless all is fine, naming the parameter, its value, others that it must
    fit, and what is allowed.
    """
    if not fine:
        given = " and ".join(f"{other} {shown(held)}" for other, held in beside.items())
        raise Told(
            f"{name}: {shown(value)} is not allowed{' with ' * bool(given)}{given}; it must be {allowed}"
        )


def among(name: str, value: Any, allowed: Collection, **beside: Any) -> Any:
    """The value, if it is one of those allowed; raises ValueError as `require`."""
    require(value in allowed, f"one of {', '.join(map(repr, allowed))}", name, value, **beside)
    return value


def fit(chosen: Any, batch: str, names: str = "workload", workers: int = 1) -> None:
    """Raises ValueError unless batches fit the training examples of every workload chosen, and
    their workers' equal shares.

    batch, names: the fields of `chosen` that hold one or more batch sizes, and workloads.
    """
    given, named = getattr(chosen, batch), getattr(chosen, names)
    sizes, named = (
        [given] if type(given) is int else given,
        [named] if type(named) is str else named,
    )
    least = min(named, key=lambda name: catalogue.workload(name).train_size)
    most = catalogue.workload(least).train_size
    single = sizes is not given
    whole, times = ("a whole number", "a multiple") if single else ("whole numbers", "multiples")
    told = given if single else " ".join(map(str, sizes))
    has = f"{whole} from 1 to {most} ({least} has {most} training examples)"
    require(max(sizes) <= most, has, batch, told, **{names: " ".join(named)})
    shared = all(size % workers == 0 for size in sizes)
    require(shared, f"{whole}, {times} of workers", batch, told, workers=workers)
