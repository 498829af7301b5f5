"""Texts as data sets for language models: characters as numbers, split by position and cut into
windows.

An example is a window of 64 characters; its targets are the characters that follow each.  The test
part is the last twentieth of the text, the validation part a twentieth before it, and the training
part what is left on both sides; no window, targets included, crosses from one part into another.

A reader's own text is a workload, too: the book's language model on the characters of a file.  Its
name is the file's path, which ends in ".txt", optionally with goals in nats,
"mytext.txt:1.9,2.1,2.3"; by default they lie between what 3-grams and 2-grams of the text reach.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib import plain
from lib.own import named, require
from lib.workloads import ngrams, own_file

CONTEXT = 64  # characters in a window
MOST_WINDOWS = 256  # windows used of the validation part, and of the test part, at most
SHARE = 20  # ratio of the text to the validation part, and to the test part

LENGTHS = {"tiny-shakespeare": 1_115_394}
SHA256 = {
    "tiny-shakespeare": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
}
NAMES = tuple(LENGTHS)

Span = tuple[int, int]  # first character, and one past the last


def numbered(text: str) -> np.ndarray:
    """Characters as indices into the sorted distinct ones: int64 [characters]."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return np.unique(points, return_inverse=True)[1].astype(np.int64)


def parts(length: int, split: int = 0) -> tuple[list[Span], Span, Span]:
    """The training (one or two spans), validation and test parts of a text of `length`
    characters.

    Split 0 validates on the span right before the test part; other splits on a span of the same
    length, placed uniformly at random, seeded by the number of the split.
    """
    size = length // SHARE
    end = length - size
    first = int(np.random.default_rng(split).integers(end - size + 1)) if split else end - size
    spans = [(0, first), (first + size, end)]
    return [span for span in spans if span[0] < span[1]], (first, first + size), (end, length)


def train_size(length: int) -> int:
    """Number of training windows in a text of `length` characters, the same in every split.

    Two spans may hold one window less than a single one; every split uses that many.
    """
    return (length - 2 * (length // SHARE) - 2) // CONTEXT - 1


def spread_starts(span: Span, count: int) -> np.ndarray:
    """First characters of `count` windows, evenly spread over the span: int64 [count]."""
    first, last = span
    return np.linspace(first, last - CONTEXT - 1, count).astype(np.int64)


def windows(ids: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets, int64 [N, CONTEXT] each, of the windows in ids [characters] that begin
    with the characters at `starts`.
    """
    positions = starts[:, None] + np.arange(CONTEXT)
    return ids[positions], ids[positions + 1]


def windows_of(length: int) -> int:
    """Number of validation windows, and of test windows, for a text of `length` characters."""
    return min(MOST_WINDOWS, (length // SHARE - 1) // CONTEXT)


def examples(
    ids: np.ndarray, split: int = 0, count: int | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training, validation and test windows of a text ids [characters], as `windows` returns them;
    count: how many of the latter two; None: `windows_of` the text's length.
    """
    training, *others = parts(len(ids), split)
    count = count or windows_of(len(ids))
    following = [np.arange(first, last - CONTEXT, CONTEXT) for first, last in training]
    starts = [np.concatenate(following)[: train_size(len(ids))]]
    starts += [spread_starts(span, count) for span in others]
    return [windows(ids, part) for part in starts]


# --- a reader's own -----------------------------------------------------------------------------

# In characters: the validation part then holds 16 windows
LEAST = SHARE * (16 * CONTEXT + 1)
SYMBOLS = 4096  # different characters, at most
GOALS = 5


@dataclass(frozen=True, eq=False)
class Text:
    """ids: characters as indices of symbols, int64 [characters]; source: digest of the file."""

    ids: np.ndarray
    symbols: int
    source: str


def read(name: str) -> Text:
    """The text of this name, read again if the file has changed.

    Raises OwnError for a file that is missing, not UTF-8 or too short, or has only one symbol or
    too many.
    """
    file = own_file.file_of(name)
    return _read(file, file.read_bytes())


@functools.lru_cache(maxsize=8)
def _read(file: Path, raw: bytes) -> Text:
    with named(file):
        text = plain(raw).decode()
        length = f"{len(text):,} characters"
        require(len(text) >= LEAST, "length", length, f"{LEAST:,} characters or more")
        ids = numbered(text)
        symbols = int(ids.max()) + 1
        allowed = f"from 2 to {SYMBOLS:,}"
        require(1 < symbols <= SYMBOLS, "symbols", f"{symbols:,} different characters", allowed)
    return Text(ids, symbols, own_file.digest(raw))


def goals(name: str) -> tuple[float, ...]:
    """Mean cross-entropies in nats, the hardest first: those in the name, or GOALS on the way from
    the text's 3-grams to its 2-grams.  Raises OwnError for goals that cannot be used.
    """
    if values := own_file.goals(name):
        with named(name):
            fine = all(0 < goal < math.inf for goal in values)
            require(fine, "goals", values, "nats above 0, separated by commas")
        return values
    between = np.linspace(*_nats(read(name)), GOALS)
    return tuple(sorted({round(float(goal), 2) for goal in between}))


@functools.lru_cache(maxsize=8)
def _nats(text: Text) -> tuple[float, float]:
    """The costs of 3-grams and 2-grams on the windows that validate networks."""
    training, validation, _ = parts(len(text.ids))
    tables = ngrams.count([text.ids[slice(*span)] for span in training], 3, text.symbols)
    starts = spread_starts(validation, windows_of(len(text.ids)))
    sequences = [text.ids[start : start + CONTEXT + 1] for start in starts]
    return tuple(ngrams.scores(tables[:order], sequences)[0] for order in (3, 2))
