"""Kinds of fields, and specs: frozen dataclasses of such fields, checked by pydantic.

Nothing is converted, except integers for fields of type float.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Annotated, Any

import pydantic
from pydantic import AfterValidator, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError
from typing_extensions import dataclass_transform

from lib import BookError, shown

STRICT = ConfigDict(strict=True, extra="forbid")


def Whole(least: int, most: int) -> Any:
    return Annotated[int, Field(ge=least, le=most)]


def Count(most: int) -> Any:
    """A whole number from 1."""
    return Whole(1, most)


def Number(interval: str) -> Any:
    """A number in an interval, written "(0, 1]"; -0.0 is 0.0."""
    low, high = map(float, interval[1:-1].split(","))
    ends = {
        "gt" if interval[0] == "(" else "ge": low,
        "lt" if interval[-1] == ")" else "le": high,
    }
    bounds = Field(**ends, allow_inf_nan=interval.endswith("inf]"))
    return Annotated[float, bounds, AfterValidator(lambda value: value + 0.0)]


SHARE, PART = Number("(0, 1]"), Number("[0, 1)")
POSITIVE, AMOUNT = Number("(0, inf)"), Number("[0, inf)")
SEED = Whole(0, 2**32 - 1)


def InWords(kind: Any, words: str) -> Any:
    """A kind for which messages use these words to say what is allowed."""

    def read(value: Any, handler: Callable[[Any], Any]) -> Any:
        with suppress(ValidationError):
            return handler(value)
        raise PydanticCustomError("words", "Input should be {words}", {"words": words})

    return Annotated[kind, WrapValidator(read)]


@dataclass_transform(frozen_default=True)
def spec(kind: type) -> type:
    """A frozen dataclass whose annotations are the kinds of its fields.

    Creating one raises ValueError naming every unfit field, its value and what is allowed; else
    what its `__post_init__` raises, which checks what depends on several fields.
    """
    made = pydantic.dataclasses.dataclass(kind, frozen=True, config=STRICT)
    fill = made.__init__

    @functools.wraps(fill)
    def __init__(self, *args, **kwargs):
        try:
            fill(self, *args, **kwargs)
        except ValidationError as error:
            faults = error.errors()
            if not faults[0]["loc"]:
                raise faults[0]["ctx"]["error"] from None
            names = [field.name for field in dataclasses.fields(made)]
            raise BookError("; ".join(_refusal(fault, names) for fault in faults)) from None

    made.__init__ = __init__
    return made


def check(field: str, value: Any, kind: Any) -> Any:
    """The value, if it is of this kind; raises ValueError as a spec does."""
    return getattr(_of_field(field, kind)(**{field: value}), field)


@functools.lru_cache(maxsize=1024)
def _of_field(field: str, kind: Any) -> type:
    return spec(dataclasses.make_dataclass("Single", [(field, kind)], frozen=True))


def _refusal(fault: dict, names: Collection[str]) -> str:
    """The message for a field that pydantic refuses: its value, and what is allowed."""
    place, value = fault["loc"][0], shown(fault["input"])
    name = dict(enumerate(names)).get(place, place)
    if "error" in fault.get("ctx", {}):  # raised by a validator, perhaps in several lines
        words = " ".join(str(fault["ctx"]["error"]).split())
        return f"{name}: {words.removeprefix(f'{name}: ')}"
    if fault["type"] == "missing":
        return f"{name}: missing"
    if name not in names:
        return unknown(name, fault["input"], names)
    allowed = fault["msg"].replace("Input should", "it must", 1)
    return f"{name}: {value} is not allowed; {allowed}"


def unknown(name: str, value: Any, names: Collection[str]) -> str:
    """The message that there is no field of this name, with similar names."""
    near = difflib.get_close_matches(str(name), names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{name}: {shown(value)} is unknown{meant} (allowed: {', '.join(names)})"
