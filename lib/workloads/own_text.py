"""A reader's own text as a workload: the book's language model on the characters of a file.

Its name is the file's path, which ends in ".txt", or that with goals in nats,
"mytext.txt:1.9,2.1,2.3".  Without any, they lie between what 3-grams and 2-grams of the text reach.
"""

from __future__ import annotations

import functools
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib import plain
from lib.atomic import whole
from lib.own import OwnError, text_parts
from lib.workloads import ngrams, own_file, texts

# Characters: the validation part then has 16 windows
LEAST = texts.SHARE * (16 * texts.CONTEXT + 1)
SYMBOLS = 4096  # different characters, at most
GOALS = 5
APART = 0.02  # nats between goals, at least


@dataclass(frozen=True, eq=False)
class Text:
    """ids: characters as their places among the symbols, int64 [characters]; source: digest of the
    file.
    """

    ids: np.ndarray
    symbols: int
    source: str

    @property
    def windows(self) -> int:
        """Of the validation part, and of the test part."""
        return min(texts.ASKED, (len(self.ids) // texts.SHARE - 1) // texts.CONTEXT)


def read(name: str) -> Text:
    """The text called so, read again if the file has changed.

    Raises OwnError for a file that is missing, is not UTF-8, is too short, or has one symbol or too
    many.
    """
    file = own_file.file_of(name)
    stat = file.stat()
    return _read(text_parts(name)[0], file, (stat.st_mtime_ns, stat.st_size))


@functools.lru_cache(maxsize=8)
def _read(name: str, file: Path, stamp: tuple[int, int]) -> Text:
    raw = file.read_bytes()

    def require(fine: object, field: str, value: object, allowed: str) -> None:
        if not fine:
            raise OwnError(f"{name}: {field}: {value} is not allowed; it must be {allowed}")

    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise OwnError(
            f"{name}: byte {error.start:,}: {raw[error.start]:#x} is not allowed; "
            "the file must be UTF-8"
        ) from None
    text = plain(raw).decode()
    require(
        len(text) >= LEAST, "length", f"{len(text):,} characters", f"{LEAST:,} characters or more"
    )
    symbols = len(set(text))
    require(
        1 < symbols <= SYMBOLS,
        "symbols",
        f"{symbols:,} different characters",
        f"from 2 to {SYMBOLS:,}",
    )
    return Text(texts.numbered(text), symbols, own_file.digest(raw))


def canonical(name: str) -> str:
    """The one spelling of a name, as `own_file.canonical`, its goals in their order.  Raises
    OwnError for goals that are none.
    """
    path, given = text_parts(name)
    return own_file.canonical(path) + (
        ":" + ",".join(f"{g:g}" for g in _given(name, given)) if given else ""
    )


def _given(name: str, words: str) -> tuple[float, ...]:
    try:
        found = sorted(float(word) for word in words.split(","))
    except ValueError:
        found = []
    fine = (
        found
        and all(0 < g < math.inf for g in found)
        and len({f"{g:g}" for g in found}) == len(found)
    )
    if not fine:
        raise OwnError(
            f"{name}: goals: {words!r} is not allowed; it must be nats above 0, with commas "
            "between them, each once"
        )
    return tuple(found)


def goals(name: str) -> tuple[float, ...]:
    """Mean cross-entropies in nats, the hardest first: those of the name, or GOALS from the text's
    3-grams to its 2-grams.

    Raises OwnError if 3-grams do hardly better than 2-grams, as where each character stands alone.
    """
    path, given = text_parts(name)
    if given:
        return _given(name, given)
    nats = {n: value for n, asked, value, *_ in rungs(path, 3) if asked == "windows"}
    low, high = nats[3], nats[2]
    if high - low < GOALS * APART:
        raise OwnError(
            f"{name}: goals: none is not allowed for this text, whose 3-grams ({low:.2f} nats) do "
            "hardly better than its 2-grams "
            f"({high:.2f}); give goals after a colon, as in {path}:{low:.2f},{high:.2f}"
        )
    return tuple(sorted({round(float(g), 2) for g in np.linspace(low, high, GOALS)}))


def rungs(name: str, order: int) -> list[tuple]:
    """`ngrams.climb` of a text up to an order."""
    text = read(name)
    return _rungs(text, order)


@functools.lru_cache(maxsize=8)
def _rungs(text: Text, order: int) -> list[tuple]:
    return ngrams.climb(text.ids, order, asked=text.windows)


WORDS = {
    "the": ("cat", "dog", "old man", "child", "grey bird"),
    "saw": ("saw", "heard", "followed", "liked"),
    "a": ("a house", "a river", "the moon", "a long road", "nobody"),
}


def toy(file: Path) -> str:
    """Write a text that is made up of a few words, the same every time, if it is not there; returns
    its name, with goals.

    Raises OSError if it cannot be written.
    """
    draw = random.Random(0)
    lines = (
        " ".join(("the", *(draw.choice(words) for words in WORDS.values()))) + ".\n"
        for _ in range(900)
    )
    text = "".join(lines).encode()
    if not file.exists() or file.read_bytes() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file) as stream:
            stream.write(text)
    return f"{file}:2.3,2.5,2.7"
