"""N-gram models of a text: probabilities of the next character after the last few, from counts with
Witten-Bell smoothing.

P(w | h) = (c(h w) + t(h) P(w | h')) / (c(h) + t(h)): c counts occurrences in the training part,
t(h) is how many different characters follow h there, and h' is h without its first character.  The
recursion ends in 1 / symbols.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse

NOTHING = -1  # precedes the first character of a sequence
TOGETHER = 4096  # predictions computed at once

# Contexts of one length: their codes, ascending, int64 [contexts], and how often each symbol
# follows each, [contexts, symbols]
Table = tuple[np.ndarray, sparse.csr_matrix]


def count(sequences: list[np.ndarray], order: int, symbols: int) -> list[Table]:
    """The n-grams up to this order in sequences of numbered characters, int64 [L] each: a table for
    each context length 0, 1, ... order - 1, short enough for contexts to be numbered.
    """
    tables = []
    for length in range(order):
        long = (s for s in sequences if len(s) > length)
        runs = np.concatenate([sliding_window_view(s, length + 1) for s in long])
        codes, rows = np.unique(_codes(runs[:, :-1], symbols), return_inverse=True)
        cells, shape = (rows, runs[:, -1]), (len(codes), symbols)
        counts = sparse.coo_matrix((np.ones(len(rows)), cells), shape)
        tables.append((codes, counts.tocsr()))
    return tables


def _codes(contexts: np.ndarray, symbols: int) -> np.ndarray:
    """A number for every context [N, L], unique among those of its length."""
    return contexts @ symbols ** np.arange(contexts.shape[1], dtype=np.int64)


def predict(tables: list[Table], contexts: np.ndarray) -> np.ndarray:
    """Probabilities [N, symbols] after contexts [N, L], the last character last.

    For a context that was never seen, or is cut by NOTHING, those after its longest ending that was
    seen.
    """
    symbols = tables[0][1].shape[1]
    probabilities = np.full((len(contexts), symbols), 1 / symbols)
    for length, (codes, counts) in enumerate(tables):
        last = contexts[:, contexts.shape[1] - length :]
        rows = pd.Index(codes).get_indexer(_codes(last, symbols))
        seen = rows >= 0
        seen &= (last != NOTHING).all(1)
        c = counts[rows[seen]].toarray()
        t = (c > 0).sum(1, keepdims=True)
        total = c.sum(1, keepdims=True) + t
        backed_off = probabilities[seen]
        probabilities[seen] = (c + t * backed_off) / total
    return probabilities


def scores(tables: list[Table], sequences: list[np.ndarray]) -> tuple[float, float, int]:
    """Mean nats per character (not counting each sequence's first), the share of characters that
    are not the likeliest, and their number.

    Contexts do not extend beyond the beginning of their sequence.
    """
    length = max(1, len(tables) - 1)
    ahead = np.full(length - 1, NOTHING)
    padded = (np.append(ahead, sequence) for sequence in sequences)
    runs = np.concatenate([sliding_window_view(s, length + 1) for s in padded])
    nats = wrong = 0.0
    for start in range(0, len(runs), TOGETHER):
        part = runs[start : start + TOGETHER]
        truth = part[:, -1:]
        probabilities = predict(tables, part[:, :-1])
        nats -= np.log(np.take_along_axis(probabilities, truth, 1)).sum()
        mistakes = probabilities.argmax(1) != truth[:, 0]
        wrong += mistakes.sum()
    return nats / len(runs), wrong / len(runs), len(runs)
