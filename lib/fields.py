"""Kinds of fields, which say in words what they allow, and specs: frozen dataclasses of them.

A kind is a type with its bounds and words, for pydantic to check: `Annotated[int, Interval(ge=1),
"a whole number from 1"]`.  Nothing is converted but whole numbers where a field takes any.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Interval
from pydantic import ConfigDict, TypeAdapter, ValidationError, dataclasses
from typing_extensions import dataclass_transform

from lib import require

STRICT = ConfigDict(strict=True, extra="forbid")


class Unfit(ValueError):
    """A value that a kind's own validator refuses; the message says what it must be."""


LONG = 120  # characters of a value that a message shows


def Whole(least: int, most: int, more: str = "") -> Any:
    """A whole number from `least` to `most`; more: what else messages say."""
    words = f"a whole number from {least} to {most}{more}"
    return Annotated[int, Interval(ge=least, le=most), words]


def Count(most: int) -> Any:
    """A whole number from 1."""
    return Whole(1, most)


def Number(interval: str, words: str = "") -> Any:
    """A number in an interval, written "(0, 1]"; words: what messages say instead."""
    low, high = map(float, interval[1:-1].split(","))
    ends = {"gt" if interval[0] == "(" else "ge": low, "lt" if interval[-1] == ")" else "le": high}
    return Annotated[float, Interval(**ends), words or f"a number in {interval}"]


SHARE, PART = Number("(0, 1]"), Number("[0, 1)")
POSITIVE = Number("(0, inf)", "a positive finite number")
AMOUNT = Number("[0, inf)", "zero or a positive finite number")
SEED = Whole(0, 2**32 - 1)
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "True or False"}


def allowed(kind: Any) -> str:
    """What a kind of field allows, in words."""
    parts = get_args(kind)
    if get_origin(kind) is Annotated:
        return next((word for word in parts[1:] if isinstance(word, str)), allowed(parts[0]))
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if NoneType in parts:
        return " or ".join(["None", *(allowed(part) for part in parts if part is not NoneType)])
    return WORDS.get(kind, f"a {getattr(kind, '__name__', kind)}")


@dataclass_transform(frozen_default=True)
def spec(kind: type) -> type:
    """A frozen dataclass whose fields are of the kinds that it names.

    Making one raises ValueError that names a field, its value and what is allowed, and whatever
    its `__post_init__` raises, which is for what depends on several fields.
    """
    made = dataclasses.dataclass(kind, frozen=True, config=STRICT)
    fill = made.__init__

    @functools.wraps(fill)
    def __init__(self, *args, **kwargs):
        try:
            fill(self, *args, **kwargs)
        except ValidationError as error:
            raise _refusal(error, get_type_hints(kind, include_extras=True)) from None

    made.__init__ = __init__
    return made


def check(field: str, value: Any, kind: Any) -> Any:
    """The value, if it is of this kind.  Raises ValueError naming the field, its value and what is
    allowed.
    """
    try:
        found = _adapter(kind).validate_python(value)
    except ValidationError as error:
        raise _refusal(error, {field: kind}, field, value) from None
    if get_origin(kind) is Literal:  # True is no 1, and neither is 1.0
        require(type(found) is type(value), field, value, allowed(kind))
    return found


@functools.lru_cache(maxsize=1024)
def _adapter(kind: Any) -> TypeAdapter:
    return TypeAdapter(kind, config=STRICT)


def _refusal(error: ValidationError, kinds: dict, *of: Any) -> ValueError:
    """The house's words for what pydantic refuses first; of: the only field and its value."""
    first = error.errors(include_url=False)[0]
    told = first.get("ctx", {}).get("error")
    if isinstance(told, ValueError) and not isinstance(told, Unfit):
        return told
    field, *inside = (*of[:1], *first["loc"])
    if isinstance(field, int) and field < len(kinds):  # given by its place
        field = list(kinds)[field]
    value = of[1] if of else first["input"]
    if first["type"] == "missing":
        return ValueError(f"{field}: missing; it must be {allowed(kinds[field])}")
    if field not in kinds:
        words = f"left out{nearest(str(field), kinds)} (known are {', '.join(kinds)})"
    else:
        words = told or allowed(kinds[field])
    part = f" ({shown(first['input'])} is none)" if of and inside else ""
    return ValueError(f"{field}: {shown(value)} is not allowed; it must be {words}{part}")


def nearest(name: str, known: Iterable[str]) -> str:
    """The question whether a name like this was meant, if there is one."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def shown(value: Any) -> str:
    """A value as a message shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text):,} characters)"
