"""A reader's own text as a workload: the book's language model on the characters of a file.

Its name is the file's path, which ends in ".txt", or that with goals in nats,
"mytext.txt:1.9,2.1,2.3".  Without any, they lie between what 3-grams and 2-grams of the text reach.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from lib import plain
from lib.own import named, require, text_parts
from lib.workloads import ngrams, own_file, texts

# Characters: the validation part then has 16 windows
LEAST = texts.SHARE * (16 * texts.CONTEXT + 1)
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
    return Text(texts.numbered(text), symbols, own_file.digest(raw))


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
    training, held, _ = texts.parts(len(text.ids))
    tables = ngrams.count([text.ids[slice(*span)] for span in training], 3, text.symbols)
    starts = texts.spread_starts(held, texts.asked_of(len(text.ids)))
    asked = [text.ids[at : at + texts.CONTEXT + 1] for at in starts]
    return tuple(ngrams.scores(tables[:order], asked)[0] for order in (3, 2))
