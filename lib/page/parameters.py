"""Guard a chapter's parameters: papermill injects whatever name it is given, mistyped ones too, and only warns.

    parameters.begin(globals())     # last line of the setup cell, which comes before the parameters cell

    batch_size: int = 64            # the parameters cell (tag `parameters`); papermill puts its own right after it
    budget: str = "cached"

    @dataclass(frozen=True)         # the guard cell: names and types that this chapter knows
    class Parameters:
        batch_size: int
        budget: Literal["cached", "smoke", "full"]

    chosen = parameters.guard(Parameters, globals())

A field's type is int, Count (from 1), float (whole numbers are converted), bool, str (numbers are: papermill makes one of
the list "64"), or a Literal of the values allowed.  A list comes as text, which `numbers` reads.
"""

from __future__ import annotations

import difflib
import math
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
BEFORE = "_before_parameters"  # where `begin` leaves what it saw
INJECTED = (type(None), bool, int, float, str, list, dict)  # all that papermill can inject


class Count(int):
    """The type of a field that holds a whole number from 1."""


WORDS = {int: "a whole number", Count: "a whole number from 1", float: "a finite number", bool: "True or False", str: "text"}


def begin(namespace: dict[str, Any]) -> None:
    """Remember the names in `namespace` (a notebook's globals()), so that `guard` can tell which came later."""
    namespace.pop(BEFORE, None)
    namespace[BEFORE] = dict(namespace)


def guard(kind: type[T], namespace: dict[str, Any]) -> T:
    """Return the dataclass `kind`, filled from `namespace`.

    Raises ValueError listing every unknown, missing or unfit parameter, what is allowed, and the nearest known name.
    Unknown names are looked for until the first success: later cells define names of their own.
    """
    if BEFORE not in namespace:
        raise ValueError("call parameters.begin(globals()) before the parameters cell")
    before, types = namespace[BEFORE], get_type_hints(kind)
    problems = (
        []
        if before is None
        else [
            _unknown(name, types)
            for name, value in namespace.items()
            if name not in types
            and not name.startswith("_")
            and isinstance(value, INJECTED)
            and not (name in before and before[name] is value)
        ]
    )
    problems += [f"{name}: missing from the parameters cell" for name in types if name not in namespace]
    values = {name: namespace[name] for name in types if name in namespace}
    problems += [
        f"{name}: {value!r} is not allowed; it must be {_allowed(types[name])}"
        for name, value in values.items()
        if not _fits(value, types[name])
    ]
    if problems:
        raise ValueError("; ".join(problems))
    namespace[BEFORE] = None
    return kind(**{name: types[name](value) if types[name] in (float, str) else value for name, value in values.items()})


def _unknown(name: str, types: dict[str, Any]) -> str:
    near = difflib.get_close_matches(name, types, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name}: unknown parameter{hint} (allowed: {', '.join(types)})"


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    if kind is Count:
        return type(value) is int and value >= 1
    if kind is str:
        return type(value) in (str, int, float)
    return type(value) is kind


def _allowed(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(repr, get_args(kind)))
    return WORDS[kind] if kind is Count else f"{WORDS[kind]} ({kind.__name__})"


def among(name: str, value: Any, allowed: list) -> Any:
    """The value, if it is one of those allowed; raises ValueError naming the parameter, its value and what is allowed."""
    if value not in allowed:
        raise ValueError(f"{name}: {value!r} is not allowed; it must be one of {', '.join(map(repr, allowed))}")
    return value


def numbers(name: str, text: str, kind: type[int] | type[float]) -> list:
    """The numbers in `text`, separated by spaces, each once: papermill's -p cannot pass a list.

    Raises ValueError naming the parameter, its value and what is allowed.
    """
    try:
        found = [kind(word) for word in text.split()]
    except ValueError:
        found = []
    if not found:
        raise ValueError(f"{name}: {text!r} is not allowed; it must be numbers ({kind.__name__}) separated by spaces")
    if len(set(found)) < len(found):
        raise ValueError(f"{name}: {text!r} is not allowed; it must hold every number once")
    return found
