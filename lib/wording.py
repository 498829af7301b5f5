"""How numbers and names read in a sentence."""

from __future__ import annotations

import math
import re

from lib.methods import EVERY

BEYOND = 1e7  # larger than any batch size or number of steps
MINUS = "−"  # as in figures; a hyphen is shorter, and lines break after it
NAMES = {
    method.name: method.title for method in EVERY.values() if method.title != method.name
} | {
    "grasp": "GraSP",
    "grasp-200": "GraSP at temperature 200",
    "synflow": "SynFlow",
    "connection-sensitivity": "connection sensitivity",
}

# Ordered by size; text last
DATA_SETS = {
    "digits": "digits",
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "tiny-shakespeare": "Tiny Shakespeare",
}


def named(name: str) -> str:
    """A name in records, such as sgd or synflow, as pages spell it; any other text as it is."""
    return NAMES.get(name, name)


def number(value: object) -> str:
    """A value as the prose prints it: 1,234; 0.0312; 1.79 × 10⁻⁷; "—" if missing; "∞"; text as by
    `named`.
    """
    if isinstance(value, str):
        return named(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    # From 999.5 on, three digits would give 1e+03
    if float(value).is_integer() or abs(value) >= 999.5:
        return signed(f"{value + 0.0:,.0f}")
    digits, _, power = _short_of(1, value, f"{value:.3g}").partition("e")
    times = f"\u00a0×\u00a0{power_of_ten(int(power))}" if power else ""
    return signed(digits) + times


def signed(digits: str) -> str:
    """Digits with a printed minus for a hyphen."""
    return digits.replace("-", MINUS)


def span(ends: tuple[float, float]) -> str:
    """An interval as the prose prints it: 8–64, or −2 to 1; whole numbers unchanged, others to two
    digits.
    """
    low, high = (number(end) if float(end).is_integer() else brief(end) for end in ends)
    return (
        low if low == high else f"{low} to {high}" if MINUS in low + high else f"{low}–{high}"
    )


def exactly(ends: tuple[float, float]) -> str:
    """A range with all its digits: 0.5–1.25."""
    return "{:g}–{:g}".format(*ends)


def power_of_ten(exponent: int) -> str:
    """10⁻⁶, and so on."""
    return f"10{str(exponent).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def brief(value: float) -> str:
    """A value in a sentence: two significant digits; whole numbers below a hundred unchanged."""
    if not math.isfinite(value) or (value == round(value) and abs(value) < 100):
        return number(value)
    rounded = float(f"{value:.2g}")
    digits = _short_of(1, value, f"{value:#.2g}".rstrip("."))
    return signed(digits) if 0.001 <= abs(rounded) < 100 else number(rounded)


def _short_of(limit: float, value: float, digits: str) -> str:
    """The digits of a value short of the limit; as many more as it takes not to read like the
    limit.
    """
    if not abs(value) < limit == abs(float(digits)):
        return digits
    distance = float(f"{limit - abs(value):.1g}")
    return repr(math.copysign(limit - distance, value))


def with_interval(value: float, low: float, high: float) -> str:
    """A positive estimate with its interval as a table has it: 1.5 (1.2–1.8).

    Values above BEYOND, where an unbounded fit stops, are printed as ∞, and those below its inverse
    as 0.
    """
    if not math.isfinite(value):
        return "—"
    ends = (
        math.inf if number > BEYOND else 0 if number < 1 / BEYOND else number
        for number in (value, low, high)
    )
    return "{} ({}–{})".format(*map(brief, ends))


def ranged(value: float, low: float, high: float) -> str:
    """A value with its interval as a sentence has it: 1.3 (0.90–1.8)."""
    return f"{brief(value)} ({span((low, high))})"


def percent(share: float, places: int | None = None) -> str:
    """A share as the prose prints it: 5 %, 0.5 %, −5 %; never rounded to 100 % or 0 %.

    Args:
        places: after the decimal point; None: as many as two digits take.
    """
    value = 100 * share
    fixed = f"{value:.2g}" if places is None else f"{value:.{places}f}"
    digits = _short_of(100, value, fixed)
    lost = value and not float(fixed)
    if digits == fixed and (places is None or lost):
        digits = number(float(f"{value:.2g}"))
    return f"{signed(digits)}\u00a0%"


def printed(text: str) -> str:
    """A text whose numbers Python formatted, as pages spell them: 8 %, and −0.5 with a minus."""
    spaced = re.sub(r"(?<=\d)[ \u00a0]?%", "\u00a0%", text)
    return re.sub(r"(?<![\w.,)\]-])-(?=\d)", MINUS, spaced)


def between(*values: float) -> str:
    """The least and the greatest of some values, as by `brief`: "1.8 to 5.6"; only one if they read
    the same.
    """
    ends = [brief(end) for end in (min(values), max(values))] if values else ["—"]
    return " to ".join(dict.fromkeys(ends))


def joined(items: list[str]) -> str:
    """a, b and c; with semicolons if an item contains a comma: a, small; b; and c."""
    if any(", " in item for item in items[:-1]):
        return "; ".join([*items[:-1], f"and {items[-1]}"])
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
