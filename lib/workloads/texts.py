"""Texts as data sets for language models: characters as numbers, split by position and cut into
windows.

An example is a window of 64 characters; its targets are the 64 that follow each of them.  The test
part is the last twentieth of the text.  The validation part is a twentieth before it, training what
is left on both sides of that; no window crosses from one part into another, targets included.

A reader's own text is a workload, too: the book's language model on the characters of a file.  Its
name is the file's path, which ends in ".txt", or that with goals in nats, "mytext.txt:1.9,2.1,2.3".
Without any, they lie between what 3-grams and 2-grams of the text reach.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from lib import plain
from lib.own import named, require, text_parts
from lib.workloads import ngrams, own_file

CONTEXT = 64  # characters that a window holds
ASKED = 256  # windows of the validation part, and of the test part, at most
SHARE = 20  # the text over the validation part, and over the test part

LENGTHS = {"tiny-shakespeare": 1_115_394}
SHA256 = {
    "tiny-shakespeare": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
}
NAMES = tuple(LENGTHS)

Span = tuple[int, int]  # first character, and one past the last


def numbered(text: str) -> np.ndarray:
    """Characters as their places among the different ones, sorted: int64 [characters]."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return np.unique(points, return_inverse=True)[1].astype(np.int64)


def parts(length: int, split: int = 0) -> tuple[list[Span], Span, Span]:
    """Where a text of so many characters is trained on (one or two spans), validated on, and tested
    on.

    Split 0 is validated on what comes right before the test part; another split on a span of the
    same length whose place is drawn from the number of the split, uniformly.
    """
    held = length // SHARE
    before = length - held
    first = before - held
    if split:
        first = int(np.random.default_rng(split).integers(before - held + 1))
    spans = [(0, first), (first + held, before)]
    return (
        [span for span in spans if span[1] > span[0]],
        (first, first + held),
        (before, length),
    )


def train_size(length: int) -> int:
    """Windows to train on in a text of so many characters, in every split.

    Two spans hold up to one window less than one does; so many are used of every split.
    """
    held = length // SHARE
    return (length - 2 * held - 2) // CONTEXT - 1


def train_starts(spans: list[Span], windows: int) -> np.ndarray:
    """First characters of windows that follow each other without overlap, as many as `windows`:
    int64 [windows], or as many as the spans hold.
    """
    found = [np.arange(first, last - CONTEXT, CONTEXT) for first, last in spans]
    return np.concatenate(found)[:windows]


def spread_starts(span: Span, windows: int) -> np.ndarray:
    """First characters of windows evenly spread over the span: int64 [windows]."""
    first, last = span
    return np.linspace(first, last - CONTEXT - 1, windows).astype(np.int64)


def windows(ids: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets, int64 [N, CONTEXT] each, of the windows that start at these characters of
    ids [characters].
    """
    at = starts[:, None] + np.arange(CONTEXT)
    return ids[at], ids[at + 1]


def asked_of(length: int) -> int:
    """Windows of the validation part, and of the test part, of a text of so many characters."""
    return min(ASKED, (length // SHARE - 1) // CONTEXT)


def examples(
    ids: np.ndarray, split: int = 0, asked: int | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training, validation and test windows of a text ids [characters], as `windows` has them;
    asked: how many of the latter two, if not `asked_of` it.
    """
    training, *others = parts(len(ids), split)
    starts = [train_starts(training, train_size(len(ids)))]
    starts += [spread_starts(span, asked or asked_of(len(ids))) for span in others]
    return [windows(ids, each) for each in starts]


# --- a reader's own -----------------------------------------------------------------------------

# Characters: the validation part then has 16 windows
LEAST = SHARE * (16 * CONTEXT + 1)
SYMBOLS = 4096  # different characters, at most
GOALS = 5


@dataclass(frozen=True, eq=False)
class Text:
    """ids: characters as their places among the symbols, int64 [characters]; source: digest of the
    file.
    """

    ids: np.ndarray
    symbols: int
    source: str


def read(name: str) -> Text:
    """The text called so, read again if the file has changed.

    Raises OwnError for a file that is missing, is not UTF-8, is too short, or has one symbol or too
    many.
    """
    return _read(text_parts(name)[0], own_file.file_of(name).read_bytes())


@functools.lru_cache(maxsize=8)
def _read(name: str, raw: bytes) -> Text:
    with named(name):
        text = plain(raw).decode()
        allowed = f"{LEAST:,} characters or more"
        require(len(text) >= LEAST, "length", f"{len(text):,} characters", allowed)
        symbols = len(set(text))
        told = f"{symbols:,} different characters"
        require(1 < symbols <= SYMBOLS, "symbols", told, f"from 2 to {SYMBOLS:,}")
    return Text(numbered(text), symbols, own_file.digest(raw))


def canonical(name: str) -> str:
    """The one spelling of a name, as `own_file.canonical`, its goals in their order.  Raises
    OwnError for goals that are none.
    """
    given = ",".join(f"{goal:g}" for goal in _given(name))
    return own_file.canonical(text_parts(name)[0]) + f":{given}" * bool(given)


def _given(name: str) -> tuple[float, ...]:
    """The goals that the name tells."""
    words = text_parts(name)[1]
    with named(name):
        found = sorted({*map(float, filter(None, words.split(",")))})
        fine = all(0 < goal < math.inf for goal in found)
        require(fine, "goals", repr(words), "nats above 0, with commas between them")
    return tuple(found)


def goals(name: str) -> tuple[float, ...]:
    """Mean cross-entropies in nats, the hardest first: those of the name, or GOALS from the text's
    3-grams to its 2-grams.
    """
    if given := _given(name):
        return given
    between = np.linspace(*_nats(read(name)), GOALS)
    return tuple(sorted({round(float(goal), 2) for goal in between}))


@functools.lru_cache(maxsize=8)
def _nats(text: Text) -> tuple[float, float]:
    """What 3-grams and 2-grams cost on the windows that networks are validated on."""
    training, held, _ = parts(len(text.ids))
    tables = ngrams.count([text.ids[slice(*span)] for span in training], 3, text.symbols)
    starts = spread_starts(held, asked_of(len(text.ids)))
    asked = [text.ids[at : at + CONTEXT + 1] for at in starts]
    return tuple(ngrams.scores(tables[:order], asked)[0] for order in (3, 2))
